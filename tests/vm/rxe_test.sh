#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Debian's own programs over two rxe devices: that the machine, the line and the kernel's side work, before anything of ours
# is asked. Not over a line that loses: there they were seen to wait for ever, and could not be ended. Runs inside tests/vm/run.
cd "$(dirname "$0")" || exit 1
. ./fabric.sh

pingpong() {  # pingpong KIND [OPTION ...]
  local program=ibv_$1_pingpong
  shift
  between 18515 "$program" -d rxe0 -g 1 "$@" -- "$program" -d rxe1 -g 1 "$@" 127.0.0.1
}
shows() {  # shows TEXT COMMAND ...: COMMAND succeeds and says TEXT
  local text=$1 said
  shift
  said=$("$@") && echo "$said" && grep -q -- "$text" <<<"$said"
}

check "two rxe devices over a line" rxe_pair || exit
check "ibv_devices lists them" shows rxe1 ibv_devices
check "ibv_devinfo: the port is active" shows 'PORT_ACTIVE (4)' ibv_devinfo -d rxe0
for kind in rc uc ud srq; do
  check "ibv_${kind}_pingpong" pingpong "$kind" -n 100
done
check "ibv_rc_pingpong by events" pingpong rc -n 100 -e
verdict
