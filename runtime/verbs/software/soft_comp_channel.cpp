// SPDX-License-Identifier: BSD-2-Clause
// A CQ with waiting events is in the channel's list once; its `waiting` counts them. The gate's
// mutex guards both.
#include "runtime/verbs/software/soft_comp_channel.hpp"

#include <pthread.h>

#include <cerrno>
#include <cstddef>

#include "runtime/base/container_of.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/event_acks.hpp"

namespace verbatim {

int SoftCompChannel::open() noexcept {
  const int error = gate_.open();
  if (error == 0) plain.fd = gate_.fd();
  return error;
}

void SoftCompChannel::notify(Cq& cq) noexcept {
  gate_.mutex().lock();
  if (cq.completion_events.waiting++ == 0) queue_.append(cq.completion_events);
  gate_.announce_and_unlock();
}

bool SoftCompChannel::collect(const EventCollector* collector) noexcept {
  if (collector == nullptr || !collector->is_due()) return false;
  // Whoever is cancelled in here would keep locks that are not this channel's alone.
  int before = 0;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  gate_.begin_collecting();
  collector->collect();
  ::pthread_setcancelstate(before, nullptr);
  return true;
}

int SoftCompChannel::get(Cq** out, const EventCollector* collector) noexcept {
  ::pthread_testcancel();  // as read(2) would, also when it does not wait
  gate_.begin_way();
  const int error = get_on_the_way(out, collector);
  gate_.end_way();
  return error;
}

int SoftCompChannel::get_on_the_way(Cq** out, const EventCollector* collector) noexcept {
  for (;;) {
    const bool collected = collect(collector);
    gate_.mutex().lock();
    if (EventLink* const link = queue_.take_first()) {
      --link->waiting;
      ++link->delivered;
      // To the end of the line: one busy CQ does not starve the others.
      if (link->waiting != 0) queue_.append(*link);
      if (queue_.empty()) gate_.became_empty_locked();
      if (collected) gate_.end_collecting_locked(queue_.empty());
      gate_.mutex().unlock();
      *out = container_of<Cq>(link, offsetof(Cq, completion_events));
      return 0;
    }
    if (collected) gate_.end_collecting_locked(true);
    if (const int error = gate_.wait_and_unlock()) return error;
  }
}

void SoftCompChannel::retire(Cq& cq) noexcept {
  if (cq.plain.channel == nullptr) return;
  auto& channel = static_cast<SoftCompChannel&>(CompChannel::from(cq.plain.channel));
  std::uint32_t delivered = 0;
  {
    const LockGuard guard(channel.gate_.mutex());
    EventLink& link = cq.completion_events;
    if (link.waiting != 0) {
      channel.queue_.remove(link);
      link.waiting = 0;
      if (channel.queue_.empty()) channel.gate_.became_empty_locked();
    }
    delivered = link.delivered;
  }
  wait_for_completion_acks(cq, delivered);
}

void SoftCompChannel::part_from_parent() noexcept {
  queue_ = {};
  gate_.part_from_parent();
}

int SoftCompChannelVerbs::create_comp_channel(Context&, CompChannel** out) noexcept {
  auto* const channel = make_nothrow<SoftCompChannel>();
  if (channel == nullptr) return ENOMEM;
  if (const int error = channel->open()) {
    destroy_nothrow(channel);
    return error;
  }
  *out = channel;
  return 0;
}

int SoftCompChannelVerbs::destroy_comp_channel(CompChannel& channel) noexcept {
  destroy_nothrow(static_cast<SoftCompChannel*>(&channel));
  return 0;
}

int SoftCompChannelVerbs::get_cq_event(CompChannel& channel, Cq** out) noexcept {
  return static_cast<SoftCompChannel&>(channel).get(out);
}

}  // namespace verbatim
