// SPDX-License-Identifier: BSD-2-Clause
// What groups are compared and combined by (MPI 5.0 section 7.3). Groups are sets of world ranks in
// an order. Arguments were checked by the caller; the big lock is held.
#pragma once

#include "mpi_shim/core/comm.hpp"

namespace vmpi {

/// The rank of each world rank in a group; MPI_UNDEFINED for those that are not in it.
class RankIndex {
 public:
  /// False: no memory.
  [[nodiscard]] bool build(const Group& group) noexcept;
  [[nodiscard]] int rank_of(int world_rank) const noexcept {
    return ranks_[static_cast<std::size_t>(world_rank)];
  }

 private:
  Array<int> ranks_;
};

/// MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL; MPI_UNDEFINED: no memory.
[[nodiscard]] int compare_groups(const Group& a, const Group& b) noexcept;

// New groups with one reference; null: no memory.
[[nodiscard]] Group* unite(const Group& a, const Group& b) noexcept;
[[nodiscard]] Group* intersect(const Group& a, const Group& b) noexcept;
[[nodiscard]] Group* subtract(const Group& a, const Group& b) noexcept;
[[nodiscard]] Group* include(const Group& group, const int* ranks, std::size_t count) noexcept;
[[nodiscard]] Group* exclude(const Group& group, const int* ranks, std::size_t count) noexcept;

/// The ranks that triplets (first, last, stride) name, in their order. MPI_SUCCESS, MPI_ERR_RANK for
/// one outside of `size`, MPI_ERR_ARG for a stride of zero, MPI_ERR_NO_MEM.
[[nodiscard]] int expand_ranges(const int (*ranges)[3], int count, int size,
                                Array<int>& out) noexcept;
/// The place of the first rank that is out of range or named twice, -1: none, -2: no memory.
[[nodiscard]] int first_bad_rank(const int* ranks, int count, int size) noexcept;

/// Of all groups but MPI_GROUP_EMPTY (drop_all_comms).
[[nodiscard]] bool make_predefined_groups() noexcept;
void drop_all_groups() noexcept;

}  // namespace vmpi
