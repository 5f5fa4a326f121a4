// SPDX-License-Identifier: BSD-2-Clause
// Collectives that compute, blocking and nonblocking (MPI 5.0 sections 6.9 to 6.12).
#include "mpi_shim/api/collective_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/coll/host_team.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

/// What every reduction is given and checks: the data where `has_data`, the result where `has_result`;
/// MPI_IN_PLACE is legal of a result in one group.
Reduced reduced(CollectiveCall& call, const void* send, void* receive, std::int64_t count,
                MPI_Datatype datatype, MPI_Op operation, bool has_data, bool has_result) noexcept {
  Datatype* const type = call.type(datatype, "datatype");
  const Reduced what = {send, receive, count, type, call.operation(operation, type)};
  call.count(count, "count");
  call.fits(count, type, "count");
  if (!call.is_good()) return what;
  const bool is_between_groups = call.comm().remote != nullptr;
  if (has_data && send != MPI_IN_PLACE)
    call.buffer(send, count, type, "sendbuf");
  else if (has_data && (!has_result || is_between_groups))
    call.not_in_place(send, "sendbuf");
  if (!has_result) return what;
  call.not_in_place(receive, "recvbuf");
  call.buffer(receive, count, type, "recvbuf");
  if (has_data) call.are_apart(send, receive, count * type->size);
  return what;
}

int reduce_to(const char* function, const void* sendbuf, void* recvbuf, int count,
              MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  call.root(root);
  if (!call.is_good()) return call.error();
  // One beside the root gives nothing and takes nothing: none of its arguments says anything.
  if (!call.is_leaf(root) && !call.is_root(root))
    return call.run([]() noexcept { return MPI_SUCCESS; }, [](Schedule&) noexcept {});
  const Reduced what =
      reduced(call, sendbuf, recvbuf, count, datatype, op, call.is_leaf(root), call.is_root(root));
  return call.run(
      [&]() noexcept {
        if (const int ended =
                host_reduce(call.comm(), sendbuf, recvbuf, count, *what.type, *what.op, root);
            ended != kNotOfHost)
          return ended;
        return reduce_binomial(call.comm(), sendbuf, recvbuf, count, *what.type, *what.op, root);
      },
      [&](Schedule& schedule) noexcept { plan_reduce(schedule, what, root); });
}

int allreduce(const char* function, const void* sendbuf, void* recvbuf, int count,
              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  const Reduced what = reduced(call, sendbuf, recvbuf, count, datatype, op, true, true);
  return call.run(
      [&]() noexcept {
        if (const int ended =
                host_allreduce(call.comm(), sendbuf, recvbuf, count, *what.type, *what.op);
            ended != kNotOfHost)
          return ended;
        return allreduce_recursive_doubling(call.comm(), sendbuf, recvbuf, count, *what.type,
                                            *what.op);
      },
      [&](Schedule& schedule) noexcept { plan_allreduce(schedule, what); });
}

int reduce_scatter(CollectiveCall& call, const void* sendbuf, void* recvbuf, const int* recvcounts,
                   MPI_Datatype datatype, MPI_Op op) noexcept {
  if (!call.is_good()) return call.error();
  std::int64_t total = 0;
  for (int i = 0; i < call.comm().size(); ++i) total += recvcounts[i];
  // A rank that gets nothing needs no place for it.
  void* const place = recvcounts[call.comm().rank()] == 0 && recvbuf == nullptr
                          ? const_cast<int*>(recvcounts)
                          : recvbuf;
  const Reduced what = reduced(call, sendbuf, place, total, datatype, op, true, true);
  return call.run(
      [&]() noexcept {
        return reduce_scatter_binomial(call.comm(), sendbuf, place, recvcounts, *what.type,
                                       *what.op);
      },
      [&](Schedule& schedule) noexcept { plan_reduce_scatter(schedule, what, recvcounts); });
}

int reduce_scatter_elements(const char* function, const void* sendbuf, void* recvbuf,
                            const int* recvcounts, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                            Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  if (call.is_good()) call.counts(recvcounts, "recvcounts", call.comm().size());
  return reduce_scatter(call, sendbuf, recvbuf, recvcounts, datatype, op);
}

