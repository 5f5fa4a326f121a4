// SPDX-License-Identifier: BSD-2-Clause
// An object's waiting event types are 5-bit numbers in one word, the oldest lowest: no object has
// more than 8 types of its own, so 12 places are enough. The gate's mutex guards it.
#include "runtime/verbs/software/soft_events.hpp"

#include <pthread.h>

#include <cstddef>

#include "runtime/base/container_of.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/event_acks.hpp"
#include "runtime/verbs/event_owner.hpp"

namespace verbatim {
namespace {

constexpr unsigned kBitsPerKind = 5;
constexpr std::uint64_t kKindMask = (1u << kBitsPerKind) - 1;

bool waits_already(const EventLink& link, std::uint64_t kind) noexcept {
  for (std::uint32_t i = 0; i < link.waiting; ++i) {
    if ((link.kinds >> (i * kBitsPerKind) & kKindMask) == kind) return true;
  }
  return false;
}

/// The last word about a port is the one that counts: what is said once more goes behind what was
/// said since.
void say_last(EventLink& link, std::uint64_t kind) noexcept {
  std::uint64_t others = 0;
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < link.waiting; ++i) {
    const std::uint64_t one = link.kinds >> (i * kBitsPerKind) & kKindMask;
    if (one != kind) others |= one << (kept++ * kBitsPerKind);
  }
  link.kinds = others | kind << (kept * kBitsPerKind);
}

}  // namespace

int SoftEvents::open() noexcept { return gate_.open(); }

EventLink& SoftEvents::link_of(const ibv_async_event& event) noexcept {
  switch (owner_of(event.event_type)) {
    case EventOwner::kCq:
      return Cq::from(event.element.cq).async_events;
    case EventOwner::kQp:
      return Qp::from(event.element.qp).async_events;
    case EventOwner::kSrq:
      return Srq::from(event.element.srq).async_events;
    case EventOwner::kWq:
      return Wq::from(event.element.wq).async_events;
    case EventOwner::kDevice:
      return ports_[0];
    case EventOwner::kPort:
      break;
  }
  return ports_[event.element.port_num];
}

ibv_async_event SoftEvents::event_from(EventLink& link, ibv_event_type type) const noexcept {
  ibv_async_event event{};
  event.event_type = type;
  switch (owner_of(type)) {
    case EventOwner::kCq:
      event.element.cq = &container_of<Cq>(&link, offsetof(Cq, async_events))->plain;
      break;
    case EventOwner::kQp:
      event.element.qp = &container_of<Qp>(&link, offsetof(Qp, async_events))->plain;
      break;
    case EventOwner::kSrq:
      event.element.srq = &container_of<Srq>(&link, offsetof(Srq, async_events))->plain;
      break;
    case EventOwner::kWq:
      event.element.wq = &container_of<Wq>(&link, offsetof(Wq, async_events))->plain;
      break;
    case EventOwner::kDevice:
    case EventOwner::kPort:
      event.element.port_num = static_cast<int>(&link - ports_);
      break;
  }
  return event;
}

void SoftEvents::raise(const ibv_async_event& event) noexcept {
  raise(link_of(event), event.event_type);
}

void SoftEvents::raise(EventLink& link, ibv_event_type type) noexcept {
  const auto kind = static_cast<std::uint64_t>(type);
  gate_.mutex().lock();
  if (waits_already(link, kind)) {
    if (&link >= ports_ && &link <= ports_ + kMaxPorts) say_last(link, kind);
    gate_.mutex().unlock();
    return;
  }
  if (link.waiting == 0) queue_.append(link);
  link.kinds |= kind << (link.waiting * kBitsPerKind);
  ++link.waiting;
  gate_.announce_and_unlock();
}

int SoftEvents::get(ibv_async_event& out) noexcept {
  ::pthread_testcancel();  // as read(2) would, also when it does not wait
  for (;;) {
    gate_.mutex().lock();
    if (EventLink* const link = queue_.first()) {
      const auto type = static_cast<ibv_event_type>(link->kinds & kKindMask);
      link->kinds >>= kBitsPerKind;
      --link->waiting;
      ++link->delivered;
      if (link->waiting == 0) queue_.take_first();
      if (queue_.empty()) gate_.became_empty_locked();
      out = event_from(*link, type);
      gate_.mutex().unlock();
      return 0;
    }
    if (const int error = gate_.wait_and_unlock()) return error;
  }
}

void SoftEvents::part_from_parent() noexcept {
  queue_ = {};
  for (EventLink& port : ports_) port = {};
  gate_.part_from_parent();
}

std::uint32_t SoftEvents::forget(EventLink& link) noexcept {
  const LockGuard guard(gate_.mutex());
  if (link.waiting != 0) {
    queue_.remove(link);
    link.waiting = 0;
    link.kinds = 0;
    if (queue_.empty()) gate_.became_empty_locked();
  }
  return link.delivered;
}

void SoftEvents::retire(Cq& cq) noexcept { wait_for_async_acks(cq, forget(cq.async_events)); }
void SoftEvents::retire(Qp& qp) noexcept { wait_for_async_acks(qp, forget(qp.async_events)); }
void SoftEvents::retire(Srq& srq) noexcept { wait_for_async_acks(srq, forget(srq.async_events)); }
void SoftEvents::retire(Wq& wq) noexcept { wait_for_async_acks(wq, forget(wq.async_events)); }

}  // namespace verbatim
