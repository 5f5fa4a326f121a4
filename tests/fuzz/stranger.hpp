// SPDX-License-Identifier: BSD-2-Clause
//
// A process as others see it: a control segment, doorbells, a place of a wake
// socket. Whoever holds one
// writes every byte of it, so it lies as he likes. It begins as an honest process looks that owns
// one block of queue pair numbers.
#pragma once

#include <cstdint>

#include "providers/shm/fabric/peer_messages.hpp"
#include "providers/shm/wire/layout.hpp"
#include "runtime/base/unique_fd.hpp"

namespace verbatim::fuzz {

class Stranger {
 public:
  static constexpr std::uint64_t kBytes = 1u << 20;
  static constexpr std::uint32_t kRegions = 64;
  static constexpr std::uint32_t kQps = 16;
  static constexpr std::uint64_t kCqTable = 0x1000;
  static constexpr std::uint64_t kMrTable = kCqTable + shm::kMaxCqs * sizeof(shm::CqRecord);
  static constexpr std::uint64_t kQpTable = kMrTable + kRegions * sizeof(shm::RegionRecord);
  static constexpr std::uint64_t kHeap = 0xc000;
  /// Behind what connections use of it: of each the requests to a service thread, and its answers.
  static constexpr std::uint64_t kRequests = 0x80000, kRequestStreamAt = 0xa0000;
  static_assert(kRequestStreamAt + shm::kRequestStreamBytes <= kBytes);
  static_assert(kQpTable + kQps * sizeof(shm::QpRecord) <= kHeap);

  /// Aborts when the system does not give what it needs. `bytes`: room for tables of the test's own
  /// behind kBytes.
  Stranger(std::uint64_t identity, std::uint32_t block, std::uint64_t bytes = kBytes);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  /// As new, but for its identity.
  void restore();

  unsigned char* base() { return base_; }
  shm::SegmentHeader& head() { return *at<shm::SegmentHeader>(0); }
  shm::QpRecord& qp(std::uint32_t i) { return at<shm::QpRecord>(kQpTable)[i]; }
  shm::RegionRecord& region(std::uint32_t i) { return at<shm::RegionRecord>(kMrTable)[i]; }
  shm::CqRecord& cq(std::uint32_t i) { return at<shm::CqRecord>(kCqTable)[i]; }
  template <class T>
  T* at(std::uint64_t offset) {
    return reinterpret_cast<T*>(base_ + offset);
  }
  std::uint32_t qpn(std::uint32_t i) const { return block_ << shm::kQpnBlockBits | i; }

  int segment_fd() const { return segment_.get(); }
  int doorbell_fd() const { return doorbells_.get(); }
  /// REQUIRES: VERBATIM_FABRIC is a folder; the place is made at first use.
  int place_fd() const { return have_place(), place_.get(); }
  /// Where the wakes arrive: nobody else reads there.
  int woken_fd() const { return have_place(), woken_.get(); }

  /// What it says of itself. `cma`: its memory can be copied, so whoever meets it will.
  shm::HelloMessage hello(bool cma) const;
  /// 0 or an errno.
  int introduce(int socket, bool cma) const;
  /// Says what one does who was answered: an errno.
  static int say_met(int socket);

 private:
  void have_place() const;

  std::uint64_t identity_;
  std::uint32_t block_;
  std::uint64_t bytes_;
  UniqueFd segment_;
  UniqueFd doorbells_;
  mutable UniqueFd woken_;
  mutable UniqueFd place_;
  unsigned char* base_ = nullptr;
};

}  // namespace verbatim::fuzz
