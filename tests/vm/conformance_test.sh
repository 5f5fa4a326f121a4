#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The conformance suite over an rxe device, but for what its driver does otherwise (tests/support/quirks.hpp). Runs
# inside tests/vm/run.
#
#   conformance_test.sh SUITE FILTER      the built `conformance`, and which of it, as --gtest_filter names tests
#
# A clock that was set by under load can run a few times too fast here, beside an emulated processor that is slower by ten: longer
# waits, and a fifth of the rounds unless VERBATIM_TEST_SCALE says another share.
suite=$(realpath "$1") || exit 1
filter=$2
cd "$(dirname "$0")" || exit 1
. ./fabric.sh
export VERBATIM_TEST_WAIT_MS=120000 VERBATIM_TEST_SCALE=${VERBATIM_TEST_SCALE:-20}

some() { "$suite" --gtest_filter="$filter" --gtest_list_tests | grep -q '^  '; }

check "two rxe devices over a line" rxe_pair || exit
check "there are such sentences: $filter" some || exit
"$suite" --gtest_brief=1 --gtest_filter="$filter"
