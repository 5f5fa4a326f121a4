// SPDX-License-Identifier: BSD-2-Clause
//
// Random requests between two ends, compared byte by byte with a model of what verbs promise. The
// model is a copy of each end's memory, changed by each request in the order of the posts; what the
// specification leaves unordered is ordered by a fence, as a program that cares would do.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/support/expect.hpp"

namespace verbatim::harness {

class RandomTraffic {
 public:
  RandomTraffic(Pair& pair, std::uint64_t seed);
  /// Posts, completes and checks at least this many requests.
  void run(std::uint64_t requests);

 private:
  static constexpr std::uint64_t kTargetSize = 256_KiB;
  static constexpr std::uint64_t kSlotSize = 64_KiB;  ///< one request's own place, nothing overlaps
  static constexpr std::uint32_t kMostInBatch = 24;

  /// An end as both requester (source, sink) and target.
  struct End {
    Side& side;
    QpInfo qp;
    RegionInfo source;  ///< never changes: what is sent
    RegionInfo sink;    ///< a slot per request of a batch: what is read
    RegionInfo target;  ///< what one-sided requests of the other end change
    RegionInfo inbox;   ///< a slot per receive of a batch
    std::vector<std::uint8_t> source_bytes;
    std::vector<std::uint8_t> target_model;
  };
  /// What must be found once the batch has completed.
  struct Expected {
    std::vector<std::uint8_t> in_sink;  ///< at the request's slot of the sink, in the cut of `sink`
    SliceList sink;
    ibv_wc_opcode opcode;
    bool signaled;
  };
  struct ExpectedMessage {
    ibv_wc_opcode opcode;
    std::uint64_t length;
    bool has_imm;
    std::uint32_t imm;
    std::vector<std::uint8_t> bytes;  ///< empty for a write with immediate
    SliceList cut;
  };

  void one_batch(End& from, End& to);
  Request random_request(End& from, End& to, std::uint32_t slot);
  void add_receive(End& to, const Request& request);
  std::uint64_t random_length();
  /// `length` bytes of the region from `offset` on, cut into random pieces with no gaps.
  SliceList random_cut(const RegionInfo& region, std::uint64_t offset, std::uint64_t length);
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  void check_batch(End& from, End& to, const std::vector<Request>& requests);
  static End make_end(Side& side, const QpInfo& qp, MemoryKind kind, std::uint32_t seed);

  std::mt19937_64 random_;
  End ends_[2];
  bool only_forward_;
  std::vector<Expected> expected_;
  std::vector<ExpectedMessage> messages_;
  std::vector<Receive> receives_;
  bool fence_needed_ = false;
};

}  // namespace verbatim::harness
