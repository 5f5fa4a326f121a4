// SPDX-License-Identifier: BSD-2-Clause
//
// One row of the fault table (IBTA 9.9.2, 9.9.3, 10.10.3): a request that fails between one that
// has succeeded and others that follow, on a connection of its own, with everything that must come
// of it at both ends:
//
//   requester   success, the fault's status, flushes in order; its receives flushed in order; what
//               is posted afterwards flushed too; the error state
//   responder   untouched: in service, its receives still posted, no event; or failed: the error
//               state before anybody polls, the event that names the fault (none when a receive
//               completion tells of it), its receives and its waiting sends flushed in order
//
// One thread. The bytes at both ends stay as they were, except where a test says otherwise.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/expect.hpp"

namespace verbatim::harness {

/// What a fault does to the other side.
struct Responder {
  bool fails = false;
  int event = -1;                               ///< ibv_event_type, or -1: none
  ibv_wc_status receive = IBV_WC_WR_FLUSH_ERR;  ///< of its first posted receive
  bool kernel_denies = false;  ///< a kernel's device may call it an access error, at both ends
};
inline constexpr Responder kUntouched{};
inline constexpr Responder kAccessFault{true, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR};
inline constexpr Responder kRequestFault{true, IBV_EVENT_QP_REQ_ERR, IBV_WC_WR_FLUSH_ERR};
/// A right that the queue pair lacks: which of the two it is, adapters do not agree.
inline constexpr Responder kRightFault{true, IBV_EVENT_QP_REQ_ERR, IBV_WC_WR_FLUSH_ERR, true};
/// The receive's own completion tells of it; no event.
inline constexpr Responder in_receive(ibv_wc_status status) { return {true, -1, status, false}; }

/// Around the ways that a message can take: slot, stream ring, direct copy, stream, chunks.
inline constexpr std::uint64_t kFaultSizes[] = {1, 56, 57, 2000, 100'000, 1_MiB};

class FaultScene {
 public:
  static constexpr std::uint64_t kSize = 1_MiB + 4096;

  explicit FaultScene(Setting setting, const PairWish& wish = {});

  /// Runs `fault` (whose wr_id does not matter) and looks at all of the above. `receives`: what `b`
  /// has posted; by default three that are large enough. Returns how long the fault took from its
  /// post to its completion, in milliseconds.
  double expect(const char* what, const Request& fault, ibv_wc_status status, Responder responder,
                const std::vector<Receive>& receives);
  double expect(const char* what, const Request& fault, ibv_wc_status status, Responder responder);
  /// Both ends' memory is as it was: from these offsets on, where the device carries messages
  /// packet by packet. What came of a message before its fault was found stays there, and so does
  /// what an atomic did whose answer had nowhere to go.
  struct From {
    std::uint64_t local = 0;
    std::uint64_t remote = 0;
  };
  void expect_memory_untouched(From from_packets = {0, 0});
  /// A device that the kernel has, and not this process alone.
  bool device_is_the_kernels();

  Pair pair;
  RegionInfo local;   ///< kSize bytes at `a`
  RegionInfo remote;  ///< and at `b`

 private:
  double run(const Request& fault, ibv_wc_status status, Responder responder,
             const std::vector<Receive>& receives, bool responder_sends);
  void expect_requester_ended(const QpInfo& qa);
  void expect_responder_failed(const QpInfo& qb, Responder responder,
                               const std::vector<Receive>& receives, bool sends_waited);
  void expect_responder_untouched(const QpInfo& qb);
  void let_service_thread_pass();

  RegionInfo aside_a_;  ///< for requests that succeed
  RegionInfo aside_b_;
};

}  // namespace verbatim::harness
