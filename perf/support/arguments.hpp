// SPDX-License-Identifier: BSD-2-Clause
// Reading what people type: sizes, size ranges, counts. Each parser takes the whole text or
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::perf {

/// "8", "4K", "64KiB", "1M", "2G": powers of 1024. Nothing for anything else, or on overflow.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// "8,4K,1M" and "8..4M" (powers of two from the first up to the second) in any mixture, ascending
/// and without repeats.
std::optional<std::vector<std::uint64_t>> parse_sizes(std::string_view text);

/// A decimal number within [low, high].
std::optional<int> parse_count(std::string_view text, int low, int high);

/// 8 -> "8", 4096 -> "4 KiB"; not exact multiples stay in bytes.
std::string size_text(std::uint64_t bytes);

}  // namespace verbatim::perf
