// SPDX-License-Identifier: BSD-2-Clause
// The functions of C that a program calls: each is taken, or passed on as it came. Those with large
// counts too, since one rank may call the one where another calls the other.
#include "mpi_shim/pmpi/communicator.hpp"
#include "mpi_shim/pmpi/entry.hpp"
#include "mpi_shim/pmpi/taken.hpp"

namespace vmpi::pmpi {
namespace {

template <auto kFunction, class Number>
int bcast(const char* name, void* buffer, Number count, Handle type, int root,
          Handle comm) noexcept {
  int result = kSuccess;
  if (take_bcast(buffer, count, type, root, comm, result)) return result;
  return pass_on<kFunction>(name, buffer, count, type, root, comm);
}

template <auto kFunction, class Number>
int reduce(const char* name, const void* send, void* receive, Number count, Handle type, Handle op,
           int root, Handle comm) noexcept {
  int result = kSuccess;
  if (take_reduce(send, receive, count, type, op, root, comm, result)) return result;
  return pass_on<kFunction>(name, send, receive, count, type, op, root, comm);
}

template <auto kFunction, class Number>
int allreduce(const char* name, const void* send, void* receive, Number count, Handle type,
              Handle op, Handle comm) noexcept {
  int result = kSuccess;
  if (take_allreduce(send, receive, count, type, op, comm, result)) return result;
  return pass_on<kFunction>(name, send, receive, count, type, op, comm);
}

using TakeExchange = bool(const void*, Count, Handle, void*, Count, Handle, Handle, int&) noexcept;

template <auto kFunction, TakeExchange* kTake, class Number>
int exchange(const char* name, const void* send, Number send_count, Handle send_type, void* receive,
             Number receive_count, Handle receive_type, Handle comm) noexcept {
  int result = kSuccess;
  if (kTake(send, send_count, send_type, receive, receive_count, receive_type, comm, result))
    return result;
  return pass_on<kFunction>(name, send, send_count, send_type, receive, receive_count, receive_type,
                            comm);
}

}  // namespace
}  // namespace vmpi::pmpi

using vmpi::pmpi::Count;
using vmpi::pmpi::Functions;
using vmpi::pmpi::Handle;

VERBATIM_PMPI_ENTRY int MPI_Barrier(Handle comm) {
  int result = vmpi::pmpi::kSuccess;
  if (vmpi::pmpi::take_barrier(comm, result)) return result;
  return vmpi::pmpi::pass_on<&Functions::barrier>("PMPI_Barrier", comm);
}

VERBATIM_PMPI_ENTRY int MPI_Bcast(void* buffer, int count, Handle type, int root, Handle comm) {
  return vmpi::pmpi::bcast<&Functions::bcast>("PMPI_Bcast", buffer, count, type, root, comm);
}

VERBATIM_PMPI_ENTRY int MPI_Bcast_c(void* buffer, Count count, Handle type, int root, Handle comm) {
  return vmpi::pmpi::bcast<&Functions::bcast_c>("PMPI_Bcast_c", buffer, count, type, root, comm);
}

VERBATIM_PMPI_ENTRY int MPI_Reduce(const void* send, void* receive, int count, Handle type,
                                   Handle op, int root, Handle comm) {
  return vmpi::pmpi::reduce<&Functions::reduce>("PMPI_Reduce", send, receive, count, type, op, root,
                                                comm);
}

VERBATIM_PMPI_ENTRY int MPI_Reduce_c(const void* send, void* receive, Count count, Handle type,
                                     Handle op, int root, Handle comm) {
  return vmpi::pmpi::reduce<&Functions::reduce_c>("PMPI_Reduce_c", send, receive, count, type, op,
                                                  root, comm);
}

VERBATIM_PMPI_ENTRY int MPI_Allreduce(const void* send, void* receive, int count, Handle type,
                                      Handle op, Handle comm) {
  return vmpi::pmpi::allreduce<&Functions::allreduce>("PMPI_Allreduce", send, receive, count, type,
                                                      op, comm);
}

VERBATIM_PMPI_ENTRY int MPI_Allreduce_c(const void* send, void* receive, Count count, Handle type,
                                        Handle op, Handle comm) {
  return vmpi::pmpi::allreduce<&Functions::allreduce_c>("PMPI_Allreduce_c", send, receive, count,
                                                        type, op, comm);
}

VERBATIM_PMPI_ENTRY int MPI_Allgather(const void* send, int send_count, Handle send_type,
                                      void* receive, int receive_count, Handle receive_type,
                                      Handle comm) {
  return vmpi::pmpi::exchange<&Functions::allgather, vmpi::pmpi::take_allgather>(
      "PMPI_Allgather", send, send_count, send_type, receive, receive_count, receive_type, comm);
}

VERBATIM_PMPI_ENTRY int MPI_Allgather_c(const void* send, Count send_count, Handle send_type,
                                        void* receive, Count receive_count, Handle receive_type,
                                        Handle comm) {
  return vmpi::pmpi::exchange<&Functions::allgather_c, vmpi::pmpi::take_allgather>(
      "PMPI_Allgather_c", send, send_count, send_type, receive, receive_count, receive_type, comm);
}

VERBATIM_PMPI_ENTRY int MPI_Alltoall(const void* send, int send_count, Handle send_type,
                                     void* receive, int receive_count, Handle receive_type,
                                     Handle comm) {
  return vmpi::pmpi::exchange<&Functions::alltoall, vmpi::pmpi::take_alltoall>(
      "PMPI_Alltoall", send, send_count, send_type, receive, receive_count, receive_type, comm);
}

VERBATIM_PMPI_ENTRY int MPI_Alltoall_c(const void* send, Count send_count, Handle send_type,
                                       void* receive, Count receive_count, Handle receive_type,
                                       Handle comm) {
  return vmpi::pmpi::exchange<&Functions::alltoall_c, vmpi::pmpi::take_alltoall>(
      "PMPI_Alltoall_c", send, send_count, send_type, receive, receive_count, receive_type, comm);
}

VERBATIM_PMPI_ENTRY int MPI_Finalize() {
  vmpi::pmpi::end_communicators();
  return vmpi::pmpi::pass_on<&Functions::finalize>("PMPI_Finalize");
}
