#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Debian's own programs over siw, connected by rdma_cm: that the module, which is built here, works. Runs inside tests/vm/run.
cd "$(dirname "$0")" || exit 1
. ./fabric.sh
module=$(./siw 2>&1) || { echo "skipped: $module"; exit 77; }
command -v ib_write_lat >/dev/null || { echo "skipped: ib_write_lat is not installed (package perftest)"; exit 77; }

measured() {  # measured PROGRAM [OPTION ...]: both ends of it, and a result
  between 18515 timeout 60 "$@" -- timeout 60 "$@" 10.2.0.1 >/run/tmp/measured || { cat /run/tmp/measured; return 1; }
  grep -E '^ *[0-9]+ +[0-9]+ +[0-9.]+' /run/tmp/measured
}

check "siw over a line" siw_device "$module" || exit
check "ibv_devinfo shows iWARP" grep -q iWARP <(ibv_devinfo -d siw0)
check "ib_write_lat by rdma_cm" measured ib_write_lat -R -d siw0 -n 100 -s 8
check "ib_send_bw by rdma_cm" measured ib_send_bw -R -d siw0 -n 100 -s 4096
check "ib_read_lat by rdma_cm" measured ib_read_lat -R -d siw0 -n 100 -s 64
verdict