int reduce_scatter_alike(const char* function, const void* sendbuf, void* recvbuf, int recvcount,
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  call.count(recvcount, "recvcount");
  call.fits(recvcount, call.type(datatype, "datatype"), "recvcount");
  if (!call.is_good()) return call.error();
  Array<int> counts;
  if (!counts.resize(static_cast<std::size_t>(call.comm().size()))) return call.end(MPI_ERR_NO_MEM);
  for (int& each : counts) each = recvcount;
  return reduce_scatter(call, sendbuf, recvbuf, counts.data(), datatype, op);
}

/// With what each rank has from those before it: MPI_Scan's, or MPI_Exscan's.
template <auto kCompute, auto kPlan>
int prefixes(const char* function, const void* sendbuf, void* recvbuf, int count,
             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, Start start) noexcept {
  const BigGuard guard;
  CollectiveCall call(function, comm, start);
  call.not_between_groups();
  const Reduced what = reduced(call, sendbuf, recvbuf, count, datatype, op, true, true);
  return call.run(
      [&]() noexcept {
        return kCompute(call.comm(), sendbuf, recvbuf, count, *what.type, *what.op);
      },
      [&](Schedule& schedule) noexcept { kPlan(schedule, what); });
}
constexpr auto scan = prefixes<scan_recursive_doubling, plan_scan>;
constexpr auto exscan = prefixes<exscan_recursive_doubling, plan_exscan>;

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Reduce,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            int root, MPI_Comm comm)) {
  return vmpi::reduce_to("MPI_Reduce", sendbuf, recvbuf, count, datatype, op, root, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Ireduce,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            int root, MPI_Comm comm, MPI_Request* request)) {
  return vmpi::reduce_to("MPI_Ireduce", sendbuf, recvbuf, count, datatype, op, root, comm,
                         starts(request));
}

VMPI_ENTRY(int, MPI_Allreduce,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm)) {
  return vmpi::allreduce("MPI_Allreduce", sendbuf, recvbuf, count, datatype, op, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Iallreduce,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm, MPI_Request* request)) {
  return vmpi::allreduce("MPI_Iallreduce", sendbuf, recvbuf, count, datatype, op, comm,
                         starts(request));
}

VMPI_ENTRY(int, MPI_Reduce_scatter,
           (const void* sendbuf, void* recvbuf, const int recvcounts[], MPI_Datatype datatype,
            MPI_Op op, MPI_Comm comm)) {
  return vmpi::reduce_scatter_elements("MPI_Reduce_scatter", sendbuf, recvbuf, recvcounts, datatype,
                                       op, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Ireduce_scatter,
           (const void* sendbuf, void* recvbuf, const int recvcounts[], MPI_Datatype datatype,
            MPI_Op op, MPI_Comm comm, MPI_Request* request)) {
  return vmpi::reduce_scatter_elements("MPI_Ireduce_scatter", sendbuf, recvbuf, recvcounts,
                                       datatype, op, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Reduce_scatter_block,
           (const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm)) {
  return vmpi::reduce_scatter_alike("MPI_Reduce_scatter_block", sendbuf, recvbuf, recvcount,
                                    datatype, op, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Ireduce_scatter_block,
           (const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm, MPI_Request* request)) {
  return vmpi::reduce_scatter_alike("MPI_Ireduce_scatter_block", sendbuf, recvbuf, recvcount,
                                    datatype, op, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Scan,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm)) {
  return vmpi::scan("MPI_Scan", sendbuf, recvbuf, count, datatype, op, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Iscan,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm, MPI_Request* request)) {
  return vmpi::scan("MPI_Iscan", sendbuf, recvbuf, count, datatype, op, comm, starts(request));
}

VMPI_ENTRY(int, MPI_Exscan,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm)) {
  return vmpi::exscan("MPI_Exscan", sendbuf, recvbuf, count, datatype, op, comm, kWaits);
}
VMPI_ENTRY(int, MPI_Iexscan,
           (const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            MPI_Comm comm, MPI_Request* request)) {
  return vmpi::exscan("MPI_Iexscan", sendbuf, recvbuf, count, datatype, op, comm, starts(request));
}
