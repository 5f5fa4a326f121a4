// SPDX-License-Identifier: BSD-2-Clause
// The completion channel of a software provider: a queue of CQs behind a pollable descriptor. Any
// thread; notify allocates nothing and may enter the kernel (one write and one wake at most, and
// only for the first event of an empty channel or a sleeping reader).
//
// Exactly one event is fetched for each notify. Spec: man ibv_get_cq_event.
#pragma once

#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/event_gate.hpp"
#include "runtime/verbs/software/event_list.hpp"

namespace verbatim {

/// What a provider knows and has not queued: a sleeper was woken for it, and does the rest in
/// ibv_get_cq_event. collect() calls notify() for what there is, of any channel, under locks of the
/// provider's that the application cannot hold.
struct EventCollector {
  bool (*is_due)() noexcept;  ///< cheap; no where others will notify
  void (*collect)() noexcept;
};

class SoftCompChannel : public CompChannel {
 public:
  /// Makes the descriptor: 0 or errno.
  [[nodiscard]] int open() noexcept;

  /// Queues one completion event of `cq`. REQUIRES: cq belongs to this channel and is not retired.
  void notify(Cq& cq) noexcept;
  /// The oldest event's CQ: 0, EAGAIN (O_NONBLOCK and empty) or EINTR.
  [[nodiscard]] int get(Cq** out, const EventCollector* collector = nullptr) noexcept;

  /// For destroy_cq: forgets what was not fetched for `cq`, then waits until what was fetched is
  /// acknowledged. Does nothing for a CQ without a channel. No notify for it may follow.
  static void retire(Cq& cq) noexcept;

  /// In a forked child: see EventGate. What was queued is the parent's, also in the links of the
  /// CQs, which the caller empties.
  void part_from_parent() noexcept;
  /// See EventGate.
  void doubt_descriptor() noexcept { gate_.doubt_descriptor(); }

 protected:
  EventGate& gate() noexcept { return gate_; }
  const EventGate& gate() const noexcept { return gate_; }

 private:
  int get_on_the_way(Cq** out, const EventCollector* collector) noexcept;
  /// Whether it did so. Then the gate's collecting is to be ended.
  bool collect(const EventCollector* collector) noexcept;

  EventGate gate_;
  EventList queue_;  ///< under the gate's mutex, as the links in it
};

/// The three slots, for a provider to inherit: `struct ShmProvider : SoftCompChannelVerbs { ... };`
struct SoftCompChannelVerbs {
  static int create_comp_channel(Context& context, CompChannel** out) noexcept;
  static int destroy_comp_channel(CompChannel& channel) noexcept;
  static int get_cq_event(CompChannel& channel, Cq** out) noexcept;
};

}  // namespace verbatim
