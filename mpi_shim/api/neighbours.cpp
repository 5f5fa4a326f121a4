// SPDX-License-Identifier: BSD-2-Clause
// Collectives with the neighbours in a topology, blocking and nonblocking (MPI 5.0 section 8.6).
#include <type_traits>

#include "mpi_shim/api/collective_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

/// `what_goes(call)` checks what goes to the destinations, one part or slices; `what_comes(call)` the
/// slices that come from the sources.
template <class WhatGoes, class WhatComes>
int meet_neighbours(const char* function, const void* sendbuf, const void* recvbuf, MPI_Comm comm,
                    Start start, WhatGoes what_goes, WhatComes what_comes) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  Neighbours beside;
  call.neighbours(beside);
  call.not_in_place(sendbuf, "sendbuf");
  call.not_in_place(recvbuf, "recvbuf");
  call.use_slices(beside.destinations.size());
  const auto in = what_goes(call);
  call.use_slices(beside.sources.size());
  const Slices out = what_comes(call);
  return call.run([&](Schedule& schedule) noexcept {
    if constexpr (std::is_same_v<decltype(in), const Typed>)
      plan_neighbours(schedule.plan(), beside, &in, nullptr, out);
    else
      plan_neighbours(schedule.plan(), beside, nullptr, &in, out);
  });
}

int gather_from(const char* function, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                Start start) noexcept {
  return meet_neighbours(
      function, sendbuf, recvbuf, comm, start,
      [&](CollectiveCall& call) { return call.typed(sendbuf, sendcount, sendtype, kSend); },
      [&](CollectiveCall& call) { return call.alike(recvbuf, recvcount, recvtype, kReceive); });
}

int gather_elements_from(const char* function, const void* sendbuf, int sendcount,
                         MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                         const int* displs, MPI_Datatype recvtype, MPI_Comm comm,
                         Start start) noexcept {
  return meet_neighbours(
      function, sendbuf, recvbuf, comm, start,
      [&](CollectiveCall& call) { return call.typed(sendbuf, sendcount, sendtype, kSend); },
      [&](CollectiveCall& call) {
        return call.elements(recvbuf, recvcounts, displs, recvtype,
                             {"recvbuf", "recvcounts", "displs", "recvtype"});
      });
}

int exchange_with(const char* function, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                  void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                  Start start) noexcept {
  return meet_neighbours(
      function, sendbuf, recvbuf, comm, start,
      [&](CollectiveCall& call) { return call.alike(sendbuf, sendcount, sendtype, kSend); },
      [&](CollectiveCall& call) { return call.alike(recvbuf, recvcount, recvtype, kReceive); });
}

int exchange_elements_with(const char* function, const void* sendbuf, const int* sendcounts,
                           const int* sdispls, MPI_Datatype sendtype, void* recvbuf,
                           const int* recvcounts, const int* rdispls, MPI_Datatype recvtype,
                           MPI_Comm comm, Start start) noexcept {
  return meet_neighbours(
      function, sendbuf, recvbuf, comm, start,
      [&](CollectiveCall& call) {
        return call.elements(sendbuf, sendcounts, sdispls, sendtype, kSends);
      },
      [&](CollectiveCall& call) {
        return call.elements(recvbuf, recvcounts, rdispls, recvtype, kReceives);
      });
}

int exchange_types_with(const char* function, const void* sendbuf, const int* sendcounts,
                        const MPI_Aint* sdispls, const MPI_Datatype* sendtypes, void* recvbuf,
                        const int* recvcounts, const MPI_Aint* rdispls,
                        const MPI_Datatype* recvtypes, MPI_Comm comm, Start start) noexcept {
  Array<Datatype*> send_types;
  Array<Datatype*> receive_types;
  return meet_neighbours(
      function, sendbuf, recvbuf, comm, start,
      [&](CollectiveCall& call) {
        if (call.peers() != 0) call.pointer(sdispls, "sdispls");
        return call.types(sendbuf, sendcounts, sdispls, sendtypes, send_types,
                          {"sendbuf", "sendcounts", "sdispls", "sendtypes"});
      },
      [&](CollectiveCall& call) {
        if (call.peers() != 0) call.pointer(rdispls, "rdispls");
        return call.types(recvbuf, recvcounts, rdispls, recvtypes, receive_types,
                          {"recvbuf", "recvcounts", "rdispls", "recvtypes"});
      });
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Neighbor_allgather,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, MPI_Comm comm)) {
  return vmpi::gather_from("MPI_Neighbor_allgather", sendbuf, sendcount, sendtype, recvbuf,
                           recvcount, recvtype, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Ineighbor_allgather,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request)) {
  return vmpi::gather_from("MPI_Ineighbor_allgather", sendbuf, sendcount, sendtype, recvbuf,
                           recvcount, recvtype, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Neighbor_allgatherv,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
            const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm)) {
  return vmpi::gather_elements_from("MPI_Neighbor_allgatherv", sendbuf, sendcount, sendtype,
                                    recvbuf, recvcounts, displs, recvtype, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Ineighbor_allgatherv,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
            const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
            MPI_Request* request)) {
  return vmpi::gather_elements_from("MPI_Ineighbor_allgatherv", sendbuf, sendcount, sendtype,
                                    recvbuf, recvcounts, displs, recvtype, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Neighbor_alltoall,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, MPI_Comm comm)) {
  return vmpi::exchange_with("MPI_Neighbor_alltoall", sendbuf, sendcount, sendtype, recvbuf,
                             recvcount, recvtype, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Ineighbor_alltoall,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request)) {
  return vmpi::exchange_with("MPI_Ineighbor_alltoall", sendbuf, sendcount, sendtype, recvbuf,
                             recvcount, recvtype, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Neighbor_alltoallv,
           (const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
            void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
            MPI_Comm comm)) {
  return vmpi::exchange_elements_with("MPI_Neighbor_alltoallv", sendbuf, sendcounts, sdispls,
                                      sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
                                      kWaits);
}
VMPI_ENTRY(int, MPI_Ineighbor_alltoallv,
           (const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
            void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
            MPI_Comm comm, MPI_Request* request)) {
  return vmpi::exchange_elements_with("MPI_Ineighbor_alltoallv", sendbuf, sendcounts, sdispls,
                                      sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
                                      starts(request));
}

VMPI_ENTRY(int, MPI_Neighbor_alltoallw,
           (const void* sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
            const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
            const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)) {
  return vmpi::exchange_types_with("MPI_Neighbor_alltoallw", sendbuf, sendcounts, sdispls,
                                   sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
                                   kWaits);
}
VMPI_ENTRY(int, MPI_Ineighbor_alltoallw,
           (const void* sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
            const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
            const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
            MPI_Request* request)) {
  return vmpi::exchange_types_with("MPI_Ineighbor_alltoallw", sendbuf, sendcounts, sdispls,
                                   sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
                                   starts(request));
}
