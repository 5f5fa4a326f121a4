#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Debian's programs over two rxe devices, on our libibverbs.so.1: `verbatim exec` as users type it. Runs inside tests/vm/run.
#
#   dropin_test.sh VERBATIM-TOOL
tool=$1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh

port=18515
pair() {  # pair PROGRAM [OPTION ...]: server on rxe0, client on rxe1
  local program=$1
  shift
  port=$((port + 1))
  between "$port" "$tool" exec "$program" -d rxe0 "$@" -p "$port" -- "$tool" exec "$program" -d rxe1 "$@" -p "$port" 127.0.0.1
}
ours() {  # ours PROGRAM: what it loads is ours
  "$tool" exec sh -c 'LD_TRACE_LOADED_OBJECTS=1 "$(command -v "$0")"' "$1" | grep -q 'dropin/libibverbs.so.1'
}

check "two rxe devices over a line" rxe_pair || exit
check "the library that is loaded is ours" ours ibv_devices
check "ibv_devinfo" "$tool" exec ibv_devinfo -v -d rxe0
for kind in rc uc ud srq; do
  check "ibv_${kind}_pingpong" pair "ibv_${kind}_pingpong" -g 1 -n 100
done
check "ibv_rc_pingpong by events" pair ibv_rc_pingpong -g 1 -n 100 -e
for verb in send write read; do
  check "ib_${verb}_lat" calibrated pair "ib_${verb}_lat" -x 1 -n 100
  check "ib_${verb}_bw" calibrated pair "ib_${verb}_bw" -x 1 -n 100 -s 4096
done
check "ib_atomic_lat" calibrated pair ib_atomic_lat -x 1 -n 100
check "ib_send_lat over UD" calibrated pair ib_send_lat -c UD -x 1 -n 100
if /usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null; then
  check "pyverbs" "$tool" exec /usr/bin/python3 ../dropin/pyverbs_move.py rxe0 1
fi
verdict
