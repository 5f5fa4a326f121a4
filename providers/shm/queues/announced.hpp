// SPDX-License-Identifier: BSD-2-Clause
//
// What the doorbells of a completion queue announce and nobody has taken: asked when its event may
// be due. Any thread that holds the queue's lock.
#pragma once

#include <cstdint>

#include "providers/shm/queues/cq.hpp"

namespace verbatim::shm {

/// Whether a queue armed for solicited messages only waits for one of those of `qp`. REQUIRES:
/// has_message(qp).
bool has_solicited(const Qp& qp) noexcept;
/// The queue pair with a message that the doorbells announce, of the kind asked for, that no event
/// told of and that lies there whole, or has failed; nullptr: there is none. REQUIRES: cq.lock.
const Qp* find_untold_whole(const Cq& cq, bool solicited_only) noexcept;
/// An event tells of the first such message of `qp`. REQUIRES: cq.lock.
void note_told(Cq& cq, const Qp& qp) noexcept;
/// A poll has taken all that it could of `qp`. What events told of and is left was not there for the
/// program, since a window is being ended for example, and is told of again. REQUIRES: cq.lock.
void forget_told_ahead(Cq& cq, const Qp& qp) noexcept;
/// No event told of the first message of `qp` that none told of, and it lies there whole, or has
/// failed. REQUIRES: cq.lock, has_message(qp).
bool has_untold_whole(const Cq& cq, const Qp& qp) noexcept;
/// How many messages of that kind are there: looks no further once they are `enough`. More than
/// kMostCounted of one queue pair are so many. A sender that lies makes it wrong,
/// nothing else.
std::uint64_t count_announced(const Cq& cq, bool solicited_only, std::uint64_t enough) noexcept;
inline constexpr std::uint64_t kMostCounted = 1024;

/// How many completions polling would find beside those that are stored, announced or not; of a UD
/// queue pair and of one with shared receives only whether there is one. Looks no further once they
/// are `enough`.
std::uint64_t count_unpolled(const Cq& cq, std::uint64_t enough) noexcept;

}  // namespace verbatim::shm
