// SPDX-License-Identifier: BSD-2-Clause
// How many events of an object the application has yet to acknowledge is the difference of two
// counters that wrap: `strict_given`, and the acknowledgements in the public struct, under whose
// mutex both are. No mutex covers all objects of a context, so its sums are atomics.
#include "runtime/verbs/strict_events.hpp"

#include <algorithm>

#include "runtime/base/log.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/event_owner.hpp"
#include "runtime/verbs/strict.hpp"
#include "runtime/verbs/strict_pitfalls.hpp"

namespace verbatim {
namespace {

/// More than a program gathers to acknowledge them together.
constexpr std::uint32_t kMany = 1024;

/// A difference, since the counters wrap; 0 when more were acknowledged than given.
std::uint32_t owed(std::uint32_t given, std::uint32_t acknowledged) noexcept {
  const std::uint32_t events = given - acknowledged;
  return static_cast<std::int32_t>(events) > 0 ? events : 0;
}

template <class PlainHandle>
std::uint32_t owed_of(PlainHandle& handle, const std::uint32_t& given,
                      const std::uint32_t& acknowledged) noexcept {
  const PthreadGuard guard(handle.mutex);
  return owed(given, acknowledged);
}

template <class PlainHandle>
std::uint32_t give(PlainHandle& handle, std::uint32_t& given, const std::uint32_t& acknowledged,
                   std::atomic<std::uint32_t>& unacked) noexcept {
  const PthreadGuard guard(handle.mutex);
  unacked.fetch_add(1, std::memory_order_relaxed);
  return owed(++given, acknowledged);
}

/// Counts an event that was given for one object, and warns once that very many are owed.
template <class Object>
void give_async(Object& object, std::uint32_t& given, const std::uint32_t& acknowledged,
                const char* whose, const char* destroy) noexcept {
  const std::uint32_t events =
      give(object.plain, given, acknowledged, context_of(object).strict_unacked_async);
  if (events >= kMany && is_first(object.strict_told, kManyUnackedAsync))
    log_warn(
        "strict: %u asynchronous events of %s were fetched and not acknowledged "
        "(ibv_ack_async_event); %s would wait for each",
        events, whose, destroy);
}
/// It has asynchronous events only.
template <class Object>
void give_async(Object& object, const char* whose, const char* destroy) noexcept {
  give_async(object, object.strict_given, object.plain.events_completed, whose, destroy);
}

/// Whether a destroy is to be told that it waits: not one by which a device is closed.
template <class Object>
bool may_wait(const Object& object) noexcept {
  return is_strict() && !context_of(object).closing.load(std::memory_order_relaxed);
}

template <class Object>
void check_async(Object& object, const char* destroy) noexcept {
  if (!may_wait(object)) return;
  const std::uint32_t events =
      owed_of(object.plain, object.strict_given, object.plain.events_completed);
  if (events != 0 && is_first(object.strict_told, kUnackedAsync))
    log_warn(
        "strict: %s waits for %u asynchronous events that were fetched and not acknowledged "
        "(ibv_ack_async_event)",
        destroy, events);
}

}  // namespace

void note_event(Cq& cq) noexcept {
  if (!is_strict()) return;
  const std::uint32_t events = give(cq.plain, cq.strict_given, cq.plain.comp_events_completed,
                                    context_of(cq).strict_unacked);
  if (events >= kMany && is_first(cq.strict_told, kManyUnacked))
    log_warn(
        "strict: %u completion events of a CQ were fetched and not acknowledged "
        "(ibv_ack_cq_events, which takes many at once); ibv_destroy_cq would wait for each",
        events);
}

void note_event(const ibv_async_event& event) noexcept {
  if (!is_strict()) return;
  switch (owner_of(event.event_type)) {
    case EventOwner::kCq:
      return give_async(Cq::from(event.element.cq), Cq::from(event.element.cq).strict_given_async,
                        event.element.cq->async_events_completed, "a CQ", "ibv_destroy_cq");
    case EventOwner::kQp:
      return give_async(Qp::from(event.element.qp), "a QP", "ibv_destroy_qp");
    case EventOwner::kSrq:
      return give_async(Srq::from(event.element.srq), "an SRQ", "ibv_destroy_srq");
    case EventOwner::kWq:
      return give_async(Wq::from(event.element.wq), "a WQ", "ibv_destroy_wq");
    case EventOwner::kDevice:
    case EventOwner::kPort:
      return;  // nothing waits for those of ports and the device
  }
}

void note_acks(std::uint32_t given, std::uint32_t acknowledged, std::uint32_t count,
               std::atomic<std::uint32_t>& unacked) noexcept {
  unacked.fetch_sub(std::min(owed(given, acknowledged), count), std::memory_order_relaxed);
}

void check_acks(Cq& cq) noexcept {
  if (!may_wait(cq)) return;
  ibv_cq& plain = cq.plain;
  if (const std::uint32_t events = owed_of(plain, cq.strict_given, plain.comp_events_completed);
      events != 0 && is_first(cq.strict_told, kUnacked))
    log_warn(
        "strict: ibv_destroy_cq waits for %u completion events that were fetched and not "
        "acknowledged (ibv_ack_cq_events)",
        events);
  if (const std::uint32_t events =
          owed_of(plain, cq.strict_given_async, plain.async_events_completed);
      events != 0 && is_first(cq.strict_told, kUnackedAsync))
    log_warn(
        "strict: ibv_destroy_cq waits for %u asynchronous events that were fetched and not "
        "acknowledged (ibv_ack_async_event)",
        events);
}

void check_acks(Qp& qp) noexcept {
  if (!may_wait(qp)) return;
  const std::uint32_t events = owed_of(qp.plain, qp.strict_given, qp.plain.events_completed);
  if (events != 0 && is_first(qp.strict_told, kUnackedAsync))
    log_warn(
        "strict: ibv_destroy_qp waits for %u asynchronous events of QP 0x%06x that were fetched "
        "and not acknowledged (ibv_ack_async_event)",
        events, qp.plain.qp_num);
}

void check_acks(Srq& srq) noexcept { check_async(srq, "ibv_destroy_srq"); }
void check_acks(Wq& wq) noexcept { check_async(wq, "ibv_destroy_wq"); }

void check_acks(Context& context) noexcept {
  if (!is_strict()) return;
  const std::uint32_t completion = context.strict_unacked.load(std::memory_order_relaxed);
  const std::uint32_t asynchronous = context.strict_unacked_async.load(std::memory_order_relaxed);
  if ((completion != 0 || asynchronous != 0) && is_first(context.strict_told, kUnacked))
    log_warn(
        "strict: ibv_close_device: %u completion events (ibv_ack_cq_events) and %u asynchronous "
        "events (ibv_ack_async_event) were fetched and not acknowledged; closing waits for none, "
        "destroying their objects would have waited for each",
        completion, asynchronous);
}

}  // namespace verbatim
