// SPDX-License-Identifier: BSD-2-Clause
// Groups (MPI 5.0 section 7.3): what they are asked, and set operations.
#include "mpi_shim/api/comm_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/groups.hpp"

namespace vmpi {
namespace {

int give(Group* made, const char* function, MPI_Group* out) noexcept {
  if (made == nullptr) return no_memory(nullptr, function);
  ++made->handles;
  *out = handle_of<MPI_Group>(*made);
  return MPI_SUCCESS;
}

int combine(MPI_Group a, MPI_Group b, MPI_Group* out, const char* function,
            Group* (*how)(const Group&, const Group&) noexcept) noexcept {
  const BigGuard guard;
  const Group* const first = find_group(a);
  if (first == nullptr) return bad_group(function, "group1", a);
  const Group* const second = find_group(b);
  if (second == nullptr) return bad_group(function, "group2", b);
  if (out == nullptr) return null_pointer(nullptr, function, "newgroup");
  return give(how(*first, *second), function, out);
}

/// MPI_SUCCESS, or the error has been raised.
int check_ranks(const Group& group, int n, const int* ranks, const char* function) noexcept {
  if (n < 0) return raise(nullptr, MPI_ERR_ARG, function, "argument `n` is %d", n);
  if (n > 0 && ranks == nullptr) return null_pointer(nullptr, function, "ranks");
  const int bad = first_bad_rank(ranks, n, group.size());
  if (bad == -2) return no_memory(nullptr, function);
  if (bad < 0) return MPI_SUCCESS;
  if (ranks[bad] < 0 || ranks[bad] >= group.size())
    return raise(nullptr, MPI_ERR_RANK, function, "ranks[%d] is %d, the group has %d ranks", bad,
                 ranks[bad], group.size());
  return raise(nullptr, MPI_ERR_RANK, function, "ranks[%d] is %d, which was named before", bad,
               ranks[bad]);
}

int choose(MPI_Group handle, int n, const int* ranks, MPI_Group* out, const char* function,
           Group* (*how)(const Group&, const int*, std::size_t) noexcept) noexcept {
  const BigGuard guard;
  const Group* const group = find_group(handle);
  if (group == nullptr) return bad_group(function, "group", handle);
  if (out == nullptr) return null_pointer(nullptr, function, "newgroup");
  if (const int error = check_ranks(*group, n, ranks, function); error != MPI_SUCCESS) return error;
  return give(how(*group, ranks, static_cast<std::size_t>(n)), function, out);
}

int choose_ranges(MPI_Group handle, int n, const int (*ranges)[3], MPI_Group* out,
                  const char* function,
                  Group* (*how)(const Group&, const int*, std::size_t) noexcept) noexcept {
  const BigGuard guard;
  const Group* const group = find_group(handle);
  if (group == nullptr) return bad_group(function, "group", handle);
  if (n < 0) return raise(nullptr, MPI_ERR_ARG, function, "argument `n` is %d", n);
  if (n > 0 && ranges == nullptr) return null_pointer(nullptr, function, "ranges");
  if (out == nullptr) return null_pointer(nullptr, function, "newgroup");
  Array<int> ranks;
  switch (expand_ranges(ranges, n, group->size(), ranks)) {
    case MPI_SUCCESS:
      break;
    case MPI_ERR_ARG:
      return raise(nullptr, MPI_ERR_ARG, function, "a range has the stride 0");
    case MPI_ERR_RANK:
      return raise(nullptr, MPI_ERR_RANK, function,
                   "a range begins or ends outside of the group's %d ranks", group->size());
    default:
      return no_memory(nullptr, function);
  }
  if (const int error = check_ranks(*group, static_cast<int>(ranks.size()), ranks.data(), function);
      error != MPI_SUCCESS)
    return error;
  return give(how(*group, ranks.data(), ranks.size()), function, out);
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Group_size, (MPI_Group group, int* size)) {
  const BigGuard guard;
  const Group* const found = find_group(group);
  if (found == nullptr) return bad_group("MPI_Group_size", "group", group);
  if (size == nullptr) return null_pointer(nullptr, "MPI_Group_size", "size");
  *size = found->size();
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Group_rank, (MPI_Group group, int* rank)) {
  const BigGuard guard;
  const Group* const found = find_group(group);
  if (found == nullptr) return bad_group("MPI_Group_rank", "group", group);
  if (rank == nullptr) return null_pointer(nullptr, "MPI_Group_rank", "rank");
  *rank = found->rank;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Group_translate_ranks,
           (MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[])) {
  static constexpr const char* kName = "MPI_Group_translate_ranks";
  const BigGuard guard;
  const Group* const from = find_group(group1);
  if (from == nullptr) return bad_group(kName, "group1", group1);
  const Group* const to = find_group(group2);
  if (to == nullptr) return bad_group(kName, "group2", group2);
  if (n < 0) return raise(nullptr, MPI_ERR_ARG, kName, "argument `n` is %d", n);
  if (n == 0) return MPI_SUCCESS;
  if (ranks1 == nullptr) return null_pointer(nullptr, kName, "ranks1");
  if (ranks2 == nullptr) return null_pointer(nullptr, kName, "ranks2");
  for (int i = 0; i < n; ++i)
    if (ranks1[i] != MPI_PROC_NULL && (ranks1[i] < 0 || ranks1[i] >= from->size()))
      return raise(nullptr, MPI_ERR_RANK, kName, "ranks1[%d] is %d, the group has %d ranks", i,
                   ranks1[i], from->size());
  RankIndex index;
  if (!index.build(*to)) return no_memory(nullptr, kName);
  for (int i = 0; i < n; ++i) {
    const int rank = ranks1[i];
    ranks2[i] = rank == MPI_PROC_NULL
                    ? MPI_PROC_NULL
                    : index.rank_of(from->members[static_cast<std::size_t>(rank)]);
  }
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Group_compare, (MPI_Group group1, MPI_Group group2, int* result)) {
  static constexpr const char* kName = "MPI_Group_compare";
  const BigGuard guard;
  const Group* const a = find_group(group1);
  if (a == nullptr) return bad_group(kName, "group1", group1);
  const Group* const b = find_group(group2);
  if (b == nullptr) return bad_group(kName, "group2", group2);
  if (result == nullptr) return null_pointer(nullptr, kName, "result");
  const int compared = compare_groups(*a, *b);
  if (compared == MPI_UNDEFINED) return no_memory(nullptr, kName);
  *result = compared;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Group_union, (MPI_Group group1, MPI_Group group2, MPI_Group* newgroup)) {
  return combine(group1, group2, newgroup, "MPI_Group_union", unite);
}

VMPI_ENTRY(int, MPI_Group_intersection, (MPI_Group group1, MPI_Group group2, MPI_Group* newgroup)) {
  return combine(group1, group2, newgroup, "MPI_Group_intersection", intersect);
}

VMPI_ENTRY(int, MPI_Group_difference, (MPI_Group group1, MPI_Group group2, MPI_Group* newgroup)) {
  return combine(group1, group2, newgroup, "MPI_Group_difference", subtract);
}

VMPI_ENTRY(int, MPI_Group_incl, (MPI_Group group, int n, const int ranks[], MPI_Group* newgroup)) {
  return choose(group, n, ranks, newgroup, "MPI_Group_incl", include);
}

VMPI_ENTRY(int, MPI_Group_excl, (MPI_Group group, int n, const int ranks[], MPI_Group* newgroup)) {
  return choose(group, n, ranks, newgroup, "MPI_Group_excl", exclude);
}

VMPI_ENTRY(int, MPI_Group_range_incl,
           (MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup)) {
  return choose_ranges(group, n, ranges, newgroup, "MPI_Group_range_incl", include);
}

VMPI_ENTRY(int, MPI_Group_range_excl,
           (MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup)) {
  return choose_ranges(group, n, ranges, newgroup, "MPI_Group_range_excl", exclude);
}

VMPI_ENTRY(int, MPI_Group_free, (MPI_Group * group)) {
  const BigGuard guard;
  if (group == nullptr) return null_pointer(nullptr, "MPI_Group_free", "group");
  Group* const found = find_group(*group);
  if (found == nullptr) return bad_group("MPI_Group_free", "group", *group);
  if (*group != MPI_GROUP_EMPTY) --found->handles;
  release(*found);
  *group = MPI_GROUP_NULL;
  return MPI_SUCCESS;
}
