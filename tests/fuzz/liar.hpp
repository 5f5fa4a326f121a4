// SPDX-License-Identifier: BSD-2-Clause
//
// A stranger's half of a connection: knows what an honest one would say, and says it, or not.
#pragma once

#include "tests/fuzz/input.hpp"
#include "tests/fuzz/stranger.hpp"

namespace verbatim::fuzz {

/// What a stranger knows of the one it lies to.
struct Target {
  const shm::QpRecord* record = nullptr;
  std::uint32_t qpn = 0;
  std::uint32_t keys[4] = {};
  std::uint64_t addresses[4] = {};
  std::uint64_t arena_bytes = 0;
};

class Liar {
 public:
  static constexpr std::uint32_t kDepth = 8;
  static constexpr std::uint32_t kLines = 1u << shm::kFirstRingLog;  ///< of its ring
  static constexpr std::uint32_t kSges = 2;
  /// What targets name in their requests: see claim_region().
  static constexpr std::uint64_t kIova = 0x10000;
  static constexpr std::uint32_t key_of(std::uint32_t region) { return region << 8 | 1; }

  Liar(Stranger& stranger, std::uint32_t index, const Target& target)
      : stranger_(stranger), index_(index), target_(target) {}

  /// The record of an honest process that is ready to connect.
  void be_ready();
  /// And what it says when the other has become ready too.
  void connect();
  /// The next thing that comes to its mind. True: a request for the other's service thread.
  bool act(Input& input);
  shm::QpRecord& record() { return stranger_.qp(index_); }

 private:
  std::uint64_t heap() const { return Stranger::kHeap + index_ * 0x6000ull; }
  std::uint64_t ring() const { return heap() + 0x1000; }
  std::uint64_t stream_ring() const { return heap() + 0x2000; }
  std::uint64_t bounce() const { return heap() + 0x4000; }
  std::uint64_t requests() const { return Stranger::kRequests + index_ * 0x2000ull; }
  std::uint64_t answers() const { return requests() + 0x1800; }
  std::uint64_t session() const { return target_.record->accepts.load(); }

  void scribble(Input& input);
  void lie_in_record(Input& input);
  void put_message(Input& input);
  void give_credit(Input& input);
  void claim_region(Input& input);
  void ask(Input& input);
  void put_request(Input& input);
  void answer(Input& input);

  Stranger& stranger_;
  std::uint32_t index_;
  const Target& target_;
  std::uint32_t line_ = 0;
  std::uint32_t credits_ = 0;
};

}  // namespace verbatim::fuzz
