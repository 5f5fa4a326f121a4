// SPDX-License-Identifier: BSD-2-Clause
// New communicators from old ones (MPI 5.0 sections 7.4.2 and 7.6.2).
#include "mpi_shim/api/comm_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/coll/comm_create.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/groups.hpp"
#include "mpi_shim/core/requests.hpp"

namespace vmpi {
namespace {

/// Raises, or writes the new handle.
int give(Comm& from, int error, const Comm* made, MPI_Comm* out, const char* function) noexcept {
  switch (error) {
    case MPI_SUCCESS:
      *out = made == nullptr ? MPI_COMM_NULL : handle_of<MPI_Comm>(*made);
      return MPI_SUCCESS;
    case MPI_ERR_NO_MEM:
      return no_memory(&from, function);
    case MPI_ERR_OTHER:
      return raise(&from, error, function,
                   "no context is left for a new communicator (free those that are not used), or "
                   "a rank could not be asked");
    case MPI_ERR_PROC_ABORTED:
      return raise_loss(from, function);
    default:
      return raise(&from, error, function, "a rank or a function of the program said %d", error);
  }
}

int dup(MPI_Comm comm, MPI_Info info, MPI_Comm* out, const char* function) noexcept {
  const BigGuard guard;
  Comm* const from = find_comm(comm);
  if (from == nullptr) return bad_comm(function, "comm", comm);
  if (out == nullptr) return null_pointer(from, function, "newcomm");
  if (const int error = check_hints(from, function, info); error != MPI_SUCCESS) return error;
  Comm* made = nullptr;
  const int error = duplicate(*from, &made);
  return give(*from, error, made, out, function);
}

int idup(MPI_Comm comm, MPI_Info info, MPI_Comm* out, MPI_Request* started,
         const char* function) noexcept {
  const BigGuard guard;
  Comm* const from = find_comm(comm);
  if (from == nullptr) return bad_comm(function, "comm", comm);
  if (out == nullptr) return null_pointer(from, function, "newcomm");
  if (started == nullptr) return null_pointer(from, function, "request");
  if (const int error = check_hints(from, function, info); error != MPI_SUCCESS) return error;
  Schedule* const schedule = make_schedule(*from);
  Request* const request = schedule != nullptr ? make_request() : nullptr;
  if (request == nullptr) {
    destroy(schedule);
    return no_memory(from, function);
  }
  request->comm = from;
  retain(*from);
  Comm* made = nullptr;
  int error = plan_duplicate(*schedule, &made);
  if (error != MPI_SUCCESS)
    destroy(schedule);
  else
    error = start(schedule, *request);
  if (error == MPI_SUCCESS) *started = handle_of(*request);
  if (error != MPI_SUCCESS) release_request(*request);
  return give(*from, error, made, out, function);
}

/// Null: the error is in `*error`.
Comm* find_any_comm(MPI_Comm handle, const void* out, const char* function, int* error) noexcept {
  Comm* const comm = find_comm(handle);
  if (comm == nullptr)
    *error = bad_comm(function, "comm", handle);
  else if (out == nullptr)
    *error = null_pointer(comm, function, "newcomm");
  else
    return comm;
  return nullptr;
}

Comm* find_intracomm(MPI_Comm handle, const void* out, const char* function, int* error) noexcept {
  Comm* const comm = find_any_comm(handle, out, function, error);
  if (comm == nullptr || comm->remote == nullptr) return comm;
  *error = is_intercommunicator(comm, function);
  return nullptr;
}

/// MPI_SUCCESS, or raised: `group` has a rank that `comm` has not.
int check_is_part(Comm& comm, const Group& group, const char* function) noexcept {
  RankIndex index;
  if (!index.build(*comm.group)) return no_memory(&comm, function);
  for (const int member : group.members)
    if (index.rank_of(member) == MPI_UNDEFINED)
      return raise(&comm, MPI_ERR_GROUP, function,
                   "argument `group` has rank %d of MPI_COMM_WORLD, which `comm` has not", member);
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Comm_dup, (MPI_Comm comm, MPI_Comm* newcomm)) {
  return dup(comm, MPI_INFO_NULL, newcomm, "MPI_Comm_dup");
}

VMPI_ENTRY(int, MPI_Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm)) {
  return dup(comm, info, newcomm, "MPI_Comm_dup_with_info");
}

VMPI_ENTRY(int, MPI_Comm_idup, (MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request)) {
  return idup(comm, MPI_INFO_NULL, newcomm, request, "MPI_Comm_idup");
}

VMPI_ENTRY(int, MPI_Comm_idup_with_info,
           (MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request)) {
  return idup(comm, info, newcomm, request, "MPI_Comm_idup_with_info");
}

VMPI_ENTRY(int, MPI_Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm)) {
  static constexpr const char* kName = "MPI_Comm_create";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const from = find_any_comm(comm, newcomm, kName, &error);
  if (from == nullptr) return error;
  Group* const members = find_group(group);
  if (members == nullptr) return bad_group(kName, "group", group);
  if (error = check_is_part(*from, *members, kName); error != MPI_SUCCESS) return error;
  Comm* made = nullptr;
  retain(*members);
  error = from->remote != nullptr ? create_between(*from, *members, &made)
                                  : create_from_group(*from, *members, &made);
  release(*members);
  return give(*from, error, made, newcomm, kName);
}

