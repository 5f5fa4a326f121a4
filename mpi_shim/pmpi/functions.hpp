// SPDX-License-Identifier: BSD-2-Clause
// What is called of the MPI underneath, by its names for tools. No header of an MPI is included:
// handles are ints in one MPI and pointers in the other, and both travel in a register of 64 bits,
// of which the first reads the lower half. All else that is used here is alike in both.
#pragma once

#include <cstdint>

namespace vmpi::pmpi {

/// A communicator, type or operation, as wide as the wider of the two.
using Handle = std::uintptr_t;
/// MPI_Count.
using Count = std::int64_t;

using CopyAttribute = int(Handle, int, void*, void*, void*, int*);
using DeleteAttribute = int(Handle, int, void*, void*);

/// F(member, name, result and arguments): those that must be there.
#define VERBATIM_PMPI_NEEDED(F)                                                  \
  F(get_library_version, "PMPI_Get_library_version", (char*, int*))              \
  F(initialized, "PMPI_Initialized", (int*))                                     \
  F(finalized, "PMPI_Finalized", (int*))                                         \
  F(query_thread, "PMPI_Query_thread", (int*))                                   \
  F(abort, "PMPI_Abort", (Handle, int))                                          \
  F(comm_test_inter, "PMPI_Comm_test_inter", (Handle, int*))                     \
  F(comm_size, "PMPI_Comm_size", (Handle, int*))                                 \
  F(comm_rank, "PMPI_Comm_rank", (Handle, int*))                                 \
  F(comm_create_keyval, "PMPI_Comm_create_keyval",                               \
    (CopyAttribute*, DeleteAttribute*, int*, void*))                             \
  F(comm_set_attr, "PMPI_Comm_set_attr", (Handle, int, void*))                   \
  F(comm_get_attr, "PMPI_Comm_get_attr", (Handle, int, void*, int*))             \
  F(comm_delete_attr, "PMPI_Comm_delete_attr", (Handle, int))                    \
  F(comm_call_errhandler, "PMPI_Comm_call_errhandler", (Handle, int))            \
  F(type_size, "PMPI_Type_size", (Handle, int*))                                 \
  F(type_create_hindexed, "PMPI_Type_create_hindexed",                           \
    (int, const int*, const std::intptr_t*, Handle, Handle*))                    \
  F(type_commit, "PMPI_Type_commit", (Handle*))                                  \
  F(type_free, "PMPI_Type_free", (Handle*))                                      \
  F(pack, "PMPI_Pack", (const void*, int, Handle, void*, int, int*, Handle))     \
  F(unpack, "PMPI_Unpack", (const void*, int, int*, void*, int, Handle, Handle)) \
  F(iprobe, "PMPI_Iprobe", (int, int, Handle, int*, void*))                      \
  F(test, "PMPI_Test", (Handle*, int*, void*))                                   \
  F(iallreduce, "PMPI_Iallreduce", (const void*, void*, int, Handle, Handle, Handle, Handle*))

/// Those that calls are passed on to; of the later ones an MPI may have none.
#define VERBATIM_PMPI_PASSED_ON(F)                                                               \
  F(finalize, "PMPI_Finalize", ())                                                               \
  F(barrier, "PMPI_Barrier", (Handle))                                                           \
  F(bcast, "PMPI_Bcast", (void*, int, Handle, int, Handle))                                      \
  F(reduce, "PMPI_Reduce", (const void*, void*, int, Handle, Handle, int, Handle))               \
  F(allreduce, "PMPI_Allreduce", (const void*, void*, int, Handle, Handle, Handle))              \
  F(allgather, "PMPI_Allgather", (const void*, int, Handle, void*, int, Handle, Handle))         \
  F(alltoall, "PMPI_Alltoall", (const void*, int, Handle, void*, int, Handle, Handle))           \
  F(bcast_c, "PMPI_Bcast_c", (void*, Count, Handle, int, Handle))                                \
  F(reduce_c, "PMPI_Reduce_c", (const void*, void*, Count, Handle, Handle, int, Handle))         \
  F(allreduce_c, "PMPI_Allreduce_c", (const void*, void*, Count, Handle, Handle, Handle))        \
  F(allgather_c, "PMPI_Allgather_c", (const void*, Count, Handle, void*, Count, Handle, Handle)) \
  F(alltoall_c, "PMPI_Alltoall_c", (const void*, Count, Handle, void*, Count, Handle, Handle))

struct Functions {
#define VERBATIM_PMPI_MEMBER(member, name, arguments) int(*member) arguments = nullptr;
  VERBATIM_PMPI_NEEDED(VERBATIM_PMPI_MEMBER)
  VERBATIM_PMPI_PASSED_ON(VERBATIM_PMPI_MEMBER)
#undef VERBATIM_PMPI_MEMBER
};

}  // namespace vmpi::pmpi
