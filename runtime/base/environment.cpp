// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/base/environment.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/log.hpp"

namespace verbatim {
namespace {

/// -1 for what is no digit of the base.
int digit_of(char c, unsigned base) noexcept {
  int digit = -1;
  if (c >= '0' && c <= '9') digit = c - '0';
  if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
  if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
  return digit < static_cast<int>(base) ? digit : -1;
}

/// All of the text, without sign or blanks, and not beyond 64 bits. (std::from_chars would leave a
/// table of the C++ library in the archive.)
bool parse_number(const char* text, std::uint64_t& value) noexcept {
  const bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const unsigned base = hexadecimal ? 16 : 10;
  if (hexadecimal) text += 2;
  if (*text == '\0') return false;
  std::uint64_t sum = 0;
  for (; *text != '\0'; ++text) {
    const int digit = digit_of(*text, base);
    if (digit < 0 || __builtin_mul_overflow(sum, base, &sum) ||
        __builtin_add_overflow(sum, static_cast<unsigned>(digit), &sum)) {
      return false;
    }
  }
  value = sum;
  return true;
}

}  // namespace

const char* environment_text(const char* name, std::size_t max_length) noexcept {
  const char* text = ::secure_getenv(name);
  if (text == nullptr || *text == '\0') return nullptr;
  if (::strnlen(text, max_length + 1) > max_length) {
    log_warn("%s is longer than %zu characters; ignored", name, max_length);
    return nullptr;
  }
  return text;
}

std::uint64_t environment_integer(const char* name, std::uint64_t fallback, std::uint64_t min,
                                  std::uint64_t max) noexcept {
  constexpr std::size_t kLongestNumber = 32;
  const char* text = environment_text(name, kLongestNumber);
  if (text == nullptr) return fallback;
  std::uint64_t value = 0;
  if (!parse_number(text, value) || value < min || value > max) {
    log_warn("%s='%s' is not a number from %" PRIu64 " to %" PRIu64 "; using %" PRIu64, name, text,
             min, max, fallback);
    return fallback;
  }
  return value;
}

std::size_t environment_choice(const char* name, std::span<const std::string_view> choices,
                               std::size_t fallback) noexcept {
  constexpr std::size_t kLongestChoice = 64;
  const char* text = environment_text(name, kLongestChoice);
  if (text == nullptr) return fallback;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == text) return i;
  }
  // The known words in one line; what does not fit is left out of the line, not of the choice.
  char known[256] = "";
  std::size_t used = 0;
  for (const std::string_view choice : choices) {
    if (used + choice.size() + 3 > sizeof known) break;
    if (used != 0) known[used++] = ' ';
    std::memcpy(known + used, choice.data(), choice.size());
    used += choice.size();
    known[used] = '\0';
  }
  log_warn("%s='%s' is not one of: %s; using %.*s", name, text, known,
           static_cast<int>(choices[fallback].size()), choices[fallback].data());
  return fallback;
}

}  // namespace verbatim
