// SPDX-License-Identifier: BSD-2-Clause
//
// What has come in the peer's ring of messages, one after the other (layout.hpp). Every word there
// is the peer's: a line that leads nowhere is shown as a message that nobody takes.
//
// Under the receive CQ's lock.
#pragma once

#include <cstdint>

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// Where the next message is, or will be.
[[nodiscard]] Arrival next_arrival(const Qp& qp) noexcept;
/// The slot of the message at `at`, and its header; nullptr: it has not come. Goes on to the ring
/// and the line where it is. Of a message that is kept in a pack the slot says nothing.
[[nodiscard]] const Slot* find_arrival(const Qp& qp, Arrival& at, std::uint64_t& h) noexcept;
/// Goes on to the message behind those that lie in `slot`, the one at `at`, which has the header `h`.
void pass_arrival(const Qp& qp, Arrival& at, const Slot& slot, std::uint64_t h) noexcept;
/// The next message's slot, as find_arrival(); what lies before it is left for good.
[[nodiscard]] const Slot* find_next_message(Qp& qp, std::uint64_t& h) noexcept;

/// Whether the sender has put all of such a message there, or the rest of it in its place.
bool is_produced(const Qp& qp, const Slot& slot) noexcept;

}  // namespace verbatim::shm
