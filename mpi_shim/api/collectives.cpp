// SPDX-License-Identifier: BSD-2-Clause
// Collectives that move data, blocking and nonblocking (MPI 5.0 chapter 6): each pair of functions
// checks alike, then does it or starts it.
#include "mpi_shim/api/collective_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

/// The part of one rank in what the root, or all, have of each.
Typed own_part(CollectiveCall& call, const void* buffer, int count, MPI_Datatype type,
               bool may_be_in_place, const char* const (&names)[3]) noexcept {
  if (may_be_in_place && buffer == MPI_IN_PLACE)
    return {const_cast<void*>(buffer), 0, call.is_good() ? &byte_type() : nullptr};
  call.not_in_place(buffer, names[0]);
  return call.typed(buffer, count, type, names);
}

/// Of the root of an intercommunicator, and of those beside it.
Typed no_part() noexcept { return {nullptr, 0, &byte_type()}; }

int barrier(const char* function, MPI_Comm comm, Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  return call.run(Collective::kBarrier, {});
}

int bcast(const char* function, void* buffer, int count, MPI_Datatype datatype, int root,
          MPI_Comm comm, Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  call.root(root);
  Typed data = call.is_good() ? no_part() : Typed{};
  if (call.is_good() && (call.is_leaf(root) || call.is_root(root))) {
    call.not_in_place(buffer, "buffer");
    data = call.typed(buffer, count, datatype, {"buffer", "count", "datatype"});
  }
  return call.run(Collective::kBcast, {.root = root, .own = &data});
}

/// What both forms of gather share; `out` counts at the root.
int gather(CollectiveCall& call, const Typed& in, const Slices& out, int root) noexcept {
  if (call.is_good() && call.comm().remote == nullptr && call.is_root(root))
    call.are_apart(in.buffer, out[root].buffer, in.bytes());
  return call.run(Collective::kGather, {.root = root, .own = &in, .out = &out});
}

/// And both forms of scatter; `in` counts at the root.
int scatter(CollectiveCall& call, const Slices& in, const Typed& out, int root) noexcept {
  if (call.is_good() && call.comm().remote == nullptr && call.is_root(root))
    call.are_apart(in[root].buffer, out.buffer, out.bytes());
  return call.run(Collective::kScatter, {.root = root, .own = &out, .in = &in});
}

/// The buffer of one rank in a gather or scatter.
Typed leaf_part(CollectiveCall& call, const void* buffer, int count, MPI_Datatype type, int root,
                const char* const (&names)[3]) noexcept {
  call.root(root);
  if (!call.is_good()) return {};
  if (!call.is_leaf(root)) return no_part();
  return own_part(call, buffer, count, type, call.is_root(root), names);
}

int gather_alike(const char* function, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                 void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                 Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  const Typed in = leaf_part(call, sendbuf, sendcount, sendtype, root, kSend);
  Slices out;
  if (call.is_good() && call.is_root(root)) {
    call.not_in_place(recvbuf, "recvbuf");
    out = call.alike(recvbuf, recvcount, recvtype, kReceive);
  }
  return gather(call, in, out, root);
}

int gather_elements(const char* function, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                    void* recvbuf, const int* recvcounts, const int* displs, MPI_Datatype recvtype,
                    int root, MPI_Comm comm, Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  const Typed in = leaf_part(call, sendbuf, sendcount, sendtype, root, kSend);
  Slices out;
  out.form = Slices::Form::kElements;
  if (call.is_good() && call.is_root(root)) {
    call.not_in_place(recvbuf, "recvbuf");
    out = call.elements(recvbuf, recvcounts, displs, recvtype,
                        {"recvbuf", "recvcounts", "displs", "recvtype"});
  }
  return gather(call, in, out, root);
}

int scatter_alike(const char* function, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                  void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                  Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  const Typed out = leaf_part(call, recvbuf, recvcount, recvtype, root, kReceive);
  Slices in;
  if (call.is_good() && call.is_root(root)) {
    call.not_in_place(sendbuf, "sendbuf");
    in = call.alike(sendbuf, sendcount, sendtype, kSend);
  }
  return scatter(call, in, out, root);
}

