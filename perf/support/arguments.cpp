// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/arguments.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace verbatim::perf {
namespace {

std::optional<unsigned> shift_of(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 0;
  const std::string_view rest = suffix.substr(1);
  if (!rest.empty() && rest != "iB" && rest != "B") return std::nullopt;
  switch (suffix.front()) {
    case 'k':
    case 'K':
      return 10;
    case 'm':
    case 'M':
      return 20;
    case 'g':
    case 'G':
      return 30;
    default:
      return std::nullopt;
  }
}

bool add_range(std::string_view item, std::vector<std::uint64_t>& sizes) {
  const auto dots = item.find("..");
  if (dots == std::string_view::npos) {
    const auto size = parse_size(item);
    if (size) sizes.push_back(*size);
    return size.has_value();
  }
  const auto low = parse_size(item.substr(0, dots));
  const auto high = parse_size(item.substr(dots + 2));
  if (!low || !high || *low == 0 || *low > *high) return false;
  for (std::uint64_t size = *low; size <= *high; size *= 2) {
    sizes.push_back(size);
    if (size > std::numeric_limits<std::uint64_t>::max() / 2) break;
  }
  return true;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  const auto shift = shift_of(text.substr(static_cast<std::size_t>(end - text.data())));
  if (!shift || value > (std::numeric_limits<std::uint64_t>::max() >> *shift)) return std::nullopt;
  return value << *shift;
}

std::optional<std::vector<std::uint64_t>> parse_sizes(std::string_view text) {
  std::vector<std::uint64_t> sizes;
  while (true) {
    const auto comma = text.find(',');
    if (!add_range(text.substr(0, comma), sizes)) return std::nullopt;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::optional<int> parse_count(std::string_view text, int low, int high) {
  int value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last || value < low || value > high) return std::nullopt;
  return value;
}

std::string size_text(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"", " KiB", " MiB", " GiB"};
  unsigned unit = 0;
  while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

}  // namespace verbatim::perf
