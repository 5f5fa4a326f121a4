// SPDX-License-Identifier: BSD-2-Clause
//
// Events that are held back: runtime/verbs/software/moderation.hpp, whose looks are the service
// thread's.
//
// From the first completion on the armed word says kHeld: no sender wakes anybody any more. The
// service thread looks a few times in the period whether there are enough, and at its end it raises
// the event whatever there is, so none is lost. What is stored (sends) is counted at once. A
// completion that is no success raises the event at once.
//
// Guarded by the queue's lock; any thread.
#pragma once

#include <cstdint>

struct ibv_modify_cq_attr;

namespace verbatim {
struct Cq;
}

namespace verbatim::shm {

struct Cq;

inline constexpr std::uint16_t kMaxModerationCount = 0xffff;
inline constexpr std::uint16_t kMaxModerationPeriodUs = 0xffff;

int modify_cq(verbatim::Cq& cq, const ibv_modify_cq_attr& attr) noexcept;

/// The events of this queue may be held back. REQUIRES: cq.lock held, as of all below.
bool is_moderated(const Cq& cq) noexcept;
/// What it is armed for, a CqRecord's kind, also while the event is held back.
std::uint32_t armed_for_locked(const Cq& cq) noexcept;
/// It has been armed: counting begins anew.
void begin_count_locked(Cq& cq) noexcept;
/// Something of the kind that it is armed for has come, and is no error: now, or later?
void hold_stored_locked(Cq& cq) noexcept;
void hold_announced_locked(Cq& cq) noexcept;

/// The service thread's looks at events that are held back: the date of the next, ~0 for none. Not
/// under any lock.
std::uint64_t look_at_held(std::uint64_t now) noexcept;

}  // namespace verbatim::shm
