// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/plans_between.hpp"

#include "mpi_shim/coll/shape.hpp"

namespace vmpi {
namespace {

/// The first ranks hear of each other when all of their own have come, and tell their own.
void barrier_between(Schedule& schedule) noexcept {
  const Typed nothing = {nullptr, 0, &byte_type()};
  Operands of;
  of.own = &nothing;
  Plan& plan = schedule.plan();
  schedule.use_local();
  make_plan(plan, Collective::kBarrier, of);
  schedule.use_own();
  if (schedule.comm().rank() == 0) {
    plan.receive(0, nothing);
    plan.send(0, nothing);
    plan.fence();
  }
  schedule.use_local();
  bcast_binomial(plan, of);  // others send nothing of no bytes
}

void bcast_between(Schedule& schedule, const Operands& of) noexcept {
  Plan& plan = schedule.plan();
  if (of.root == MPI_PROC_NULL) return;
  if (of.root == MPI_ROOT) return plan.send(0, *of.own);
  if (schedule.comm().rank() == 0) {
    plan.receive(of.root, *of.own);
    plan.fence();
  }
  schedule.use_local();
  Operands here;
  here.own = of.own;
  make_plan(plan, Collective::kBcast, here);
}

void gather_between(Schedule& schedule, const Operands& of) noexcept {
  if (of.root == MPI_PROC_NULL) return;
  if (of.root != MPI_ROOT) return schedule.plan().send_some(of.root, *of.own);
  for (int i = 0; i < schedule.comm().peers().size(); ++i)
    schedule.plan().receive_some(i, (*of.out)[i]);
}

void scatter_between(Schedule& schedule, const Operands& of) noexcept {
  if (of.root == MPI_PROC_NULL) return;
  if (of.root != MPI_ROOT) return schedule.plan().receive_some(of.root, *of.own);
  for (int i = 0; i < schedule.comm().peers().size(); ++i)
    schedule.plan().send_some(i, (*of.in)[i]);
}

void allgather_between(Schedule& schedule, const Operands& of) noexcept {
  const int peers = schedule.comm().peers().size();
  for (int i = 0; i < peers; ++i) schedule.plan().receive_some(i, (*of.out)[i]);
  for (int i = 0; i < peers; ++i) schedule.plan().send_some(i, *of.own);
}

void alltoall_between(Schedule& schedule, const Operands& of) noexcept {
  const int peers = schedule.comm().peers().size();
  const int begin = schedule.comm().rank() % peers;
  for (int i = 0; i < peers; ++i) {
    const int from = (begin - i + peers) % peers;
    schedule.plan().receive_some(from, (*of.out)[from]);
  }
  for (int i = 0; i < peers; ++i) {
    const int to = (begin + i) % peers;
    schedule.plan().send_some(to, (*of.in)[to]);
  }
}

/// What the ranks of this group give, combined at its first rank: `ours`.
void reduce_here(Schedule& schedule, const Reduced& what, void* ours) noexcept {
  const Reduced here = {what.send, ours, what.count, what.type, what.op};
  Operands of;
  of.what = &here;
  schedule.use_local();
  make_plan(schedule.plan(), Collective::kReduce, of);
  schedule.use_own();
}

/// Our first rank's memory for that.
[[nodiscard]] void* room_for(Schedule& schedule, const Reduced& what) noexcept {
  return schedule.comm().rank() == 0 ? schedule.plan().elements(*what.type, what.count) : nullptr;
}

/// That goes to the first rank of the other group, and theirs to our first rank, at `theirs`.
void swap_between(Schedule& schedule, const Reduced& what, void* theirs) noexcept {
  Plan& plan = schedule.plan();
  void* const ours = room_for(schedule, what);
  if (!plan.is_good()) return;
  reduce_here(schedule, what, ours);
  if (schedule.comm().rank() != 0) return;
  plan.receive(0, what.typed(theirs));
  plan.send(0, what.typed(ours));
  plan.fence();
}

void reduce_between(Schedule& schedule, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  Plan& plan = schedule.plan();
  if (of.root == MPI_PROC_NULL || what.count == 0) return;
  if (of.root == MPI_ROOT) return plan.receive(0, what.typed(what.receive));
  void* const ours = room_for(schedule, what);
  if (!plan.is_good()) return;
  reduce_here(schedule, what, ours);
  if (schedule.comm().rank() == 0) plan.send(of.root, what.typed(ours));
}

void allreduce_between(Schedule& schedule, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  if (what.count == 0) return;
  swap_between(schedule, what, what.receive);
  schedule.use_local();
  const Typed result = what.typed(what.receive);
  Operands here;
  here.own = &result;
  make_plan(schedule.plan(), Collective::kBcast, here);
}

void reduce_scatter_between(Schedule& schedule, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const Comm& local = *schedule.comm().local;
  Plan& plan = schedule.plan();
  void* const sum = room_for(schedule, what);
  if (!plan.is_good()) return;
  swap_between(schedule, what, sum);
  schedule.use_local();
  const Typed own = {what.receive, of.counts[local.rank()], what.type};
  if (local.rank() != 0) return plan.receive_some(0, own);
  std::int64_t before = of.counts[0];
  plan.copy(what.part(sum, 0, before), own);
  for (int i = 1; i < local.size(); ++i) {
    plan.send_some(i, what.part(sum, before, before + of.counts[i]));
    before += of.counts[i];
  }
}

}  // namespace

void plan_collective(Schedule& schedule, Collective which, const Operands& of) noexcept {
  if (schedule.comm().remote == nullptr) return make_plan(schedule.plan(), which, of);
  switch (which) {
    case Collective::kBarrier:
      return barrier_between(schedule);
    case Collective::kBcast:
      return bcast_between(schedule, of);
    case Collective::kGather:
      return gather_between(schedule, of);
    case Collective::kScatter:
      return scatter_between(schedule, of);
    case Collective::kAllgather:
      return allgather_between(schedule, of);
    case Collective::kAlltoall:
      return alltoall_between(schedule, of);
    case Collective::kReduce:
      return reduce_between(schedule, of);
    case Collective::kAllreduce:
      return allreduce_between(schedule, of);
    case Collective::kReduceScatter:
      return reduce_scatter_between(schedule, of);
    case Collective::kScan:
    case Collective::kExscan:
      return;  // only of intracommunicators: the entries check
  }
}

}  // namespace vmpi
