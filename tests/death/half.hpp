// SPDX-License-Identifier: BSD-2-Clause
//
// One process's side of a round: its queue pairs to one other process, the traffic that it keeps
// flowing over them, and the books: every request has one completion, in order, a message that is
// reported as received is whole, and after an error nothing succeeds any more.
//
// One thread at a time.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "tests/death/plan.hpp"
#include "tests/support/handles.hpp"

namespace verbatim::death {

/// Memory for the traffic with one other process; outlives the rounds.
class Memory {
 public:
  static constexpr std::uint64_t kHuge = 5u << 18;  ///< 1.25 MiB
  static constexpr std::uint64_t kSlot = 256u << 10;
  static constexpr std::uint32_t kSlots = 2;  ///< receives in flight, for each queue pair
  static constexpr std::uint64_t kBytes = kHuge + kMaxQps * (kSlots + 1) * kSlot;

  explicit Memory(bool mapped);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  unsigned char* source() const { return start_; }
  unsigned char* slot(std::uint32_t qp, std::uint64_t serial) const {
    return start_ + kHuge + (qp * kSlots + serial % kSlots) * kSlot;
  }
  /// Where READs and atomics bring what nobody looks at.
  unsigned char* scratch(std::uint32_t qp) const { return slot(kMaxQps, 0) + qp * kSlot; }

 private:
  bool mapped_;
  unsigned char* start_;
};

/// What one side tells the other before they connect.
struct Offer {
  std::uint32_t qpn[kMaxQps] = {};
  std::uint32_t rkey = 0;
  std::uint16_t lid = 0;
  std::uint64_t memory = 0;
};

class Half {
 public:
  enum class Part { kSurvivor, kVictim };
  Half(harness::Session& session, const Memory& memory, const Plan& plan, Part part);
  ~Half();
  Half(const Half&) = delete;
  Half& operator=(const Half&) = delete;

  Offer offer() const;
  void connect(const Offer& other);
  std::string describe() const;
  /// Keeps requests in flight and takes what has completed.
  void pump();
  /// Each queue pair that carries anything has carried something.
  bool all_have_met() const;

  /// REQUIRES: the other process is dead. Goes on until each queue pair has failed and all that was
  /// posted has completed, in time; then what is posted to them flushes.
  void see_the_end(bool sleeping);
  /// Destroys everything; each verb must succeed, and at once.
  void close();
  /// What was wrong; empty when nothing was.
  const std::string& complaints() const { return complaints_; }

 private:
  struct Flow {
    harness::QpHandle qp;
    Op ours = Op::kNone;
    Op theirs = Op::kNone;
    std::uint32_t sends_posted = 0, sends_done = 0;
    std::uint32_t receives_posted = 0, receives_done = 0;
    bool met = false;
    bool failed = false;
    bool send_failed = false;
    ibv_wc_status first_error = IBV_WC_SUCCESS;
  };
  bool receives(const Flow& flow) const;
  void to_init(Flow& flow);
  void post(std::uint32_t q, Op op);
  void post_receives(std::uint32_t q);
  bool poll();
  void take(const ibv_wc& wc);
  void check_message(std::uint32_t q, const ibv_wc& wc);
  void sleep_until_something_completes();
  bool ended() const;
  void expect(bool condition, const std::string& what);

  harness::Session& session_;
  const Memory& memory_;
  const Plan plan_;
  const Part part_;
  Offer other_{};
  harness::ChannelHandle channel_;
  harness::CqHandle cqs_[2];
  harness::MrHandle mr_;
  Flow flows_[kMaxQps];
  std::string complaints_;
};

}  // namespace verbatim::death
