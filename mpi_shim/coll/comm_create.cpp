// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/comm_create.hpp"

#include "mpi_shim/coll/context_agreement.hpp"
#include "mpi_shim/coll/intercomm.hpp"
#include "mpi_shim/coll/plans_between.hpp"
#include "mpi_shim/coll/shape.hpp"
#include "mpi_shim/core/attributes.hpp"
#include "mpi_shim/core/context_ids.hpp"
#include "mpi_shim/core/groups.hpp"
#include "mpi_shim/core/neighbours.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {

int make_or_give_back(const Comm& from, Group& group, Group* remote, Agreed agreed,
                      Comm** out) noexcept {
  *out = nullptr;
  if (agreed.error != MPI_SUCCESS) return agreed.error;
  if (group.rank == MPI_UNDEFINED || (remote != nullptr && remote->size() == 0)) {
    give_context_back(agreed.context);
    return MPI_SUCCESS;
  }
  *out = make_comm(from, group, remote, agreed.context);
  if (*out != nullptr) return MPI_SUCCESS;
  give_context_back(agreed.context);
  return MPI_ERR_NO_MEM;
}

namespace {

/// Topology and attributes; without them there is no duplicate.
[[nodiscard]] int take_after(const Comm& from, Comm* made, Comm** out) noexcept {
  int error = MPI_SUCCESS;
  if (!copy_topology(from, *made)) error = MPI_ERR_NO_MEM;
  if (error == MPI_SUCCESS) error = copy_attributes(from, *made);
  if (error != MPI_SUCCESS) {
    (void)delete_attributes(*made);
    release(*made);
    return error;
  }
  *out = made;
  return MPI_SUCCESS;
}

/// What a duplicate waits for: its context, by the one process that gives it out.
struct ContextToCome {
  Comm* made;
  int giver;  ///< rank in MPI_COMM_WORLD
  std::uint32_t context;
};

int take_context(void* context, int error) noexcept {
  const ContextToCome& come = *static_cast<ContextToCome*>(context);
  if (error == MPI_SUCCESS && !is_context_of(come.context, come.giver, world.size))
    error = MPI_ERR_OTHER;
  if (error == MPI_SUCCESS) {
    come.made->context = come.context;
    if (come.made->local != nullptr) come.made->local->context = come.context + 2;
  } else if (!come.made->is_freed) {
    // It never was one: its handle is none from now on.
    (void)delete_attributes(*come.made);
    come.made->is_freed = true;
    release(*come.made);
  }
  release(*come.made);
  return error;
}

}  // namespace

int plan_duplicate(Schedule& schedule, Comm** out) noexcept {
  Comm& from = schedule.comm();
  auto* const come =
      static_cast<ContextToCome*>(static_cast<void*>(schedule.plan().bytes(sizeof(ContextToCome))));
  Comm* const made =
      come != nullptr ? make_comm(from, *from.group, from.remote, kContextToCome) : nullptr;
  if (made == nullptr) return MPI_ERR_NO_MEM;
  if (const int error = take_after(from, made, out); error != MPI_SUCCESS) return error;
  const bool is_inter = from.remote != nullptr;
  const bool we_give = !is_inter || from.group->members[0] < from.remote->members[0];
  const Group& givers = we_give ? *from.group : *from.remote;
  *come = {made, givers.members[0], 0};
  retain(*made);
  schedule.at_end(take_context, come);
  const bool is_giver = we_give && from.rank() == 0;
  if (is_giver) come->context = give_out_context(world.rank, world.size);
  const Typed context = {&come->context, sizeof(come->context), &byte_type()};
  if (is_inter) {
    if (is_giver) schedule.plan().send(0, context);
    if (!we_give && from.rank() == 0) {
      schedule.plan().receive(0, context);
      schedule.plan().fence();
    }
    schedule.use_local();
  }
  Operands of;
  of.own = &context;
  make_plan(schedule.plan(), Collective::kBcast, of);
  return MPI_SUCCESS;
}

int duplicate(Comm& from, Comm** out) noexcept {
  Comm* made;
  const int error =
      make_or_give_back(from, *from.group, from.remote, agree_on_context(from), &made);
  return error != MPI_SUCCESS ? error : take_after(from, made, out);
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
  return make_or_give_back(
      from, group, nullptr,
      agree_on_context_within(from, ranks.data(), group.size(), group.rank, tag), out);
}

}  // namespace vmpi
