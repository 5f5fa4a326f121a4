#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# MPI, and teams of <verbatim/coll.h>, over rxe: ranks on one device, and on two with a line between them. Runs inside tests/vm/run.
#
#   mpi_test.sh TOOL TEAM POINT_TO_POINT PROGRAM ...      the built tool and programs
tool=$(realpath "$1") || exit 1
team=$(realpath "$2") || exit 1
point_to_point=$(realpath "$3") || exit 1
programs=("${@:4}")
for i in "${!programs[@]}"; do programs[i]=$(realpath "${programs[i]}") || exit 1; done
cd "$(dirname "$0")" || exit 1
. ./fabric.sh
export VERBATIM_MPI_LAUNCHER_SECONDS=120 GTEST_BRIEF=1

on_one() { VERBATIM_MPI_DEVICE=rxe0 "$tool" run -n 2 "$@"; }
over_the_line() {
  # shellcheck disable=SC2016
  "$tool" run -n 2 sh -c 'VERBATIM_MPI_DEVICE=rxe$MPI_LOCALRANKID exec "$0" "$@"' "$@"
}

packets() { cat /sys/class/net/v0/statistics/tx_packets; }
went_over_the_line() { [[ $(packets) -gt $(($1 + $2)) ]]; }

sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
# goes_by_rxe HOW COMMAND ...: rxe0 has sent packets meanwhile (yes), or none (no).
goes_by_rxe() {
  local how=$1 before
  shift
  before=$(sent)
  "$@" || return
  echo "rxe0 sent $(($(sent) - before)) packets"
  if [[ $how == yes ]]; then [[ $(sent) -gt $before ]]; else [[ $(sent) -eq $before ]]; fi
}

check "two rxe devices over a line" rxe_pair || exit
check "ranks of one host go by its memory" goes_by_rxe no "$tool" run -n 2 "$point_to_point" ring
# shellcheck disable=SC2016
check "those that may not be by a device" goes_by_rxe yes "$tool" run -n 2 sh -c 'MPI_LOCALNRANKS=1 exec "$0" ring' "$point_to_point"
check "and those that are told to" goes_by_rxe yes on_one "$point_to_point" ring
check "messages on one device" on_one "$point_to_point" sizes ordering wildcards unexpected truncation synchronous requests \
  persistent buffered probes arguments ring crowd replace computing invitations crossing strided
before=$(packets)
for program in "${programs[@]}"; do
  check "${program##*/} over the line" over_the_line "$program"
done
check "the line carried it" went_over_the_line "$before" 1000
before=$(packets)
check "a team without MPI, two members at each end of the line" "$team" rxe0 rxe1
check "the line carried it" went_over_the_line "$before" 100
check "a line that loses" netem loss 1%
check "messages over it" over_the_line "$point_to_point" ring crowd strided
check "some were lost" lost_packets
verdict
