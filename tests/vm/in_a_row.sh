#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Scripts of this folder one after another in one machine, since booting one takes as long as most of them. Each finds the machine
# without devices, as it would find its own; what one of them leaves behind is taken down. Runs inside tests/vm/run.
#
#   in_a_row.sh SCRIPT [ARGUMENT ...] [-- SCRIPT [ARGUMENT ...]] ...
#
# A script that ends with 77 is skipped, as anywhere; all of them skipped is 77, one that failed is 1. The lines that tell are
# counted by tests/tally.py.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/fabric.sh"
longest=600  # seconds of one script: one that hangs is not to keep the others from being seen

passed=0
failed=0
skipped=0
run_one() {  # run_one SCRIPT [ARGUMENT ...]
  local script=$1 begin=$SECONDS
  shift
  echo "== $script"
  timeout --kill-after=5 "$longest" "$here/$script" "$@"
  local status=$?
  case $status in
    0) passed=$((passed + 1)); echo "[  PASSED  ] 1 test, $script ($((SECONDS - begin)) s)" ;;
    77) skipped=$((skipped + 1)); echo "[  SKIPPED ] 1 test, $script" ;;
    *) failed=$((failed + 1)); echo "[  FAILED  ] 1 test, $script: status $status" ;;
  esac
  no_fabric
}

words=()
for word in "$@" --; do
  if [[ $word != -- ]]; then
    words+=("$word")
  elif [[ ${#words[@]} -gt 0 ]]; then
    run_one "${words[@]}"
    words=()
  fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]] || exit 1
[[ $passed -gt 0 ]] || exit 77
