// SPDX-License-Identifier: BSD-2-Clause
// An acknowledgement is counted in the object's public struct, and wakes all who wait there: for
// completion events and for asynchronous ones of a CQ there is one condition.
#include "runtime/verbs/event_acks.hpp"

#include "runtime/sync/mutex.hpp"
#include "runtime/verbs/event_owner.hpp"
#include "runtime/verbs/strict_events.hpp"

namespace verbatim {
namespace {

/// `given`: by strict_events.hpp's count, into which of the context's.
template <class PlainHandle>
void acknowledge(PlainHandle& handle, std::uint32_t& counter, std::uint32_t count,
                 const std::uint32_t& given,
                 std::atomic<std::uint32_t> Context::*unacked) noexcept {
  const PthreadGuard guard(handle.mutex);
  if (given != 0) [[unlikely]]
    note_acks(given, counter, count, Context::from(handle.context).*unacked);
  counter += count;
  // Broadcast: completion and async waiters of one CQ share the condition.
  ::pthread_cond_broadcast(&handle.cond);
}

/// An asynchronous one.
template <class PlainHandle>
void acknowledge_one(PlainHandle& handle, std::uint32_t& counter,
                     const std::uint32_t& given) noexcept {
  acknowledge(handle, counter, 1, given, &Context::strict_unacked_async);
}

template <class PlainHandle>
void wait_until(PlainHandle& handle, const std::uint32_t& counter,
                std::uint32_t delivered) noexcept {
  const PthreadGuard guard(handle.mutex);
  // A difference, because the counters wrap; an application that acknowledged too much is not kept.
  // Who closes the device goes without: nobody need acknowledge before that.
  while (static_cast<std::int32_t>(delivered - counter) > 0 &&
         !Context::from(handle.context).closing.load(std::memory_order_relaxed)) {
    ::pthread_cond_wait(&handle.cond, &handle.mutex);
  }
}

template <class PlainHandle>
void begin_anew(PlainHandle& handle) noexcept {
  ::pthread_mutex_init(&handle.mutex, nullptr);
  ::pthread_cond_init(&handle.cond, nullptr);
  if (handle.context == nullptr) return;  // it was being made
  Context& context = Context::from(handle.context);
  context.strict_unacked.store(0, std::memory_order_relaxed);
  context.strict_unacked_async.store(0, std::memory_order_relaxed);
}

}  // namespace

void acknowledge_completion_events(Cq& cq, unsigned count) noexcept {
  acknowledge(cq.plain, cq.plain.comp_events_completed, count, cq.strict_given,
              &Context::strict_unacked);
}

void acknowledge_async_event(const ibv_async_event& event) noexcept {
  switch (owner_of(event.event_type)) {
    case EventOwner::kCq:
      acknowledge_one(*event.element.cq, event.element.cq->async_events_completed,
                      Cq::from(event.element.cq).strict_given_async);
      return;
    case EventOwner::kQp:
      acknowledge_one(*event.element.qp, event.element.qp->events_completed,
                      Qp::from(event.element.qp).strict_given);
      return;
    case EventOwner::kSrq:
      acknowledge_one(*event.element.srq, event.element.srq->events_completed,
                      Srq::from(event.element.srq).strict_given);
      return;
    case EventOwner::kWq:
      acknowledge_one(*event.element.wq, event.element.wq->events_completed,
                      Wq::from(event.element.wq).strict_given);
      return;
    case EventOwner::kDevice:
    case EventOwner::kPort:
      return;  // ports and the device outlive their events
  }
}

void wait_for_completion_acks(Cq& cq, std::uint32_t delivered) noexcept {
  wait_until(cq.plain, cq.plain.comp_events_completed, delivered);
}
void wait_for_async_acks(Cq& cq, std::uint32_t delivered) noexcept {
  wait_until(cq.plain, cq.plain.async_events_completed, delivered);
}
void wait_for_async_acks(Qp& qp, std::uint32_t delivered) noexcept {
  wait_until(qp.plain, qp.plain.events_completed, delivered);
}
void wait_for_async_acks(Srq& srq, std::uint32_t delivered) noexcept {
  wait_until(srq.plain, srq.plain.events_completed, delivered);
}
void wait_for_async_acks(Wq& wq, std::uint32_t delivered) noexcept {
  wait_until(wq.plain, wq.plain.events_completed, delivered);
}

void leave_events_to_parent(Cq& cq) noexcept {
  begin_anew(cq.plain);
  cq.completion_events = {};
  cq.async_events = {};
  cq.plain.comp_events_completed = cq.plain.async_events_completed = 0;
  cq.strict_given = cq.strict_given_async = 0;
}
void leave_events_to_parent(Qp& qp) noexcept {
  begin_anew(qp.plain);
  qp.async_events = {};
  qp.plain.events_completed = 0;
  qp.strict_given = 0;
}
void leave_events_to_parent(Srq& srq) noexcept {
  begin_anew(srq.plain);
  srq.async_events = {};
  srq.plain.events_completed = 0;
  srq.strict_given = 0;
}

}  // namespace verbatim
