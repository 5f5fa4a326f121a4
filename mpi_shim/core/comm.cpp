// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/comm.hpp"

#include <cstdio>
#include <cstring>
#include <new>

#include "mpi_shim/core/attributes.hpp"
#include "mpi_shim/core/context_ids.hpp"
#include "mpi_shim/core/groups.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {

void (*end_host_team)(HostTeam* team) noexcept = nullptr;

namespace {

constexpr std::uint32_t kWorldContext = 4;
constexpr std::uint32_t kSelfContext = 8;

constinit HandleTable<HandleKind::kComm, Comm> table;
constinit Comm* world_comm = nullptr;
constinit Comm* self_comm = nullptr;

[[nodiscard]] Comm* make_predefined(MPI_Comm handle, const char* name, std::uint32_t context,
                                    const int* members, std::size_t count) noexcept {
  void* const memory = std::malloc(sizeof(Comm));
  if (memory == nullptr) return nullptr;
  Comm* const made = ::new (memory) Comm();
  made->handle = number_of(handle);
  made->context = context;
  made->error_handler = number_of(MPI_ERRORS_ARE_FATAL);
  std::snprintf(made->name, sizeof(made->name), "%s", name);
  made->group = make_group(members, count);
  if (made->group != nullptr) return made;
  std::free(memory);
  return nullptr;
}

void drop_predefined(Comm*& comm) noexcept {
  if (comm == nullptr) return;
  comm->~Comm();
  std::free(static_cast<void*>(comm));
  comm = nullptr;
}

}  // namespace

bool make_predefined_comms() noexcept {
  reset_contexts();
  Array<int> all;
  if (!make_predefined_groups() || !all.resize(static_cast<std::size_t>(world.size))) return false;
  for (int i = 0; i < world.size; ++i) all[static_cast<std::size_t>(i)] = i;
  world_comm =
      make_predefined(MPI_COMM_WORLD, "MPI_COMM_WORLD", kWorldContext, all.data(), all.size());
  self_comm = make_predefined(MPI_COMM_SELF, "MPI_COMM_SELF", kSelfContext, &world.rank, 1);
  return world_comm != nullptr && self_comm != nullptr;
}

void drop_all_comms() noexcept {
  table.clear();
  drop_predefined(world_comm);
  drop_predefined(self_comm);
  drop_all_groups();
  drop_all_keyvals();
}

Comm* find_comm(MPI_Comm handle) noexcept {
  if (handle == MPI_COMM_WORLD) return world_comm;
  if (handle == MPI_COMM_SELF) return self_comm;
  Comm* const found = table.find(number_of(handle));
  return found == nullptr || found->is_freed ? nullptr : found;
}

const Comm* comm_of_context(std::uint32_t context) noexcept {
  for (const Comm* predefined : {world_comm, self_comm})
    if (predefined != nullptr && predefined->context == context) return predefined;
  const Comm* found = nullptr;
  table.each([&](const Comm& comm) {
    if (comm.context == context) found = &comm;
  });
  return found;
}

Comm* make_comm(const Comm& parent, Group& group, Group* remote, std::uint32_t context) noexcept {
  Comm* const made = table.make();
  if (made == nullptr) return nullptr;
  made->context = context;
  made->error_handler = parent.error_handler;
  made->costs = parent.costs;
  made->group = &group;
  retain(group);
  if (remote == nullptr) return made;
  made->remote = remote;
  retain(*remote);
  made->local = make_comm(parent, group, nullptr, context + 2);
  if (made->local == nullptr) {
    release(*made);
    return nullptr;
  }
  made->local->whole = made;
  return made;
}

void retain(Comm& comm) noexcept { ++comm.references; }

void release(Comm& comm) noexcept {
  if (--comm.references != 0 || comm.handle < kFirstOfOurs) return;
  if (comm.team != nullptr) end_host_team(comm.team);
  if (comm.local != nullptr) release(*comm.local);
  if (comm.node != nullptr) release(*comm.node);
  if (comm.context % 4 == 0) {
    give_context_back(comm.context);
    if (has_dead_member(comm)) [[unlikely]]
      remember_given_back(comm.context);
  }
  if (comm.remote != nullptr) release(*comm.remote);
  release(*comm.group);
  table.release(comm);
}

}  // namespace vmpi
