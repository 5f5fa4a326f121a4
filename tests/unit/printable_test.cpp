// SPDX-License-Identifier: BSD-2-Clause
// Which bytes of others' text pass to a log or a terminal, and which become '?'.
#include "runtime/base/printable.hpp"

#include <gtest/gtest.h>

#include <string>

namespace verbatim::unit {
namespace {

std::string line(std::string text) {
  make_printable(text.data(), text.size());
  return text;
}
std::string name(std::string text) {
  make_printable_name(text.data(), text.size());
  return text;
}
std::string instead(std::size_t count) { return std::string(count, '?'); }

/// As UTF-8 writes it, whether it may or not.
std::string encoded(char32_t c) {
  const auto byte = [](char32_t bits) { return static_cast<char>(bits); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | c >> 6), byte(0x80 | (c & 0x3f))};
  if (c < 0x10000)
    return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 0x3f)), byte(0x80 | (c & 0x3f))};
  return {byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & 0x3f)), byte(0x80 | (c >> 6 & 0x3f)),
          byte(0x80 | (c & 0x3f))};
}

TEST(Printable, OfAsciiAllButControlsPass) {
  for (int c = 0; c < 0x80; ++c) {
    const std::string text(3, static_cast<char>(c));
    EXPECT_EQ(line(text), c >= 0x20 && c <= 0x7e ? text : "???") << c;
  }
  EXPECT_EQ(line(""), "");
}

TEST(Printable, NoByteAboveAsciiPassesAlone) {
  for (int c = 0x80; c < 0x100; ++c)
    EXPECT_EQ(line(std::string{'a', static_cast<char>(c), 'b'}), "a?b") << c;
}

TEST(Printable, OfUnicodeAllPassButControlsAndWhatBeginsOrTurnsALine) {
  for (char32_t c = 0x80; c <= 0x10ffff; ++c) {
    const bool stays = c >= 0xa0 && (c < 0x2028 || c > 0x202e) && (c < 0x2066 || c > 0x2069) &&
                       (c < 0xd800 || c > 0xdfff);
    const std::string text = encoded(c);
    ASSERT_EQ(line(text), stays ? text : instead(text.size())) << std::hex << std::uint32_t{c};
  }
  EXPECT_EQ(line("Größe 3 µs, 日本 🙂"), "Größe 3 µs, 日本 🙂");
}

TEST(Printable, WhatIsLongerThanItNeedsToBeOrBeyondUnicodeDoesNotPass) {
  EXPECT_EQ(line("\xc0\x8a"), "??") << "a line's end";
  EXPECT_EQ(line("\xc1\xbf"), "??");
  EXPECT_EQ(line("\xe0\x80\x8a"), "???");
  EXPECT_EQ(line("\xe0\x82\x9b"), "???") << "U+009B";
  EXPECT_EQ(line("\xf0\x80\x82\x9b"), "????");
  EXPECT_EQ(line("\xf4\x90\x80\x80"), "????");
  EXPECT_EQ(line("\xf5\x80\x80\x80"), "????");
}

TEST(Printable, WhatIsCutShortDoesNotPassAndHidesNothingBehindIt) {
  EXPECT_EQ(line("\xe6\x97"), "??");
  EXPECT_EQ(line("\xf0\x9f\x99"), "???");
  EXPECT_EQ(line("\xe6\x1b[2J"), "??[2J");
  EXPECT_EQ(line("\xe6\x97\xc3\xb6"), "??ö");
  EXPECT_EQ(line("\xf0\x9f\n"), "???");
}

TEST(Printable, OfNamesAsciiPassesThatIsSeen) {
  for (int c = 0; c < 0x100; ++c) {
    const std::string text(2, static_cast<char>(c));
    EXPECT_EQ(name(text), c > 0x20 && c < 0x7f ? text : "??") << c;
  }
}

}  // namespace
}  // namespace verbatim::unit
