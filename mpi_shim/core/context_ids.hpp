// SPDX-License-Identifier: BSD-2-Clause
// Which contexts this process has in use: a bit each. What all processes of a new communicator have
// free they find out together (coll/context_agreement.hpp). Who may not wait for that takes one of
// those that one process gives out, which are never used again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vmpi {

inline constexpr std::size_t kContextWords = 128;

/// All but those of the predefined communicators are free again.
void reset_contexts() noexcept;
[[nodiscard]] const std::uint64_t* free_contexts() noexcept;
/// While an agreement has them on offer, others may use one of them before this process knows
/// which.
void offer_contexts(bool are_offered) noexcept;
[[nodiscard]] bool are_contexts_offered() noexcept;
/// The lowest that has its bit in `common`, which are free here; from now on it is in use. 0: none.
[[nodiscard]] std::uint32_t take_lowest_context(const std::uint64_t* common) noexcept;
/// Of those that are given out, nothing.
void give_context_back(std::uint32_t context) noexcept;
/// Of those that are given out: its communicator was freed here.
void remember_given_back(std::uint32_t context) noexcept;
/// Whether this process will have no communicator of this context to which messages that it has now
/// belong. REQUIRES: it has none.
[[nodiscard]] bool is_context_over(std::uint32_t context) noexcept;

/// Of a communicator whose context nobody has given out yet.
inline constexpr std::uint32_t kContextToCome = 0x80000000u;
/// One that no other process gives out; 0: none is left.
[[nodiscard]] std::uint32_t give_out_context(int world_rank, int world_size) noexcept;
/// Whether that process may have given it out.
[[nodiscard]] bool is_context_of(std::uint32_t context, int world_rank, int world_size) noexcept;

}  // namespace vmpi
