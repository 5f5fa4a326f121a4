#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Our tools over rxe, pingpongs and perftest's tests, with each other and with Debian's in both directions, on a line that is
# whole and on one that loses. Runs inside tests/vm/run.
#
#   interop_test.sh TOOL      the built `verbatim`
tool=$(realpath "$1") || exit 1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh

ours() { local kind=$1; shift; timeout 60 "$tool" pingpong "$kind" "$@"; }
debians() { local kind=$1; shift; timeout 60 "ibv_${kind}_pingpong" "$@"; }
pingpong() {  # pingpong SERVER CLIENT KIND [OPTION ...]
  local serving=$1 calling=$2 kind=$3
  shift 3
  between 18515 "$serving" "$kind" -d rxe0 -g 1 "$@" -- "$calling" "$kind" -d rxe1 -g 1 "$@" 127.0.0.1
}
perf_ours() { local test=$1; shift; timeout 60 "$(dirname "$tool")/ib_$test" "$@"; }
perf_debians() { local test=$1; shift; timeout 60 "ib_$test" -F "$@"; }
perf() {  # perf SERVER CLIENT TEST [OPTION ...]
  local serving=$1 calling=$2 test=$3
  shift 3
  between 18515 "perf_$serving" "$test" -d rxe0 -x 1 -n 50 "$@" -- "perf_$calling" "$test" -d rxe1 -x 1 -n 50 "$@" 127.0.0.1
}
# Debian's client leaves when it has the last message, although its acknowledgement may be lost.
pingpong_with_debians_client() {
  local said
  said=$(pingpong ours debians "$@" 2>&1) && return
  printf '%s\n' "$said"
  grep -q 'left before it acknowledged the last' <<<"$said" && ! grep -q '^client: status' <<<"$said"
}
same_devinfo() { diff <(ibv_devinfo -v -d rxe0 2>&1) <("$(dirname "$tool")/ibv_devinfo" -v -d rxe0 2>&1); }

check "two rxe devices over a line" rxe_pair || exit
check "devinfo says what Debian's says" same_devinfo
for kind in rc uc ud srq; do
  check "$kind: ours with ours" pingpong ours ours "$kind" -n 50
  check "$kind: ours serves Debian's" pingpong ours debians "$kind" -n 50
  check "$kind: Debian's serves ours" pingpong debians ours "$kind" -n 50
done
check "rc by ibv_wr_*: ours with ours" pingpong ours ours rc -n 50 -N
check "rc by events: ours serves Debian's" pingpong ours debians rc -n 50 -e
check "rc by events: Debian's serves ours" pingpong debians ours rc -n 50 -e
check "perf send-lat: ours serves Debian's" calibrated perf ours debians send_lat
check "perf send-lat over UD: Debian's serves ours" calibrated perf debians ours send_lat -c UD
check "perf write-bw: Debian's serves ours" calibrated perf debians ours write_bw -s 1024
check "perf atomic-bw: ours serves Debian's" calibrated perf ours debians atomic_bw
check "the line loses 1 %" netem loss 1%
check "rc, losing: ours with ours" pingpong ours ours rc -n 150 -c
check "packets were lost" lost_packets
check "the line loses 5 % and reorders" netem loss 5% delay 1ms reorder 25%
check "rc, losing and reordering: ours with ours" pingpong ours ours rc -n 60 -c
# Few: Debian's programs wait here for ever now and then, with each other too (once in eleven runs of 60).
check "rc, losing and reordering: ours serves Debian's" pingpong_with_debians_client rc -n 20 -c
check "srq, losing and reordering: ours with ours" pingpong ours ours srq -n 60 -c
check "packets were lost" lost_packets
verdict
