// SPDX-License-Identifier: BSD-2-Clause
// Collectives that compute (MPI 5.0 sections 6.9 to 6.11).
#include "mpi_shim/api/collective_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

/// What every reduction is given and checks. The result is wanted where `has_result`; MPI_IN_PLACE
/// is legal there only.
struct Reduction {
  Datatype* type;
  Op* op;

  Reduction(CollectiveCall& call, const void* send, const void* receive, std::int64_t count,
            MPI_Datatype datatype, MPI_Op operation, bool has_result) noexcept
      : type(call.type(datatype, "datatype")), op(call.operation(operation, type)) {
    call.count(count, "count");
    call.fits(count, type, "count");
    if (!call.is_good()) return;
    if (send != MPI_IN_PLACE)
      call.buffer(send, count, type, "sendbuf");
    else if (!has_result)
      call.not_in_place(send, "sendbuf");
    if (!has_result) return;
    call.not_in_place(receive, "recvbuf");
    call.buffer(receive, count, type, "recvbuf");
    call.are_apart(send, receive, count * type->size);
  }
};

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Reduce,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            int root, MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Reduce", comm);
  call.root(root);
  if (!call.is_good()) return call.error();
  const Reduction what(call, sendbuf, recvbuf, count, datatype, op, call.is_root(root));
  if (!call.is_good()) return call.error();
  return call.end(
      reduce_binomial(call.comm(), sendbuf, recvbuf, count, *what.type, *what.op, root));
}

VMPI_ENTRY(int, MPI_Allreduce,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Allreduce", comm);
  const Reduction what(call, sendbuf, recvbuf, count, datatype, op, true);
  if (!call.is_good()) return call.error();
  return call.end(
      allreduce_recursive_doubling(call.comm(), sendbuf, recvbuf, count, *what.type, *what.op));
}

VMPI_ENTRY(int, MPI_Reduce_scatter,
           (const void* sendbuf, void* recvbuf, const int recvcounts[], MPI_Datatype datatype,
            MPI_Op op, MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Reduce_scatter", comm);
  call.counts(recvcounts, "recvcounts");
  if (!call.is_good()) return call.error();
  std::int64_t total = 0;
  for (int i = 0; i < call.comm().size(); ++i) total += recvcounts[i];
  // A rank that gets nothing needs no place for it.
  const void* const place = recvcounts[call.comm().rank()] == 0 && recvbuf == nullptr
                                ? static_cast<const void*>(recvcounts)
                                : recvbuf;
  const Reduction what(call, sendbuf, place, total, datatype, op, true);
  if (!call.is_good()) return call.error();
  return call.end(
      reduce_scatter_binomial(call.comm(), sendbuf, recvbuf, recvcounts, *what.type, *what.op));
}

VMPI_ENTRY(int, MPI_Reduce_scatter_block,
           (const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Reduce_scatter_block", comm);
  call.count(recvcount, "recvcount");
  const Reduction what(call, sendbuf, recvbuf, recvcount, datatype, op, true);
  if (!call.is_good()) return call.error();
  Array<int> counts;
  if (!counts.resize(static_cast<std::size_t>(call.comm().size()))) return call.end(MPI_ERR_NO_MEM);
  for (int& each : counts) each = recvcount;
  return call.end(
      reduce_scatter_binomial(call.comm(), sendbuf, recvbuf, counts.data(), *what.type, *what.op));
}

VMPI_ENTRY(int, MPI_Scan,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Scan", comm);
  const Reduction what(call, sendbuf, recvbuf, count, datatype, op, true);
  if (!call.is_good()) return call.error();
  return call.end(
      scan_recursive_doubling(call.comm(), sendbuf, recvbuf, count, *what.type, *what.op));
}

VMPI_ENTRY(int, MPI_Exscan,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm)) {
  const BigGuard guard;
  CollectiveCall call("MPI_Exscan", comm);
  const Reduction what(call, sendbuf, recvbuf, count, datatype, op, true);
  if (!call.is_good()) return call.error();
  return call.end(
      exscan_recursive_doubling(call.comm(), sendbuf, recvbuf, count, *what.type, *what.op));
}
