// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/cpu_list.hpp"

namespace verbatim::topo {
namespace {

/// A decimal number below NumberSet::kEnd; moves `at` behind it.
bool take_number(const char*& at, std::uint32_t& number) noexcept {
  if (*at < '0' || *at > '9') return false;
  number = 0;
  for (; *at >= '0' && *at <= '9'; ++at) {
    number = number * 10 + static_cast<std::uint32_t>(*at - '0');
    if (number >= NumberSet::kEnd) return false;
  }
  return true;
}

}  // namespace

std::uint32_t NumberSet::count() const noexcept {
  std::uint32_t sum = 0;
  for (const std::uint64_t word : words_)
    sum += static_cast<std::uint32_t>(__builtin_popcountll(word));
  return sum;
}

std::uint32_t NumberSet::next(std::uint32_t from) const noexcept {
  for (std::uint32_t number = from; number < kEnd; number = (number / 64 + 1) * 64) {
    const std::uint64_t rest = words_[number / 64] >> (number % 64);
    if (rest != 0) return number + static_cast<std::uint32_t>(__builtin_ctzll(rest));
  }
  return kEnd;
}

bool NumberSet::parse(const char* text) noexcept {
  clear();
  const char* at = text;
  while (*at == ' ' || *at == '\t') ++at;
  bool ended = *at == '\0' || *at == '\n';  // an empty set
  while (!ended) {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    bool good = take_number(at, first);
    last = first;
    if (good && *at == '-') good = take_number(++at, last) && last >= first;
    ended = *at == '\0' || *at == '\n';
    if (!good || (!ended && *at++ != ',')) {
      clear();
      return false;
    }
    for (std::uint32_t number = first; number <= last; ++number) add(number);
  }
  return true;
}

}  // namespace verbatim::topo
