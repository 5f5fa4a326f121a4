#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A handful of the conformance suite's sentences over an rxe device, under valgrind's memcheck, which sees neither what the kernel
# answers to a command nor what it stores into rings and registered memory: that the library tells it (runtime/base/memcheck.hpp),
# and reads nothing that nobody wrote. Runs inside tests/vm/run.
#
#   memcheck_test.sh SENTENCES      the built `watched_in_vm`: so much of the suite
sentences=$(realpath "$1") || exit 1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh
command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
export VERBATIM_TEST_WAIT_MS=200000 VERBATIM_TEST_SCALE=1

watched=(
  Query.EachPortTellsWhatItIs Query.TheTableOfGidsHoldsEachEntryOnce Query.ADeviceTellsTheSameInItsExtendedAttributes
  Cq.ResizedKeepsWhatItHolds Cq.ForgetsTheEntriesOfAQueuePairThatIsReset
  CqEx.TellsTheFieldsOfASend CqEx.TellsImmediateDataAsItWasSent
  CqChannel.TellsWhichQueueAndGivesItsPointer CqChannel.WakesWhoSleepsInIt
  AsyncOfOne.EventsComeInTheirOrder Async.ASendQueueThatHasDrainedSaysSo AsyncOfOne.WakesWhoSleepsForIt
  Srq.PutsEachMessageIntoTheReceiveThatItTook Srq.SaysOnceThatItRunsLow Srq.IsResizedWithReceivesInside
  Ud.ArrivesBehindFortyBytesOfRoutingHeader Ud.ReceivesIntoASharedQueue Ud.IsAnsweredByTheAddressThatItsCompletionTells
  RcSend.GathersAndScattersSixteenOddPieces RcAtomic.AListOfFetchAddsReturnsEveryValueInTurn
  Mr.AtAnAddressOfTheProgramsChoiceIsReachedThere
)
filter="$(IFS=:; echo "${watched[*]/%//rxe0*}")-*TwoProcesses*:*TwoContexts*:*Mapped*"
all_there() {
  local found
  found=$("$sentences" --gtest_filter="$filter" --gtest_list_tests | grep -c '^  ')
  [[ $found -ge ${#watched[@]} ]] || { echo "of ${#watched[@]} sentences there are $found"; return 1; }
}

check "an rxe device on a line" rxe_pair || exit
check "the other one is not needed" rdma link delete rxe1
check "the sentences are there" all_there
check "memcheck has no word to say of them" ../memcheck/run "$sentences" --gtest_filter="$filter"
verdict
