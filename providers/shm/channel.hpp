// SPDX-License-Identifier: BSD-2-Clause
//
// A completion channel whose sleepers are woken by the very process that sends to them. A thread in
// ibv_get_cq_event sleeps on two words: one of our own, and one of our segment. A sender that finds
// a CQ of the channel armed leaves the CQ's number in the doorbells and wakes one sleeper by the
// latter, who looks at the CQ itself and queues the event. When futex(2) says that nobody slept
// there (the application polls the descriptor, or does something else), the sender wakes the
// service thread, which does the same. So a lost wake-up is nobody's to prevent: a sleeper is
// woken, or the service thread notifies, by the word that no peer reaches.
//
// A peer that sleeps on the shown word steals wake-ups: that delays an event until the service
// thread's sweep, as clearing doorbells does. Any thread.
#pragma once

#include "providers/shm/fabric/layout.hpp"
#include "runtime/verbs/software/soft_channel.hpp"

namespace verbatim::shm {

class Channel : public SoftChannel {
 public:
  Channel() noexcept = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  /// 0 or errno.
  [[nodiscard]] int open() noexcept;
  /// Number + 1 of the record in the segment by which a sender wakes; 0: it should wake the service
  /// thread, since there is no record, or the application sleeps in poll(2).
  [[nodiscard]] std::uint32_t shown_record() const noexcept {
    return gate().is_slept_at() ? record_ : 0;
  }

  Channel* next_live = nullptr;  ///< live.channels
  Channel* prev_live = nullptr;

 private:
  void give_record() noexcept;

  std::uint32_t record_ = 0;
};

int create_comp_channel(verbatim::Context& context, CompChannel** out) noexcept;
int destroy_comp_channel(CompChannel& channel) noexcept;
int get_cq_event(CompChannel& channel, verbatim::Cq** out) noexcept;

/// Wakes a thread that sleeps for an event of channel record `record` (number + 1). False: nobody
/// did. `head` is the stranger's.
bool wake_sleeper(const SegmentHeader& head, std::uint32_t record) noexcept;

}  // namespace verbatim::shm
