// SPDX-License-Identifier: BSD-2-Clause
// Collectives that move data (MPI 5.0 chapter 6).
#include "mpi_shim/api/collective_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

/// Slices of up to this size take fewer messages on the way through others.
constexpr std::int64_t kShortSlice = 512;
constexpr int kFewRanks = 4;

int alltoall(Comm& comm, const Slices& in, const Slices& out) noexcept {
  if (in.buffer == MPI_IN_PLACE) return alltoall_in_place(comm, out);
  if (in.form == Slices::Form::kAlike && comm.size() > kFewRanks && in.bytes(0) <= kShortSlice)
    return alltoall_bruck(comm, in, out);
  return alltoall_spread(comm, in, out);
}

/// What both forms of gather share; `out` counts at the root.
int gather(CollectiveCall& call, const Typed& in, const Slices& out, int root) noexcept {
  if (!call.is_good()) return call.error();
  if (call.is_root(root)) call.are_apart(in.buffer, out[root].buffer, in.bytes());
  if (!call.is_good()) return call.error();
  return call.end(out.form == Slices::Form::kElements
                      ? gather_linear(call.comm(), in, out, root)
                      : gather_binomial(call.comm(), in, out, root));
}

/// And both forms of scatter; `in` counts at the root.
int scatter(CollectiveCall& call, const Slices& in, const Typed& out, int root) noexcept {
  if (!call.is_good()) return call.error();
  if (call.is_root(root)) call.are_apart(in[root].buffer, out.buffer, out.bytes());
  if (!call.is_good()) return call.error();
  return call.end(in.form == Slices::Form::kElements
                      ? scatter_linear(call.comm(), in, out, root)
                      : scatter_binomial(call.comm(), in, out, root));
}

/// The part of one rank in what the root, or all, have of each.
Typed own_part(CollectiveCall& call, const void* buffer, int count, MPI_Datatype type,
               bool may_be_in_place, const char* const (&names)[3]) noexcept {
  if (may_be_in_place && buffer == MPI_IN_PLACE)
    return {const_cast<void*>(buffer), 0, call.is_good() ? &byte_type() : nullptr};
  call.not_in_place(buffer, names[0]);
  return call.typed(buffer, count, type, names);
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Barrier, (MPI_Comm comm)) {
  const BigGuard guard;
  const CollectiveCall call("MPI_Barrier", comm);
  if (!call.is_good()) return call.error();
  return call.end(barrier_dissemination(call.comm()));
}