int scatter_elements(const char* function, const void* sendbuf, const int* sendcounts,
                     const int* displs, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                     MPI_Datatype recvtype, int root, MPI_Comm comm, Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  const Typed out = leaf_part(call, recvbuf, recvcount, recvtype, root, kReceive);
  Slices in;
  in.form = Slices::Form::kElements;
  if (call.is_good() && call.is_root(root)) {
    call.not_in_place(sendbuf, "sendbuf");
    in = call.elements(sendbuf, sendcounts, displs, sendtype,
                       {"sendbuf", "sendcounts", "displs", "sendtype"});
  }
  return scatter(call, in, out, root);
}

/// Whether MPI_IN_PLACE is legal where all ranks both give and take.
bool is_one_group(const CollectiveCall& call) noexcept {
  return call.is_good() && call.comm().remote == nullptr;
}

int allgather(CollectiveCall& call, const Typed& in, const Slices& out) noexcept {
  if (is_one_group(call)) call.are_apart(in.buffer, out[call.comm().rank()].buffer, in.bytes());
  return call.run(Collective::kAllgather, {.own = &in, .out = &out});
}

int allgather_alike(const char* function, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                    void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                    Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  const Typed in = own_part(call, sendbuf, sendcount, sendtype, is_one_group(call), kSend);
  call.not_in_place(recvbuf, "recvbuf");
  const Slices out = call.alike(recvbuf, recvcount, recvtype, kReceive);
  return allgather(call, in, out);
}

int allgather_elements(const char* function, const void* sendbuf, int sendcount,
                       MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                       const int* displs, MPI_Datatype recvtype, MPI_Comm comm,
                       Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  const Typed in = own_part(call, sendbuf, sendcount, sendtype, is_one_group(call), kSend);
  call.not_in_place(recvbuf, "recvbuf");
  const Slices out = call.elements(recvbuf, recvcounts, displs, recvtype,
                                   {"recvbuf", "recvcounts", "displs", "recvtype"});
  return allgather(call, in, out);
}

int alltoall(CollectiveCall& call, const Slices& in, const Slices& out) noexcept {
  return call.run(Collective::kAlltoall, {.in = &in, .out = &out});
}

/// True: the rest of the sender's arguments says something.
bool gives(CollectiveCall& call, const void* sendbuf, Slices& in) noexcept {
  in.buffer = MPI_IN_PLACE;
  if (!is_one_group(call)) call.not_in_place(sendbuf, "sendbuf");
  return sendbuf != MPI_IN_PLACE;
}

int alltoall_alike(const char* function, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                   void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                   Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  Slices in;
  if (gives(call, sendbuf, in)) in = call.alike(sendbuf, sendcount, sendtype, kSend);
  call.not_in_place(recvbuf, "recvbuf");
  const Slices out = call.alike(recvbuf, recvcount, recvtype, kReceive);
  if (call.is_good()) call.are_apart(in.buffer, out.buffer, out.bytes(0));
  return alltoall(call, in, out);
}

int alltoall_elements(const char* function, const void* sendbuf, const int* sendcounts,
                      const int* sdispls, MPI_Datatype sendtype, void* recvbuf,
                      const int* recvcounts, const int* rdispls, MPI_Datatype recvtype,
                      MPI_Comm comm, Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  Slices in;
  if (gives(call, sendbuf, in)) in = call.elements(sendbuf, sendcounts, sdispls, sendtype, kSends);
  call.not_in_place(recvbuf, "recvbuf");
  const Slices out = call.elements(recvbuf, recvcounts, rdispls, recvtype, kReceives);
  call.are_apart(in, out);
  return alltoall(call, in, out);
}

int alltoall_types(const char* function, const void* sendbuf, const int* sendcounts,
                   const int* sdispls, const MPI_Datatype* sendtypes, void* recvbuf,
                   const int* recvcounts, const int* rdispls, const MPI_Datatype* recvtypes,
                   MPI_Comm comm, Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  Array<Datatype*> send_types;
  Array<Datatype*> receive_types;
  Slices in;
  if (gives(call, sendbuf, in))
    in = call.types(sendbuf, sendcounts, sdispls, sendtypes, send_types,
                    {"sendbuf", "sendcounts", "sdispls", "sendtypes"});
  call.not_in_place(recvbuf, "recvbuf");
  const Slices out = call.types(recvbuf, recvcounts, rdispls, recvtypes, receive_types,
                                {"recvbuf", "recvcounts", "rdispls", "recvtypes"});
  call.are_apart(in, out);
  return alltoall(call, in, out);
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Barrier, (MPI_Comm comm)) { return vmpi::barrier("MPI_Barrier", comm, kWaits); }
VMPI_ENTRY(int, MPI_Ibarrier, (MPI_Comm comm, MPI_Request* request)) {
  return vmpi::barrier("MPI_Ibarrier", comm, starts(request));
}

