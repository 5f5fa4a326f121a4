// SPDX-License-Identifier: BSD-2-Clause
// VERBATIM_STRICT=1, of events: who fetches them and acknowledges none has a destroy that never
// returns. Told when a destroy begins to wait, and before that: when very many are owed, and when a
// context is to be closed whose objects still live. Counted where events reach the application,
// since only some providers count in our objects. Any thread.
#pragma once

#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// An event is about to be given to the application, which acknowledges none before it has it.
void note_event(Cq& cq) noexcept;
void note_event(const ibv_async_event& event) noexcept;
/// Some are about to be acknowledged, of those that `given` counts (0: not strict, or none); more
/// than were given are no other object's. The object's public mutex is held.
void note_acks(std::uint32_t given, std::uint32_t acknowledged, std::uint32_t count,
               std::atomic<std::uint32_t>& unacked) noexcept;

/// Destroy is about to wait for events that were fetched and not acknowledged.
void check_acks(Cq& cq) noexcept;
void check_acks(Qp& qp) noexcept;
void check_acks(Srq& srq) noexcept;
void check_acks(Wq& wq) noexcept;
/// Close is asked for.
void check_acks(Context& context) noexcept;

}  // namespace verbatim
