// SPDX-License-Identifier: BSD-2-Clause
// What the user set in the environment, bounded and explained: a value that cannot be used is
// named in a warning, together with what is used instead. setuid programs see nothing
// (secure_getenv). Any thread, as far as nobody calls setenv at that moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace verbatim {

/// The variable's text, or nullptr when it is unset, empty, or longer than `max_length` (warned).
[[nodiscard]] const char* environment_text(const char* name, std::size_t max_length) noexcept;

/// A decimal (or 0x hexadecimal) number within [min, max]; otherwise `fallback`.
[[nodiscard]] std::uint64_t environment_integer(const char* name, std::uint64_t fallback,
                                                std::uint64_t min, std::uint64_t max) noexcept;

/// The position of the variable's text in `choices`; otherwise `fallback`.
[[nodiscard]] std::size_t environment_choice(const char* name,
                                             std::span<const std::string_view> choices,
                                             std::size_t fallback) noexcept;

}  // namespace verbatim
