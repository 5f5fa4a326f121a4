// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/nodes.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace vmpi {
namespace {

/// A number at `at`, which goes on behind it. False: there is none up to `most`. (std::from_chars would
/// leave a weak name in the archive.)
[[nodiscard]] bool take_number(const char*& at, int most, int& number) noexcept {
  const char* digit = at;
  std::int64_t value = 0;
  for (; *digit >= '0' && *digit <= '9'; ++digit) {
    value = 10 * value + (*digit - '0');
    if (value > most) return false;
  }
  if (digit == at) return false;
  number = static_cast<int>(value);
  at = digit;
  return true;
}

[[nodiscard]] bool take(const char*& at, char wanted) noexcept {
  if (*at != wanted) return false;
  ++at;
  return true;
}

}  // namespace

bool Nodes::set(const int* numbers, int ranks) noexcept {
  const std::size_t size = index(ranks);
  Array<int> named;  // the node of each number, from 1 on
  if (!named.resize(size) || !node_of_.resize(size) || !place_of_.resize(size) ||
      !sorted_.resize(size))
    return false;
  leaders_.clear();
  begins_.clear();
  if (!begins_.push_back(0)) return false;
  for (int rank = 0; rank < ranks; ++rank) {
    int& node = named[index(numbers[rank])];
    if (node == 0) {
      if (!leaders_.push_back(rank) || !begins_.push_back(0)) return false;
      node = count();
    }
    node_of_[index(rank)] = node - 1;
    place_of_[index(rank)] = begins_[index(node)]++;
  }
  fewest_ = ranks;
  most_ = 0;
  for (int node = 0; node < count(); ++node) {
    int& end = begins_[index(node) + 1];
    if (end < fewest_) fewest_ = end;
    if (end > most_) most_ = end;
    end += begins_[index(node)];
  }
  are_in_order_ = true;
  for (int rank = 0; rank < ranks; ++rank) {
    const int at = begins_[index(node_of(rank))] + place_of(rank);
    sorted_[index(at)] = rank;
    are_in_order_ = are_in_order_ && at == rank;
  }
  return true;
}

namespace {

/// How a text says which ranks belong together.
struct Lists {
  const char* variable;
  const char* each;  ///< what a list of ranks is
  const char* example;
  bool are_of_nodes;  ///< lists are of nodes, with a slash between these
};

[[nodiscard]] const char* parse_lists(const Lists& lists, const char* text, int ranks,
                                      Array<int>& numbers, Array<int>* outer,
                                      std::span<char> wrong) noexcept {
  const auto refuse = [&](const char* before, int rank, const char* behind) noexcept {
    (void)std::snprintf(wrong.data(), wrong.size(), "%s is \"%.60s\", %s %d%s (of %d ranks; %s)",
                        lists.variable, text, before, rank, behind, ranks, lists.example);
    return wrong.data();
  };
  constexpr int kMost = 1 << 20;
  const auto size = static_cast<std::size_t>(ranks);
  if (!numbers.resize(size) || (outer != nullptr && !outer->resize(size)))
    return "there is no memory left";
  for (int& number : numbers) number = -1;
  int list = 0;
  int outer_list = 0;
  for (const char* at = text; *at != '\0';) {
    int from = 0;
    if (!take_number(at, kMost, from))
      return refuse("where no rank stands at byte", static_cast<int>(at - text), "");
    int to = from;
    if (take(at, '-') && !take_number(at, kMost, to))
      return refuse("where the range from rank", from, " has no end");
    if (to < from) return refuse("where the range from rank", from, " ends before it begins");
    if (to >= ranks) return refuse("which names a rank", to, " that is none");
    for (int rank = from; rank <= to; ++rank) {
      int& number = numbers[static_cast<std::size_t>(rank)];
      if (number != -1) return refuse("which names rank", rank, " twice");
      number = list;
      if (outer != nullptr) (*outer)[static_cast<std::size_t>(rank)] = outer_list;
    }
    if (*at == '\0') break;
    if (take(at, ':')) {
      ++list;
    } else if (lists.are_of_nodes && take(at, '/')) {
      ++list;
      ++outer_list;
    } else if (!take(at, ',')) {
      return refuse(lists.are_of_nodes ? "where neither ',' nor ':' nor '/' follows rank"
                                       : "where neither ',' nor ':' follows rank",
                    to, "");
    }
    if (*at == '\0') return refuse("where no rank stands behind rank", to, "");
  }
  for (int rank = 0; rank < ranks; ++rank)
    if (numbers[static_cast<std::size_t>(rank)] == -1) {
      char names[32];
      (void)std::snprintf(names, sizeof names, "which names no %s of rank", lists.each);
      return refuse(names, rank, "");
    }
  return nullptr;
}

}  // namespace

const char* parse_nodes(const char* text, int ranks, Array<int>& numbers,
                        std::span<char> wrong) noexcept {
  constexpr Lists kNodes = {"VERBATIM_MPI_NODES", "node", "\"0-3:4,6-7\" are two nodes", false};
  return parse_lists(kNodes, text, ranks, numbers, nullptr, wrong);
}

const char* parse_groups(const char* text, int ranks, Array<int>& numbers, Array<int>& nodes,
                         std::span<char> wrong) noexcept {
  constexpr Lists kGroups = {"VERBATIM_MPI_GROUPS", "group",
                             "\"0-1:2-3/4-7\" are two groups of one NUMA node and one of another",
                             true};
  return parse_lists(kGroups, text, ranks, numbers, &nodes, wrong);
}

bool parse_process_mapping(const char* text, int ranks, Array<int>& numbers) noexcept {
  constexpr char kBegin[] = "(vector,";
  if (std::strncmp(text, kBegin, sizeof kBegin - 1) != 0) return false;
  const char* const blocks = text + sizeof kBegin - 1;
  if (!numbers.resize(static_cast<std::size_t>(ranks))) return false;
  const char* at = blocks;
  for (int rank = 0; rank < ranks;) {
    int first = 0;
    int count = 0;
    int of_each = 0;
    if (!take(at, '(') || !take_number(at, ranks - 1, first) || !take(at, ',') ||
        !take_number(at, 1 << 20, count) || !take(at, ',') || !take_number(at, 1 << 20, of_each) ||
        !take(at, ')') || count == 0 || of_each == 0)
      return false;
    for (int node = first; node < first + count && rank < ranks; ++node) {
      // Numbers of nodes are below those of ranks, as Nodes::set wants them.
      if (node >= ranks) return false;
      for (int i = 0; i < of_each && rank < ranks; ++i)
        numbers[static_cast<std::size_t>(rank++)] = node;
    }
    if (take(at, ')'))
      at = blocks;
    else if (!take(at, ','))
      return false;
  }
  return true;
}

}  // namespace vmpi
