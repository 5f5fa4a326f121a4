#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Our provider over siw, connected by our connection manager's room: two processes that speak, and each way in which it ends.
# Runs inside tests/vm/run.
#
#   siw_ours_test.sh ENDS TOOL    the built `siw_ends` and `verbatim`
ends=$(realpath "$1") || exit 1
tool=$(realpath "$2") || exit 1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh
module=$(./siw 2>&1) || { echo "skipped: $module"; exit 77; }

endings=(talk shared cursor refused wrong invalidated beyond mistaken scarce killed closed talk)
calls() {  # calls ENDING: the other side of it, whose status is that of a killed process where it is to be killed
  local status=0
  timeout 120 "$ends" "$1" 10.2.0.1 18600 || status=$?
  [[ $1 == killed ]] || return $status
  [[ $status -eq 137 ]]
}
nothing_left() {  # what the kernel still has for processes on the device
  local left
  left=$(rdma resource show qp dev siw0; rdma resource show cq dev siw0; rdma resource show mr dev siw0; rdma resource show pd dev siw0)
  echo "$left"
  ! grep -q 'comm siw_ends' <<<"$left"
}

check "siw over a line" siw_device "$module" || exit
limited() { (ulimit -S -l 64 && "$@"); }
check "the doctor asks no GID of iWARP, and knows whom the lock limit binds" limited diagnosed "$tool" \
  'OK +port +siw0 port 1: PORT_ACTIVE' 'OK +GID +siw0 port 1: iWARP: connections are made by IP address' \
  'FAIL +memlock .* beyond it on siw0, whose driver does not heed CAP_IPC_LOCK'
check "what it lacks is said" timeout 60 "$ends" lacks
"$ends" serve 10.2.0.1 18600 "${endings[@]}" >/run/tmp/served 2>&1 &
server=$!
check "somebody listens" until_true 10 listening_or_gone 18600 $server
for ending in "${endings[@]}"; do
  check "$ending" calls "$ending" || cat /run/tmp/served
done
check "the server has served them all" wait $server || cat /run/tmp/served
check "the kernel has kept nothing" until_true 10 nothing_left
verdict
