// SPDX-License-Identifier: BSD-2-Clause
// Acknowledging events, and waiting for it: an object must not disappear while an event that names
// it is in the application's hands (man ibv_destroy_cq, ibv_destroy_qp, ibv_get_async_event). The
// counters live in the public structs under their own mutex. Any thread.
#pragma once

#include <cstdint>

#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// ibv_ack_cq_events.
void acknowledge_completion_events(Cq& cq, unsigned count) noexcept;
/// ibv_ack_async_event; port and device events need none.
void acknowledge_async_event(const ibv_async_event& event) noexcept;

/// Return when as many events are acknowledged as were ever delivered for the object, or at once
/// when its device is being closed. Providers call them in destroy, after the last delivery and
/// before the free; the counts are theirs (a kernel tells them in the reply to its destroy command).
void wait_for_completion_acks(Cq& cq, std::uint32_t delivered) noexcept;
void wait_for_async_acks(Cq& cq, std::uint32_t delivered) noexcept;
void wait_for_async_acks(Qp& qp, std::uint32_t delivered) noexcept;
void wait_for_async_acks(Srq& srq, std::uint32_t delivered) noexcept;
void wait_for_async_acks(Wq& wq, std::uint32_t delivered) noexcept;

/// In a forked child, whose parent has fetched the events and acknowledges them: here nothing is
/// queued, nothing awaited, and nobody holds the lock.
void leave_events_to_parent(Cq& cq) noexcept;
void leave_events_to_parent(Qp& qp) noexcept;
void leave_events_to_parent(Srq& srq) noexcept;

}  // namespace verbatim
