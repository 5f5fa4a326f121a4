// SPDX-License-Identifier: BSD-2-Clause
//
// The victim's XRC side that faces a hostile peer: an initiator that sends to queues of the peer's
// and to its own, a target, and a queue that the peer's endpoints lead to. One thread.
#pragma once

#include <random>
#include <unordered_map>

#include "tests/fuzz/guarded_memory.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/hostile/orders.hpp"
#include "tests/support/handles.hpp"

namespace verbatim::hostile {

class XrcFront {
 public:
  XrcFront();
  void tell(VictimFacts& facts) const;
  /// One turn of everything.
  void turn(const VictimOrder& order, std::mt19937_64& random);
  /// No memory but that of receives, and of regions with rights, has changed.
  void judge() const;
  /// Ends all, once nobody is left who could be in the way.
  void finish(VictimReport& report);

 private:
  static constexpr std::uint32_t kPieces = 16;
  static constexpr std::uint64_t kPiece = 4096;
  static constexpr std::uint64_t kUsed = kPiece - 64;
  static constexpr std::uint64_t kRemote = (kPieces + 1) * kPiece;
  static constexpr std::uint32_t kMostReceives = 24;

  std::uint32_t piece_at(std::uint32_t i) const { return i * static_cast<std::uint32_t>(kPiece); }
  void connect(const VictimOrder& order);
  bool end_initiator();
  bool end_target();
  void send(const VictimOrder& order, std::mt19937_64& random);
  void receive(std::mt19937_64& random);
  void poll();

  fuzz::GuardedMemory memory_{(kPieces + 5) * kPiece};
  harness::Session session_;
  harness::CqHandle send_cq_, receive_cq_;
  harness::XrcdHandle xrcd_;
  harness::MrHandle local_, remote_;
  harness::SrqHandle srq_;
  harness::QpHandle initiator_, target_;
  std::uint32_t srqn_ = 0;
  bool initiates_ = false, answers_ = false, failed_ = false;
  std::unordered_map<std::uint64_t, bool> sends_;              ///< wr_id -> not to ourselves
  std::unordered_map<std::uint64_t, std::uint64_t> receives_;  ///< wr_id -> bytes
  std::uint64_t next_id_ = 1;
  std::uint64_t connections_ = 0, completions_ = 0, sent_ = 0, arrived_ = 0;
};

}  // namespace verbatim::hostile
