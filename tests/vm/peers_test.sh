#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The rows of perf/compare that need a kernel device: perftest on rdma-core beside ours, on one rxe device. Each has a figure; what
# it is says nothing in emulation. Runs inside tests/vm/run.
#
#   peers_test.sh VERBATIM-COMPARE
compare=$1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh

rows() {
  "$compare" --rows kernel --quick --rounds 1 --json >rows.json || return 1
  python3 - <<'PYTHON'
import json
rows = json.load(open("rows.json"))["rows"]
for row in rows:
    print(row["figure"], row["median"], row["detail"], row["missing"])
programs = [row["figure"].split()[0] for row in rows]
assert programs == ["ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_write_bw", "ib_send_bw"], programs
assert all(row["missing"] == "" and row["median"] > 0 and " on rxe0, " in row["figure"] for row in rows)
PYTHON
}

check "two rxe devices over a line" rxe_pair || exit
say "perftest and ours on rxe0 have figures" rows
verdict
