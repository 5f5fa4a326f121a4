// SPDX-License-Identifier: BSD-2-Clause
// VERBATIM_STRICT=1: warnings of what verbs allow and programs regret, once for each object and
// pitfall. Asked in control verbs, and in the cold part of posting, which a provider has every post
// take when is_strict(): the data path knows nothing of it. Any thread.
#pragma once

#include <cstdint>

#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// Whether the user asked for it; read once.
[[nodiscard, gnu::cold]] bool is_strict() noexcept;

/// A queue pair was made: are its CQs large enough for all that use them? And when it goes. A
/// shared receive queue counts whole in each CQ to which it leads, over queue pairs or (of XRC) by
/// itself.
void check_new_qp(Qp& qp) noexcept;
void forget_qp(Qp& qp) noexcept;
void check_new_srq(Srq& srq) noexcept;
void forget_srq(Srq& srq) noexcept;
/// They have another size now.
void check_resized_srq(Srq& srq, std::uint32_t receives) noexcept;
void check_resized_cq(Cq& cq) noexcept;
/// Values that modify_qp was given and has accepted, and that cannot work, or not as meant.
void check_modified_qp(Qp& qp, const ibv_qp_attr& attr, int mask) noexcept;
/// Checks the path of an address handle that was made.
void check_new_ah(Context& context, const ibv_ah_attr& path) noexcept;
/// A request was posted to a send queue of so many entries, and will complete visibly or not. When
/// as many in a row as it has entries will not, no poll makes room any more: said now, before a
/// post is refused. What completes once for each queue's worth never gets there. The caller orders
/// the posts of the queue pair.
[[gnu::cold]] void note_posted(Qp& qp, bool completes, std::uint32_t entries) noexcept;
/// A post was refused: the send queue is full; or its inline data is too long.
[[gnu::cold]] void tell_full_queue(Qp& qp, std::uint32_t entries) noexcept;
[[gnu::cold]] void tell_long_inline(Qp& qp, std::uint64_t bytes, std::uint32_t limit) noexcept;

}  // namespace verbatim