VMPI_ENTRY(int, MPI_Comm_create_group,
           (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm)) {
  static constexpr const char* kName = "MPI_Comm_create_group";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const from = find_intracomm(comm, newcomm, kName, &error);
  if (from == nullptr) return error;
  Group* const members = find_group(group);
  if (members == nullptr) return bad_group(kName, "group", group);
  if (tag < 0) return raise(from, MPI_ERR_TAG, kName, "argument `tag` is %d", tag);
  if (error = check_is_part(*from, *members, kName); error != MPI_SUCCESS) return error;
  if (members->rank == MPI_UNDEFINED) {
    *newcomm = MPI_COMM_NULL;
    return MPI_SUCCESS;
  }
  Comm* made = nullptr;
  retain(*members);
  error = create_among(*from, *members, tag, &made);
  release(*members);
  return give(*from, error, made, newcomm, kName);
}

VMPI_ENTRY(int, MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* newcomm)) {
  static constexpr const char* kName = "MPI_Comm_split";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const from = find_any_comm(comm, newcomm, kName, &error);
  if (from == nullptr) return error;
  if (color < 0 && color != MPI_UNDEFINED)
    return raise(from, MPI_ERR_ARG, kName, "argument `color` is %d: 0 or more, or MPI_UNDEFINED",
                 color);
  Comm* made = nullptr;
  error = split(*from, color, key, &made);
  return give(*from, error, made, newcomm, kName);
}

VMPI_ENTRY(int, MPI_Comm_split_type,
           (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm)) {
  static constexpr const char* kName = "MPI_Comm_split_type";
  const BigGuard guard;
  int error = MPI_SUCCESS;
  Comm* const from = find_intracomm(comm, newcomm, kName, &error);
  if (from == nullptr) return error;
  if (error = check_hints(from, kName, info); error != MPI_SUCCESS) return error;
  Comm* made = nullptr;
  switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
      error = split_by_host(*from, key, &made);
      break;
    case MPI_UNDEFINED:
    case MPI_COMM_TYPE_HW_UNGUIDED:  // into what this library does not know: nobody gets one
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
      error = split(*from, MPI_UNDEFINED, key, &made);
      break;
    default:
      return raise(from, MPI_ERR_ARG, kName, "argument `split_type` is %d, which is none of MPI's",
                   split_type);
  }
  return give(*from, error, made, newcomm, kName);
}

VMPI_ENTRY(int, MPI_Intercomm_create,
           (MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
            MPI_Comm* newintercomm)) {
  static constexpr const char* kName = "MPI_Intercomm_create";
  const BigGuard guard;
  Comm* const local = find_comm(local_comm);
  if (local == nullptr) return bad_comm(kName, "local_comm", local_comm);
  if (newintercomm == nullptr) return null_pointer(local, kName, "newintercomm");
  if (local->remote != nullptr) return is_intercommunicator(local, kName);
  if (local_leader < 0 || local_leader >= local->size())
    return raise(local, MPI_ERR_RANK, kName, "argument `local_leader` is %d, there are %d ranks",
                 local_leader, local->size());
  if (tag < 0) return raise(local, MPI_ERR_TAG, kName, "argument `tag` is %d", tag);
  Comm* peer = nullptr;
  if (local->rank() == local_leader) {
    peer = find_comm(peer_comm);
    if (peer == nullptr) return bad_comm(kName, "peer_comm", peer_comm);
    const int size = peer->peers().size();
    if (remote_leader < 0 || remote_leader >= size)
      return raise(local, MPI_ERR_RANK, kName,
                   "argument `remote_leader` is %d, `peer_comm` has %d ranks", remote_leader, size);
  }
  Comm* made = nullptr;
  const int error = join(*local, local_leader, peer, remote_leader, tag, &made);
  if (error == MPI_ERR_ARG)
    return raise(local, MPI_ERR_COMM, kName, "the two groups have a process in common");
  if (error == MPI_ERR_PROC_ABORTED && gone_member(*local) < 0)
    return raise(local, error, kName, "the other group has lost a rank");
  return give(*local, error, made, newintercomm, kName);
}

VMPI_ENTRY(int, MPI_Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm* newintracomm)) {
  static constexpr const char* kName = "MPI_Intercomm_merge";
  const BigGuard guard;
  Comm* const inter = find_comm(intercomm);
  if (inter == nullptr) return bad_comm(kName, "intercomm", intercomm);
  if (newintracomm == nullptr) return null_pointer(inter, kName, "newintracomm");
  if (inter->remote == nullptr)
    return raise(inter, MPI_ERR_COMM, kName, "argument `intercomm` is an intracommunicator");
  Comm* made = nullptr;
  const int error = merge(*inter, high != 0, &made);
  return give(*inter, error, made, newintracomm, kName);
}
