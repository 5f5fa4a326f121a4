// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/comm_create.hpp"

#include "mpi_shim/coll/context_agreement.hpp"
#include "mpi_shim/core/attributes.hpp"
#include "mpi_shim/core/groups.hpp"

namespace vmpi {
namespace {

/// Makes one with a context that was agreed on; gives that back when it cannot, or has no part.
[[nodiscard]] int make_or_give_back(const Comm& from, Group& group, Group* remote,
                                    std::uint32_t context, Comm** out) noexcept {
  *out = nullptr;
  if (context == 0) return MPI_ERR_OTHER;
  if (group.rank == MPI_UNDEFINED) {
    give_context_back(context);
    return MPI_SUCCESS;
  }
  *out = make_comm(from, group, remote, context);
  if (*out != nullptr) return MPI_SUCCESS;
  give_context_back(context);
  return MPI_ERR_NO_MEM;
}

}  // namespace

int duplicate(Comm& from, Comm** out) noexcept {
  const std::uint32_t context = agree_on_context(from);
  Comm* made;
  int error = make_or_give_back(from, *from.group, from.remote, context, &made);
  if (error != MPI_SUCCESS) return error;
  made->topology = from.topology;
  const Cartesian& grid = from.cartesian;
  if (!made->cartesian.sizes.assign(grid.sizes.data(), grid.sizes.size()) ||
      !made->cartesian.is_periodic.assign(grid.is_periodic.data(), grid.is_periodic.size()))
    error = MPI_ERR_NO_MEM;
  if (error == MPI_SUCCESS) error = copy_attributes(from, *made);
  if (error != MPI_SUCCESS) {
    (void)delete_attributes(*made);
    release(*made);
    return error;
  }
  *out = made;
  return MPI_SUCCESS;
}

int create_from_group(Comm& from, Group& group, Comm** out) noexcept {
  return make_or_give_back(from, group, nullptr, agree_on_context(from), out);
}

int create_among(Comm& from, Group& group, int tag, Comm** out) noexcept {
  *out = nullptr;
  RankIndex index;
  Array<int> ranks;
  if (!index.build(*from.group) || !ranks.resize(group.members.size())) return MPI_ERR_NO_MEM;
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = index.rank_of(group.members[i]);
  const std::uint32_t context =
      agree_on_context_within(from, ranks.data(), group.size(), group.rank, tag);
  return make_or_give_back(from, group, nullptr, context, out);
}

}  // namespace vmpi
