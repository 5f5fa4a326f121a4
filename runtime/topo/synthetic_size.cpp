// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/synthetic_size.hpp"

#include <cstdlib>

namespace verbatim::topo {
namespace {

constexpr std::uint64_t kTooMany = ~std::uint64_t{0};

bool is_blank(char c) noexcept { return c == ' ' || c == '\n' || c == '\t'; }

/// Past "(...)" and "[...]": attributes, and memory that is attached to the level before.
const char* skip_enclosed(const char* at) noexcept {
  const char end = *at == '(' ? ')' : ']';
  while (*at != '\0' && *at != end) ++at;
  return *at == '\0' ? at : at + 1;
}

bool is_enclosed(char c) noexcept { return c == '(' || c == '['; }

}  // namespace

std::uint64_t synthetic_objects(const char* text) noexcept {
  std::uint64_t level = 1;
  std::uint64_t all = 1;
  while (*text != '\0') {
    if (is_blank(*text)) {
      ++text;
      continue;
    }
    if (is_enclosed(*text)) {
      text = skip_enclosed(text);
      continue;
    }
    // "type:count", or a count alone; the type may have digits.
    const char* count = text;
    while (*text != '\0' && !is_blank(*text) && !is_enclosed(*text)) {
      if (*text++ == ':') count = text;
    }
    const std::uint64_t many = std::strtoull(count, nullptr, 0);
    if (__builtin_mul_overflow(level, many, &level) || __builtin_add_overflow(all, level, &all)) {
      return kTooMany;
    }
  }
  return all;
}

}  // namespace verbatim::topo
