#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What tests/vm/run promises, asked from outside: statuses, output, the machine's files unharmed, an end in every case.
cd "$(dirname "$0")" || exit 1
failures=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

expect() {  # expect STATUS PATTERN COMMAND ...
  local wanted=$1 pattern=$2 status
  shift 2
  "$@" >"$scratch/said" 2>&1 </dev/null
  status=$?
  if [[ $status -eq 77 && $wanted -ne 77 ]]; then
    cat "$scratch/said"
    exit 77
  fi
  if [[ $status -ne $wanted ]] || ! grep -qE -- "$pattern" "$scratch/said"; then
    echo "FAILED  $*: status $status (wanted $wanted), without '$pattern' in:"
    sed 's/^/        /' "$scratch/said"
    failures=$((failures + 1))
  else
    echo "ok      status $status, '$pattern'"
  fi
}

echo before >"$scratch/file"
# shellcheck disable=SC2016
expect 3 '^argument "with words" in .*/tests/vm, root 0, scale 7$' env VERBATIM_TEST_SCALE=7 ./run bash -c '
  echo "argument \"$0\" in $PWD, root $(id -u), scale $VERBATIM_TEST_SCALE"
  echo after >"$1" && [[ $(<"$1") == after ]] && exit 3' "with words" "$scratch/file"
[[ $(<"$scratch/file") == before ]] || { echo "FAILED  the guest wrote to this machine"; failures=$((failures + 1)); }
expect 125 'sysrq_handle_crash|Kernel panic' ./run bash -c 'echo c >/proc/sysrq-trigger; sleep 100'
expect 124 'not done after 4 s' ./run --timeout 4 sleep 1000
expect 77 'skipped: .*no Debian kernel here' env VERBATIM_VM_KERNELS="$scratch/none" ./run true
expect 77 'skipped: .*no Debian kernel 6.12 here' env VERBATIM_VM_KERNELS="$scratch/none" ./run --kernel 6.12 true
mkdir "$scratch/bin"
for program in bash dirname uname; do ln -s "$(command -v $program)" "$scratch/bin/"; done
expect 77 'qemu-system-x86_64 is not installed' env PATH="$scratch/bin" ./run true
[[ $failures -eq 0 ]]
