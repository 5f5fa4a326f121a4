#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dma-bufs over shared memory, where the kernel makes them of ordinary pages (/dev/udmabuf: Debian's 6.12 has it, 6.1 has not).
# Runs inside tests/vm/run.
#
#   dma_buffer_test.sh SUITE      the built `shm_memory`
suite=$(realpath "$1") || exit 1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh

passes() {  # nothing of it skipped
  local said
  said=$("$suite" --gtest_brief=1 --gtest_filter='*ADmaBuffer*' 2>&1)
  local status=$?
  echo "$said"
  [[ $status -eq 0 ]] && grep -q 'PASSED.* [1-9][0-9]* test' <<<"$said" && ! grep -qi skipped <<<"$said"
}

[[ -c /dev/udmabuf ]] || { echo "skipped: this kernel has no /dev/udmabuf"; exit 77; }
check "a dma-buf is a region like others" passes
verdict
