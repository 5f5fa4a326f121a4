// SPDX-License-Identifier: BSD-2-Clause
//
// Numbers that the environment may give to tests. A value that means nothing ends the program,
// since what it would show is not what was asked for.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace verbatim::harness {

/// Nothing for what is no decimal number from `least` to `most`.
inline std::optional<std::int32_t> parse_number(std::string_view text, std::int32_t least,
                                                std::int32_t most) {
  std::int32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  if (value < least || value > most) return std::nullopt;
  return value;
}

/// The variable `name`, or `usual` where there is none.
inline std::int32_t number_of_environment(const char* name, std::int32_t usual, std::int32_t least,
                                          std::int32_t most) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return usual;
  if (const auto value = parse_number(text, least, most)) return *value;
  std::fprintf(stderr, "%s=%s: must be a number from %d to %d\n", name, text,
               static_cast<int>(least), static_cast<int>(most));
  std::exit(2);
}

}  // namespace verbatim::harness
