// SPDX-License-Identifier: BSD-2-Clause
// Which contexts this process has in use: a bit each. What all processes of a new communicator have
// free they find out together (coll/context_agreement.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace vmpi {

inline constexpr std::size_t kContextWords = 128;

/// All but those of the predefined communicators are free again.
void reset_contexts() noexcept;
[[nodiscard]] const std::uint64_t* free_contexts() noexcept;
/// The lowest that has its bit in `common`, which are free here; from now on it is in use. 0: none.
[[nodiscard]] std::uint32_t take_lowest_context(const std::uint64_t* common) noexcept;
void give_context_back(std::uint32_t context) noexcept;

}  // namespace vmpi
