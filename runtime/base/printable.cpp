// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/base/printable.hpp"

#include <cstring>

namespace verbatim {
namespace {

constexpr char kInstead = '?';

constexpr std::size_t length_by_lead(unsigned char lead) noexcept {
  if (lead < 0x80) return 1;
  // Between are those that only go on, or begin what is longer than it needs to be.
  if (lead < 0xc2 || lead > 0xf4) return 0;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/// The length of the well-formed character at `text` (The Unicode Standard, 3.9, D92); 0: none.
std::size_t read_character(const char* text, std::size_t left, char32_t& character) noexcept {
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = length_by_lead(lead);
  if (length == 0 || length > left) return 0;
  character = length == 1 ? lead : lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    character = character << 6 | (next & 0x3fu);
  }
  const bool is_surrogate = character >= 0xd800 && character <= 0xdfff;
  return character < kLeast[length] || is_surrogate || character > 0x10ffff ? 0 : length;
}

bool may_stay(char32_t c) noexcept {
  const bool is_control = c < ' ' || (c >= 0x7f && c <= 0x9f);
  const bool leads_astray = (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return !is_control && !leads_astray;
}

}  // namespace

void make_printable(char* text, std::size_t size) noexcept {
  for (std::size_t i = 0; i < size;) {
    char32_t character = 0;
    const std::size_t length = read_character(text + i, size - i, character);
    if (length != 0 && may_stay(character)) {
      i += length;
      continue;
    }
    const std::size_t bad = length == 0 ? 1 : length;
    std::memset(text + i, kInstead, bad);
    i += bad;
  }
}

void make_printable_name(char* text, std::size_t size) noexcept {
  for (std::size_t i = 0; i < size; ++i) {
    if (text[i] < '!' || text[i] > '~') text[i] = kInstead;
  }
}

}  // namespace verbatim
