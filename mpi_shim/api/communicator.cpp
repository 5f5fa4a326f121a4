// SPDX-License-Identifier: BSD-2-Clause
// Communicators (MPI 5.0 section 7.4): what they are asked, and their names.
#include <cstdio>
#include <cstring>

#include "mpi_shim/api/comm_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/attributes.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/groups.hpp"

namespace vmpi {
namespace {

int give_group(MPI_Comm handle, MPI_Group* out, bool wants_remote, const char* function) noexcept {
  const BigGuard guard;
  Comm* const comm = find_comm(handle);
  if (comm == nullptr) return bad_comm(function, "comm", handle);
  if (out == nullptr) return null_pointer(comm, function, "group");
  if (wants_remote && comm->remote == nullptr)
    return raise(comm, MPI_ERR_COMM, function, "argument `comm` is no intercommunicator");
  Group& group = wants_remote ? *comm->remote : *comm->group;
  retain(group);
  ++group.handles;
  *out = handle_of<MPI_Group>(group);
  return MPI_SUCCESS;
}

int give_number(MPI_Comm handle, int* out, const char* function, const char* argument,
                int (*of)(const Comm&) noexcept) noexcept {
  const BigGuard guard;
  Comm* const comm = find_comm(handle);
  if (comm == nullptr) return bad_comm(function, "comm", handle);
  if (out == nullptr) return null_pointer(comm, function, argument);
  *out = of(*comm);
  return MPI_SUCCESS;
}

/// Of two communicators that are not the same one.
int compare(const Comm& a, const Comm& b) noexcept {
  if ((a.remote == nullptr) != (b.remote == nullptr)) return MPI_UNEQUAL;
  const int local = compare_groups(*a.group, *b.group);
  const int remote = a.remote == nullptr ? MPI_IDENT : compare_groups(*a.remote, *b.remote);
  if (local == MPI_UNDEFINED || remote == MPI_UNDEFINED) return MPI_UNDEFINED;
  if (local == MPI_UNEQUAL || remote == MPI_UNEQUAL) return MPI_UNEQUAL;
  return local == MPI_IDENT && remote == MPI_IDENT ? MPI_CONGRUENT : MPI_SIMILAR;
}

int give_up(MPI_Comm* comm, const char* function) noexcept {
  const BigGuard guard;
  if (comm == nullptr) return null_pointer(nullptr, function, "comm");
  Comm* const found = find_comm(*comm);
  if (found == nullptr) return bad_comm(function, "comm", *comm);
  if (found->handle < kFirstOfOurs)
    return raise(found, MPI_ERR_COMM, function, "%s cannot be freed",
                 *comm == MPI_COMM_WORLD ? "MPI_COMM_WORLD" : "MPI_COMM_SELF");
  const int error = delete_attributes(*found);
  if (error != MPI_SUCCESS)
    return raise(found, error, function, "an attribute's delete function returned %d", error);
  *comm = MPI_COMM_NULL;
  found->is_freed = true;
  release(*found);
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Comm_size, (MPI_Comm comm, int* size)) {
  return give_number(comm, size, "MPI_Comm_size", "size",
                     [](const Comm& of) noexcept { return of.size(); });
}

VMPI_ENTRY(int, MPI_Comm_rank, (MPI_Comm comm, int* rank)) {
  return give_number(comm, rank, "MPI_Comm_rank", "rank",
                     [](const Comm& of) noexcept { return of.rank(); });
}

VMPI_ENTRY(int, MPI_Comm_test_inter, (MPI_Comm comm, int* flag)) {
  return give_number(comm, flag, "MPI_Comm_test_inter", "flag",
                     [](const Comm& of) noexcept { return of.remote != nullptr ? 1 : 0; });
}

VMPI_ENTRY(int, MPI_Comm_remote_size, (MPI_Comm comm, int* size)) {
  static constexpr const char* kName = "MPI_Comm_remote_size";
  const BigGuard guard;
  Comm* const found = find_comm(comm);
  if (found == nullptr) return bad_comm(kName, "comm", comm);
  if (size == nullptr) return null_pointer(found, kName, "size");
  if (found->remote == nullptr)
    return raise(found, MPI_ERR_COMM, kName, "argument `comm` is no intercommunicator");
  *size = found->remote->size();
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Comm_group, (MPI_Comm comm, MPI_Group* group)) {
  return give_group(comm, group, false, "MPI_Comm_group");
}

VMPI_ENTRY(int, MPI_Comm_remote_group, (MPI_Comm comm, MPI_Group* group)) {
  return give_group(comm, group, true, "MPI_Comm_remote_group");
}

VMPI_ENTRY(int, MPI_Comm_compare, (MPI_Comm comm1, MPI_Comm comm2, int* result)) {
  static constexpr const char* kName = "MPI_Comm_compare";
  const BigGuard guard;
  Comm* const a = find_comm(comm1);
  if (a == nullptr) return bad_comm(kName, "comm1", comm1);
  const Comm* const b = find_comm(comm2);
  if (b == nullptr) return bad_comm(kName, "comm2", comm2);
  if (result == nullptr) return null_pointer(a, kName, "result");
  const int compared = a == b ? MPI_IDENT : compare(*a, *b);
  if (compared == MPI_UNDEFINED) return no_memory(a, kName);
  *result = compared;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Comm_set_name, (MPI_Comm comm, const char* comm_name)) {
  static constexpr const char* kName = "MPI_Comm_set_name";
  const BigGuard guard;
  Comm* const found = find_comm(comm);
  if (found == nullptr) return bad_comm(kName, "comm", comm);
  if (comm_name == nullptr) return null_pointer(found, kName, "comm_name");
  // What is longer is cut.
  (void)std::snprintf(found->name, sizeof(found->name), "%s", comm_name);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Comm_get_name, (MPI_Comm comm, char* comm_name, int* resultlen)) {
  static constexpr const char* kName = "MPI_Comm_get_name";
  const BigGuard guard;
  Comm* const found = find_comm(comm);
  if (comm != MPI_COMM_NULL && found == nullptr) return bad_comm(kName, "comm", comm);
  if (comm_name == nullptr) return null_pointer(found, kName, "comm_name");
  if (resultlen == nullptr) return null_pointer(found, kName, "resultlen");
  const char* const name = found == nullptr ? "MPI_COMM_NULL" : found->name;
  const std::size_t length = std::strlen(name);
  std::memcpy(comm_name, name, length + 1);
  *resultlen = static_cast<int>(length);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Comm_set_info, (MPI_Comm comm, MPI_Info info)) {
  // Hints, of which this library knows none.
  static constexpr const char* kName = "MPI_Comm_set_info";
  const BigGuard guard;
  Comm* const found = find_comm(comm);
  return found == nullptr ? bad_comm(kName, "comm", comm) : check_hints(found, kName, info);
}

VMPI_ENTRY(int, MPI_Comm_get_info, (MPI_Comm comm, MPI_Info* info_used)) {
  static constexpr const char* kName = "MPI_Comm_get_info";
  {
    const BigGuard guard;
    Comm* const found = find_comm(comm);
    if (found == nullptr) return bad_comm(kName, "comm", comm);
    if (info_used == nullptr) return null_pointer(found, kName, "info_used");
  }
  return PMPI_Info_create(info_used);
}

VMPI_ENTRY(int, MPI_Comm_free, (MPI_Comm * comm)) { return give_up(comm, "MPI_Comm_free"); }

// All are connected by MPI_COMM_WORLD, and stay so.
VMPI_ENTRY(int, MPI_Comm_disconnect, (MPI_Comm * comm)) {
  return give_up(comm, "MPI_Comm_disconnect");
}

VMPI_ENTRY(int, MPI_Comm_get_parent, (MPI_Comm * parent)) {
  const BigGuard guard;
  if (parent == nullptr) return null_pointer(nullptr, "MPI_Comm_get_parent", "parent");
  *parent = MPI_COMM_NULL;  // MPI_Comm_spawn has started nobody
  return MPI_SUCCESS;
}
