#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The same program over this library and over Debian's, on the same rxe devices in the same boot. What it asks of the kernel is
# counted, and must not be more than with Debian's. What it executes in user space is counted too and shown only: a completion that
# is checked before it is believed costs more than one that is not. How long it takes must not be clearly more than with Debian's:
# an emulated processor beside others has no finer time. Runs inside tests/vm/run.
#
#   compare_test.sh OURS THEIRS      work.c, built with each
ours=$(realpath "$1") theirs=$(realpath "$2") || exit 1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh
export LD_BIND_NOW=1  # finding a symbol at its first call is not what is compared
scratch=$(mktemp -d)

# calls PROGRAM WHAT: system calls for each round, from the difference of two runs.
calls() {
  local few=5 many=25 count total=()
  for count in $few $many; do
    strace -f -qq -o "$scratch/calls" "$1" "$2" "$count" >/dev/null || return 1
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

# time_of WHAT COUNT MOST: nanoseconds of each round, ours and theirs in turn, so that what else the machine does comes over both.
# What is slower is so in the median of the ratios of neighbours and in the ratio of the best: not both may be above MOST.
time_of() {
  local what=$1 count=$2 most=$3 runs=9 i
  for ((i = 0; i < runs; ++i)); do
    echo "$("$ours" "$what" "$count") $("$theirs" "$what" "$count")"
  done >"$scratch/times"
  awk 'NF != 2 { exit 1 } { print $1 / $2, $1, $2 }' "$scratch/times" | sort -g | awk -v what="$what" -v most="$most" '
    { ratio[NR] = $1; if (NR == 1 || $2 < mine) mine = $2; if (NR == 1 || $3 < yours) yours = $3 }
    END {
      if (NR == 0) exit 1
      printf "%-12s ours %8.1f us, Debian'\''s %8.1f us a round at best: %.2f of it, %.2f in the median; not both above %s\n",
        what, mine / 1e3, yours / 1e3, mine / yours, ratio[int((NR + 1) / 2)], most
      exit mine / yours > most && ratio[int((NR + 1) / 2)] > most
    }'
}

compare_calls() {  # compare_calls WHAT
  local mine yours
  mine=$(calls "$ours" "$1") && yours=$(calls "$theirs" "$1") || return 1
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
for what in batches queue_pairs regions; do
  say "system calls of $what are not more" compare_calls "$what"
done
say "instructions of posting and polling" compare_instructions batches 20 measured_post_send measured_post_recv measured_poll
say "instructions of a queue pair" compare_instructions queue_pairs 10 measured_queue_pair
say "instructions of a region" compare_instructions regions 10 measured_region
say "time of a message is not clearly more" time_of latency 200 1.25
say "time of 16 WRITEs of 4 KiB is not clearly more" time_of bandwidth 50 1.25
say "time of a queue pair is not clearly more" time_of queue_pairs 100 1.25
say "time of a region is not clearly more" time_of regions 200 1.25
rm -rf "$scratch"
verdict
