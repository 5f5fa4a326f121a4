// SPDX-License-Identifier: BSD-2-Clause
#include <cstdint>
#include <new>

#include "mpi_shim/core/groups.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {
namespace {

constinit HandleTable<HandleKind::kGroup, Group> table;
constinit Group* empty = nullptr;

[[nodiscard]] bool is_predefined(const Group& group) noexcept {
  return group.handle < kFirstOfOurs;
}

/// Keeps those of `a` whose being in `b` is `wanted`.
[[nodiscard]] Group* filter(const Group& a, const Group& b, bool wanted) noexcept {
  RankIndex in_b;
  Array<int> kept;
  if (!in_b.build(b) || !kept.reserve(a.members.size())) return nullptr;
  for (const int member : a.members)
    if ((in_b.rank_of(member) != MPI_UNDEFINED) == wanted && !kept.push_back(member))
      return nullptr;
  return make_group(kept.data(), kept.size());
}

}  // namespace

bool RankIndex::build(const Group& group) noexcept {
  if (!ranks_.resize(static_cast<std::size_t>(world.size))) return false;
  for (int& rank : ranks_) rank = MPI_UNDEFINED;
  for (int i = 0; i < group.size(); ++i)
    ranks_[static_cast<std::size_t>(group.members[static_cast<std::size_t>(i)])] = i;
  return true;
}

bool make_predefined_groups() noexcept {
  void* const memory = std::malloc(sizeof(Group));
  if (memory == nullptr) return false;
  empty = ::new (memory) Group();
  empty->handle = number_of(MPI_GROUP_EMPTY);
  return true;
}

void drop_all_groups() noexcept {
  table.clear();
  std::free(empty);
  empty = nullptr;
}

Group* find_group(MPI_Group handle) noexcept {
  if (handle == MPI_GROUP_EMPTY) return empty;
  Group* const found = table.find(number_of(handle));
  return found == nullptr || found->handles == 0 ? nullptr : found;
}

void retain(Group& group) noexcept { ++group.references; }

void release(Group& group) noexcept {
  if (!is_predefined(group) && --group.references == 0) table.release(group);
}

Group* make_group(const int* members, std::size_t count) noexcept {
  if (count == 0) return empty;
  Group* const made = table.make();
  if (made == nullptr) return nullptr;
  if (!made->members.assign(members, count)) {
    table.release(*made);
    return nullptr;
  }
  for (std::size_t i = 0; i < count; ++i)
    if (members[i] == world.rank) made->rank = static_cast<int>(i);
  return made;
}

int compare_groups(const Group& a, const Group& b) noexcept {
  if (a.size() != b.size()) return MPI_UNEQUAL;
  RankIndex in_b;
  if (!in_b.build(b)) return MPI_UNDEFINED;
  bool is_same_order = true;
  for (int i = 0; i < a.size(); ++i) {
    const int there = in_b.rank_of(a.members[static_cast<std::size_t>(i)]);
    if (there == MPI_UNDEFINED) return MPI_UNEQUAL;
    if (there != i) is_same_order = false;
  }
  return is_same_order ? MPI_IDENT : MPI_SIMILAR;
}

Group* unite(const Group& a, const Group& b) noexcept {
  RankIndex in_a;
  Array<int> all;
  if (!in_a.build(a) || !all.reserve(a.members.size() + b.members.size())) return nullptr;
  if (!all.assign(a.members.data(), a.members.size())) return nullptr;
  for (const int member : b.members)
    if (in_a.rank_of(member) == MPI_UNDEFINED && !all.push_back(member)) return nullptr;
  return make_group(all.data(), all.size());
}

Group* intersect(const Group& a, const Group& b) noexcept { return filter(a, b, true); }

Group* subtract(const Group& a, const Group& b) noexcept { return filter(a, b, false); }

Group* include(const Group& group, const int* ranks, std::size_t count) noexcept {
  Array<int> chosen;
  if (!chosen.resize(count)) return nullptr;
  for (std::size_t i = 0; i < count; ++i)
    chosen[i] = group.members[static_cast<std::size_t>(ranks[i])];
  return make_group(chosen.data(), count);
}

Group* exclude(const Group& group, const int* ranks, std::size_t count) noexcept {
  Array<int> members;
  if (!members.assign(group.members.data(), group.members.size())) return nullptr;
  constexpr int kExcluded = -1;
  for (std::size_t i = 0; i < count; ++i) members[static_cast<std::size_t>(ranks[i])] = kExcluded;
  std::size_t kept = 0;
  for (const int member : members)
    if (member != kExcluded) members[kept++] = member;
  return make_group(members.data(), kept);
}

int expand_ranges(const int (*ranges)[3], int count, int size, Array<int>& out) noexcept {
  for (int i = 0; i < count; ++i) {
    const std::int64_t first = ranges[i][0];
    const std::int64_t last = ranges[i][1];
    const std::int64_t stride = ranges[i][2];
    if (stride == 0) return MPI_ERR_ARG;
    if (first < 0 || first >= size || last < 0 || last >= size) return MPI_ERR_RANK;
    for (std::int64_t at = first; stride > 0 ? at <= last : at >= last; at += stride) {
      // More than all of them: some are named twice, which the caller finds out.
      if (out.size() > static_cast<std::size_t>(size)) return MPI_SUCCESS;
      if (!out.push_back(static_cast<int>(at))) return MPI_ERR_NO_MEM;
    }
  }
  return MPI_SUCCESS;
}

int first_bad_rank(const int* ranks, int count, int size) noexcept {
  Array<bool> is_named;
  if (!is_named.resize(static_cast<std::size_t>(size))) return -2;
  for (int i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= size) return i;
    bool& named = is_named[static_cast<std::size_t>(ranks[i])];
    if (named) return i;
    named = true;
  }
  return -1;
}

}  // namespace vmpi