VMPI_ENTRY(int, MPI_Bcast,
           (void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Bcast", comm);
  call.root(root);
  call.not_in_place(buffer, "buffer");
  const Typed data = call.typed(buffer, count, datatype, {"buffer", "count", "datatype"});
  if (!call.is_good()) return call.error();
  return call.end(bcast_binomial(call.comm(), data.buffer, data.count, *data.type, root));
}

VMPI_ENTRY(int, MPI_Gather,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Gather", comm);
  call.root(root);
  if (!call.is_good()) return call.error();
  const Typed in = own_part(call, sendbuf, sendcount, sendtype, call.is_root(root), kSend);
  Slices out;
  if (call.is_root(root)) {
    call.not_in_place(recvbuf, "recvbuf");
    out = call.alike(recvbuf, recvcount, recvtype, kReceive);
  }
  return gather(call, in, out, root);
}

VMPI_ENTRY(int, MPI_Gatherv,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
            const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
            MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Gatherv", comm);
  call.root(root);
  if (!call.is_good()) return call.error();
  const Typed in = own_part(call, sendbuf, sendcount, sendtype, call.is_root(root), kSend);
  Slices out;
  out.form = Slices::Form::kElements;
  if (call.is_root(root)) {
    call.not_in_place(recvbuf, "recvbuf");
    out = call.elements(recvbuf, recvcounts, displs, recvtype,
                        {"recvbuf", "recvcounts", "displs", "recvtype"});
  }
  return gather(call, in, out, root);
}

VMPI_ENTRY(int, MPI_Scatter,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Scatter", comm);
  call.root(root);
  if (!call.is_good()) return call.error();
  const Typed out = own_part(call, recvbuf, recvcount, recvtype, call.is_root(root), kReceive);
  Slices in;
  if (call.is_root(root)) {
    call.not_in_place(sendbuf, "sendbuf");
    in = call.alike(sendbuf, sendcount, sendtype, kSend);
  }
  return scatter(call, in, out, root);
}

VMPI_ENTRY(int, MPI_Scatterv,
           (const void* sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
            void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Scatterv", comm);
  call.root(root);
  if (!call.is_good()) return call.error();
  const Typed out = own_part(call, recvbuf, recvcount, recvtype, call.is_root(root), kReceive);
  Slices in;
  in.form = Slices::Form::kElements;
  if (call.is_root(root)) {
    call.not_in_place(sendbuf, "sendbuf");
    in = call.elements(sendbuf, sendcounts, displs, sendtype,
                       {"sendbuf", "sendcounts", "displs", "sendtype"});
  }
  return scatter(call, in, out, root);
}

VMPI_ENTRY(int, MPI_Allgather,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Allgather", comm);
  const Typed in = own_part(call, sendbuf, sendcount, sendtype, true, kSend);
  call.not_in_place(recvbuf, "recvbuf");
  const Slices out = call.alike(recvbuf, recvcount, recvtype, kReceive);
  if (call.is_good()) call.are_apart(in.buffer, out[call.comm().rank()].buffer, in.bytes());
  if (!call.is_good()) return call.error();
  return call.end(allgather_bruck(call.comm(), in, out));
}

VMPI_ENTRY(int, MPI_Allgatherv,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
            const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Allgatherv", comm);
  const Typed in = own_part(call, sendbuf, sendcount, sendtype, true, kSend);
  call.not_in_place(recvbuf, "recvbuf");
  const Slices out = call.elements(recvbuf, recvcounts, displs, recvtype,
                                   {"recvbuf", "recvcounts", "displs", "recvtype"});
  if (call.is_good()) call.are_apart(in.buffer, out[call.comm().rank()].buffer, in.bytes());
  if (!call.is_good()) return call.error();
  return call.end(allgather_bruck(call.comm(), in, out));
}

VMPI_ENTRY(int, MPI_Alltoall,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
            MPI_Datatype recvtype, MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Alltoall", comm);
  Slices in;
  in.buffer = MPI_IN_PLACE;
  if (sendbuf != MPI_IN_PLACE) in = call.alike(sendbuf, sendcount, sendtype, kSend);
  call.not_in_place(recvbuf, "recvbuf");
  const Slices out = call.alike(recvbuf, recvcount, recvtype, kReceive);
  if (call.is_good()) call.are_apart(in.buffer, out.buffer, out.bytes(0));
  if (!call.is_good()) return call.error();
  return call.end(alltoall(call.comm(), in, out));
}

VMPI_ENTRY(int, MPI_Alltoallv,
           (const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
            void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
            MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Alltoallv", comm);
  Slices in;
  in.buffer = MPI_IN_PLACE;
  if (sendbuf != MPI_IN_PLACE) in = call.elements(sendbuf, sendcounts, sdispls, sendtype, kSends);
  call.not_in_place(recvbuf, "recvbuf");
  const Slices out = call.elements(recvbuf, recvcounts, rdispls, recvtype, kReceives);
  if (!call.is_good()) return call.error();
  return call.end(alltoall(call.comm(), in, out));
}

VMPI_ENTRY(int, MPI_Alltoallw,
           (const void* sendbuf, const int sendcounts[], const int sdispls[],
            const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
            const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Alltoallw", comm);
  Array<Datatype*> send_types;
  Array<Datatype*> receive_types;
  Slices in;
  in.buffer = MPI_IN_PLACE;
  if (sendbuf != MPI_IN_PLACE)
    in = call.types(sendbuf, sendcounts, sdispls, sendtypes, send_types,
                    {"sendbuf", "sendcounts", "sdispls", "sendtypes"});
  call.not_in_place(recvbuf, "recvbuf");
  const Slices out = call.types(recvbuf, recvcounts, rdispls, recvtypes, receive_types,
                                {"recvbuf", "recvcounts", "rdispls", "recvtypes"});
  if (!call.is_good()) return call.error();
  return call.end(alltoall(call.comm(), in, out));
}
