#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The same program over this library and over Debian's, on the same rxe devices in the same boot. What it asks of the kernel is
# counted, and must not be more than with Debian's; but for a registration, which reads the lock limit and makes the pages
# (getrlimit, madvise) before it asks the device: of it, only what the device is asked is judged. What it executes in user space is
# counted too, and how long it takes is measured; both are shown only: an emulated processor's time is no promise, and a completion
# that is checked before it is believed costs more than one that is not. Runs inside tests/vm/run.
#
#   compare_test.sh OURS THEIRS      work.c, built with each
ours=$(realpath "$1") theirs=$(realpath "$2") || exit 1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh
export LD_BIND_NOW=1  # finding a symbol at its first call is not what is compared
scratch=$(mktemp -d)

# calls PROGRAM WHAT WHICH: system calls for each round, from the difference of two runs.
calls() {
  local few=5 many=25 count total=()
  for count in $few $many; do
    strace -f -qq -o "$scratch/calls" -e trace="$3" "$1" "$2" "$count" >/dev/null || return 1
    total+=("$(grep -c . "$scratch/calls")")
  done
  awk "BEGIN { printf \"%.2f\", (${total[1]} - ${total[0]}) / ($many - $few) }"
}

# instructions PROGRAM WHAT COUNT FUNCTION ...: of each FUNCTION and what it calls, in user space, for one of its calls.
instructions() {
  local program=$1 what=$2 count=$3 function
  shift 3
  valgrind --tool=callgrind --toggle-collect='measured_*' --callgrind-out-file="$scratch/profile" \
    "$program" "$what" "$count" >"$scratch/said" 2>&1 || { cat "$scratch/said" >&2; return 1; }
  callgrind_annotate --inclusive=yes --threshold=100 "$scratch/profile" >"$scratch/table" 2>/dev/null
  for function; do
    awk -v name=":$function " -v count="$count" 'index($0 " ", name) { gsub(",", "", $1); printf "%d ", $1 / count; exit }' "$scratch/table"
  done
}

# time_of WHAT COUNT: nanoseconds of each round, ours and theirs in turn: the medians of five.
time_of() {
  local what=$1 count=$2 i
  : >"$scratch/ours"
  : >"$scratch/theirs"
  for i in 1 2 3 4 5; do
    "$ours" "$what" "$count" >>"$scratch/ours" && "$theirs" "$what" "$count" >>"$scratch/theirs" || return 1
  done
  printf '%-12s ours %8.1f us, Debian'\''s %8.1f us a round\n' "$what" \
    "$(sort -n "$scratch/ours" | sed -n 3p)e-3" "$(sort -n "$scratch/theirs" | sed -n 3p)e-3"
}

compare_calls() {  # compare_calls WHAT [WHICH]
  local which=${2:-all} mine yours
  mine=$(calls "$ours" "$1" "$which") && yours=$(calls "$theirs" "$1" "$which") || return 1
  echo "$1: $mine system calls a round, Debian's $yours"
  awk "BEGIN { exit !($mine > 0 && $mine <= $yours) }"
}

compare_instructions() {  # compare_instructions WHAT COUNT FUNCTION ...
  local what=$1 count=$2 mine yours i
  shift 2
  read -ra mine <<<"$(instructions "$ours" "$what" "$count" "$@")"
  read -ra yours <<<"$(instructions "$theirs" "$what" "$count" "$@")"
  for ((i = 1; i <= $#; ++i)); do
    echo "${!i}: ${mine[i - 1]:-?} instructions a round, Debian's ${yours[i - 1]:-?}"
    [[ -n ${mine[i - 1]:-} && -n ${yours[i - 1]:-} ]] || return 1
  done
}

check "two rxe devices over a line" rxe_pair || exit
for what in batches queue_pairs; do
  say "system calls of $what are not more" compare_calls "$what"
done
say "calls of regions to the device are not more" compare_calls regions ioctl,write,mmap,munmap
echo "regions: $(calls "$ours" regions all) system calls of all kinds a round, Debian's $(calls "$theirs" regions all)"
say "instructions of posting and polling" compare_instructions batches 20 measured_post_send measured_post_recv measured_poll
say "instructions of a queue pair" compare_instructions queue_pairs 10 measured_queue_pair
say "instructions of a region" compare_instructions regions 10 measured_region
say "time of a message" time_of latency 200
say "time of 16 WRITEs of 4 KiB" time_of bandwidth 50
say "time of a queue pair" time_of queue_pairs 100
say "time of a region" time_of regions 200
rm -rf "$scratch"
verdict
