// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_completion.hpp"

#include "perf/cli/failure.hpp"
#include "perf/cli/perf_exchange.hpp"

namespace verbatim::cli {
namespace {

const char* advice(ibv_wc_status status, const PerfExchange& peer) {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
      return ": does the other side run this test with the same -s, -q and -c?";
    default:
      return peer.peer_has_left() ? ": the other side has left; look at its own message" : "";
  }
}

}  // namespace

void fail_completion(const ibv_wc& wc, const char* of, const PerfExchange& peer) {
  if (peer.endless() && peer.peer_has_left()) throw PeerHasLeft{};
  fail("Completion of a %s with status %d (%s)%s", of, static_cast<int>(wc.status),
       ibv_wc_status_str(wc.status), advice(wc.status, peer));
}

void fail_length(std::uint32_t came, std::uint32_t expected) {
  fail("a message of %u bytes came where %u were expected: give both sides the same -s", came,
       expected);
}

}  // namespace verbatim::cli
