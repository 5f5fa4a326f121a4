// SPDX-License-Identifier: BSD-2-Clause
//
// A completion channel whose sleepers are woken by the very process that sends to them. A thread in
// ibv_get_cq_event sleeps on two words: one of our own, and one of our segment. A sender that finds
// a CQ of the channel armed leaves the CQ's number in the doorbells and wakes one sleeper by the
// latter, who looks at the CQ itself and queues the event. When futex(2) says that nobody slept
// there, a thread may be on the way, which shows itself and looks at the doorbells before it
// leaves; or one may poll, which silences the CQ's own bell. When there is none (the application
// waits for the descriptor, or does something else), the sender wakes the service thread, which
// does what the sleeper would. So a lost wake-up is nobody's to prevent: a sleeper is woken, or the
// service thread notifies, by the word that no peer reaches.
//
// A peer that sleeps on the shown word steals wake-ups: that delays an event until the service
// thread's sweep, as clearing doorbells does. Any thread.
#pragma once

#include "providers/shm/fabric/segment.hpp"
#include "runtime/verbs/software/soft_comp_channel.hpp"

namespace verbatim::shm {

struct Cq;

class ShmCompChannel : public SoftCompChannel {
 public:
  ShmCompChannel() noexcept = default;
  ShmCompChannel(const ShmCompChannel&) = delete;
  ShmCompChannel& operator=(const ShmCompChannel&) = delete;
  ~ShmCompChannel();

  /// 0 or errno.
  [[nodiscard]] int open() noexcept;
  /// Number + 1 of the record in the segment by which a sender wakes; 0: it should wake the service
  /// thread, since there is no record, or the application sleeps in poll(2).
  [[nodiscard]] std::uint32_t shown_record() const noexcept {
    return gate().is_slept_at() ? record_ : 0;
  }

  ShmCompChannel* next_live = nullptr;  ///< live.comp_channels
  ShmCompChannel* prev_live = nullptr;

 private:
  void give_record() noexcept;

  std::uint32_t record_ = 0;
};

int create_comp_channel(verbatim::Context& context, CompChannel** out) noexcept;
int destroy_comp_channel(CompChannel& channel) noexcept;
int get_cq_event(CompChannel& channel, verbatim::Cq** out) noexcept;

/// Wakes a thread that sleeps for an event of channel record `record` (number + 1); or leaves it to
/// one that is on the way, or polls. False: there is none. `segment` is the stranger's, whose
/// doorbells have been rung: for CQ `cq`, and its member `bit`.
bool wake_sleeper(const PeerSegment& segment, std::uint32_t record, std::uint32_t cq,
                  std::uint32_t bit) noexcept;

/// Raises the event of an armed CQ. REQUIRES: cq.lock held.
void raise_locked(Cq& cq) noexcept;

}  // namespace verbatim::shm
