#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What becomes of devices and of those who use them when one of the two ends without a word. Runs inside tests/vm/run.
#
#   lifetime_test.sh TOOL      the built `verbatim`
tool=$(realpath "$1") || exit 1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh
scratch=$(mktemp -d)

used() { rdma resource show | awk '{ print $2, $6, $8, $12, $14 }'; }
uses() { [[ $(used) == "$1" ]]; }
talking() { rdma resource show qp link "$1" 2>/dev/null | grep -q 'state RTS'; }
lists() { "$tool" devices | grep -q "$1"; }
lists_no() { ! lists "$1"; }

# Two that play for ever, over the devices; their ids in `server` and `client`.
play() {
  "$tool" pingpong rc -d rxe0 -g 1 -n 1000000000 -p 18600 >"$scratch/server" 2>&1 &
  server=$!
  until_true 10 listening 18600 || return 1
  "$tool" pingpong rc -d rxe1 -g 1 -n 1000000000 -p 18600 127.0.0.1 >"$scratch/client" 2>&1 &
  client=$!
  until_true 20 talking rxe0 && until_true 20 talking rxe1
}
ends_in_one_line() {  # ends_in_one_line ID FILE: soon, not well, and says why
  until_true 30 eval "! kill -0 $1 2>/dev/null" || return 1
  wait "$1"
  [[ $? -eq 1 ]] && grep -qE 'the other side left|closed the connection|Failed status' "$scratch/$2" || { cat "$scratch/$2"; false; }
}
kill_hard() { kill -KILL "$1" && { wait "$1"; [[ $? -eq 137 ]]; } 2>/dev/null; }
is_waiting() { sleep 1; kill -0 "$1"; }

check "two rxe devices over a line" rxe_pair || exit
before=$(used)
check "two talk" play
check "one is killed" kill_hard "$client"
check "the other ends in one line" ends_in_one_line "$server" server
check "the kernel has cleaned up after both" until_true 10 uses "$before"

check "two talk again" play
rdma link delete rxe1 &
removal=$!
check "the driver keeps a device that is in use" is_waiting "$removal"
check "its user is killed" kill_hard "$client"
check "and the device goes" wait "$removal"
check "the other ends in one line" ends_in_one_line "$server" server
check "a device that has gone is listed no more" lists_no rxe1
check "the other one is" lists rxe0
check "a new one" rdma link add rxe1 type rxe netdev v1
check "is listed" lists rxe1
until_true 10 grep -q 0000:ffff:0a02 /sys/class/infiniband/rxe1/ports/1/gids/1
check "two talk over it" play
check "one is killed" kill_hard "$server"
check "the other ends in one line" ends_in_one_line "$client" client
rm -rf "$scratch"
verdict
