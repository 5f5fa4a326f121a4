#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The conformance suite over an rxe device: the sentences that it fulfils. Runs inside tests/vm/run.
#
#   conformance_test.sh SUITE [FILTER]      the built `conformance`; FILTER: other tests, as --gtest_filter names them
suite=$(realpath "$1") || exit 1
filter=${2:-}
cd "$(dirname "$0")" || exit 1
. ./fabric.sh

check "two rxe devices over a line" rxe_pair || exit
"$suite" --gtest_brief=1 --gtest_filter="${filter:-*}"
exit