VMPI_ENTRY(int, MPI_Bcast,
           (void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)) {
  return vmpi::bcast("MPI_Bcast", buffer, count, datatype, root, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Ibcast,
           (void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
            MPI_Request* request)) {
  return vmpi::bcast("MPI_Ibcast", buffer, count, datatype, root, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Gather,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm)) {
  return vmpi::gather_alike("MPI_Gather", sendbuf, sendcount, sendtype, recvbuf, recvcount,
                            recvtype, root, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Igather,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request)) {
  return vmpi::gather_alike("MPI_Igather", sendbuf, sendcount, sendtype, recvbuf, recvcount,
                            recvtype, root, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Gatherv,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
            const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
            MPI_Comm comm)) {
  return vmpi::gather_elements("MPI_Gatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                               displs, recvtype, root, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Igatherv,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
            const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
            MPI_Comm comm, MPI_Request* request)) {
  return vmpi::gather_elements("MPI_Igatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                               displs, recvtype, root, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Scatter,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm)) {
  return vmpi::scatter_alike("MPI_Scatter", sendbuf, sendcount, sendtype, recvbuf, recvcount,
                             recvtype, root, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Iscatter,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request)) {
  return vmpi::scatter_alike("MPI_Iscatter", sendbuf, sendcount, sendtype, recvbuf, recvcount,
                             recvtype, root, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Scatterv,
           (const void* sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
            void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)) {
  return vmpi::scatter_elements("MPI_Scatterv", sendbuf, sendcounts, displs, sendtype, recvbuf,
                                recvcount, recvtype, root, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Iscatterv,
           (const void* sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
            void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
            MPI_Request* request)) {
  return vmpi::scatter_elements("MPI_Iscatterv", sendbuf, sendcounts, displs, sendtype, recvbuf,
                                recvcount, recvtype, root, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Allgather,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, MPI_Comm comm)) {
  return vmpi::allgather_alike("MPI_Allgather", sendbuf, sendcount, sendtype, recvbuf, recvcount,
                               recvtype, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Iallgather,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request)) {
  return vmpi::allgather_alike("MPI_Iallgather", sendbuf, sendcount, sendtype, recvbuf, recvcount,
                               recvtype, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Allgatherv,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
            const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm)) {
  return vmpi::allgather_elements("MPI_Allgatherv", sendbuf, sendcount, sendtype, recvbuf,
                                  recvcounts, displs, recvtype, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Iallgatherv,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
            const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
            MPI_Request* request)) {
  return vmpi::allgather_elements("MPI_Iallgatherv", sendbuf, sendcount, sendtype, recvbuf,
                                  recvcounts, displs, recvtype, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Alltoall,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, MPI_Comm comm)) {
  return vmpi::alltoall_alike("MPI_Alltoall", sendbuf, sendcount, sendtype, recvbuf, recvcount,
                              recvtype, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Ialltoall,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request)) {
  return vmpi::alltoall_alike("MPI_Ialltoall", sendbuf, sendcount, sendtype, recvbuf, recvcount,
                              recvtype, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Alltoallv,
           (const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
            void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
            MPI_Comm comm)) {
  return vmpi::alltoall_elements("MPI_Alltoallv", sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                 recvcounts, rdispls, recvtype, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Ialltoallv,
           (const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
            void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
            MPI_Comm comm, MPI_Request* request)) {
  return vmpi::alltoall_elements("MPI_Ialltoallv", sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                 recvcounts, rdispls, recvtype, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Alltoallw,
           (const void* sendbuf, const int sendcounts[], const int sdispls[],
            const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
            const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)) {
  return vmpi::alltoall_types("MPI_Alltoallw", sendbuf, sendcounts, sdispls, sendtypes, recvbuf,
                              recvcounts, rdispls, recvtypes, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Ialltoallw,
           (const void* sendbuf, const int sendcounts[], const int sdispls[],
            const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
            const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
            MPI_Request* request)) {
  return vmpi::alltoall_types("MPI_Ialltoallw", sendbuf, sendcounts, sdispls, sendtypes, recvbuf,
                              recvcounts, rdispls, recvtypes, comm, starts(request));
}
