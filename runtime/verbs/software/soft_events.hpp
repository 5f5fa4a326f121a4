// SPDX-License-Identifier: BSD-2-Clause
// The asynchronous events of a software provider's context. Any thread; nothing is allocated per
// event: each object carries its place in the queue, and an event that waits already for the same
// object is not queued twice, so the queue is bounded by the objects that exist.
//
// Order: objects in the order of their first waiting event, events of one object as raised; of a
// port, which goes up and down again, the last of a kind.
// Spec: man ibv_get_async_event; IBTA 11.6.3.
#pragma once

#include <cstdint>

#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/event_gate.hpp"
#include "runtime/verbs/software/event_list.hpp"

namespace verbatim {

class SoftEvents {
 public:
  static constexpr int kMaxPorts = 8;

  /// Makes the descriptor: 0 or errno. Put fd() into extended.context.async_fd.
  [[nodiscard]] int open() noexcept;
  [[nodiscard]] int fd() const noexcept { return gate_.fd(); }

  /// Queues an event. REQUIRES: the object it names is not retired; ports are 1 ... kMaxPorts.
  void raise(const ibv_async_event& event) noexcept;
  void raise(Cq& cq, ibv_event_type type) noexcept { raise(cq.async_events, type); }
  void raise(Qp& qp, ibv_event_type type) noexcept { raise(qp.async_events, type); }
  void raise(Srq& srq, ibv_event_type type) noexcept { raise(srq.async_events, type); }
  /// The oldest event: 0, EAGAIN (O_NONBLOCK and empty) or EINTR.
  [[nodiscard]] int get(ibv_async_event& out) noexcept;

  /// For destroy: forgets what was not fetched for the object, then waits until what was fetched is
  /// acknowledged. No raise for it may follow. (A CQ's completion events: SoftCompChannel::retire.)
  void retire(Cq& cq) noexcept;
  void retire(Qp& qp) noexcept;
  void retire(Srq& srq) noexcept;
  void retire(Wq& wq) noexcept;

  /// In a forked child: see EventGate. What was queued is the parent's, also in the links of the
  /// objects, which the caller empties.
  void part_from_parent() noexcept;
  /// See EventGate.
  void doubt_descriptor() noexcept { gate_.doubt_descriptor(); }

 private:
  void raise(EventLink& link, ibv_event_type type) noexcept;
  EventLink& link_of(const ibv_async_event& event) noexcept;
  ibv_async_event event_from(EventLink& link, ibv_event_type type) const noexcept;
  std::uint32_t forget(EventLink& link) noexcept;

  EventGate gate_;
  EventList queue_;                 ///< under the gate's mutex, as the links in it
  EventLink ports_[kMaxPorts + 1];  ///< [0]: the device
};

}  // namespace verbatim
