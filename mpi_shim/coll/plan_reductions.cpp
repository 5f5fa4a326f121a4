// SPDX-License-Identifier: BSD-2-Clause
// Schedules of the collectives that compute. Trees, order and partners are those of the blocking
// algorithms, which say why they are so.
#include <utility>

#include "mpi_shim/coll/plans.hpp"

namespace vmpi {
namespace {

/// Of an intercommunicator: what the ranks of this group give, combined, to the first rank of the
/// other, and theirs to our first rank, at `theirs`.
void plan_swap(Schedule& schedule, const Reduced& what, void* theirs) noexcept {
  Comm& comm = schedule.comm();
  void* const ours = comm.rank() == 0 ? schedule.elements(*what.type, what.count) : nullptr;
  if (!schedule.is_good()) return;
  schedule.use_local();
  plan_reduce_within(schedule, *comm.local, {what.send, ours, what.count, what.type, what.op}, 0);
  schedule.use_own();
  if (comm.rank() != 0) return;
  schedule.receive(0, {theirs, what.count, what.type});
  schedule.send(0, {ours, what.count, what.type});
}

/// `has_result`: `receive` holds our own part already, as MPI_Scan has it.
void plan_prefixes(Schedule& schedule, const Reduced& what, const void* own,
                   bool has_result) noexcept {
  const Comm& comm = schedule.comm();
  const auto typed = [&](const void* at) noexcept -> Typed {
    return {const_cast<void*>(at), what.count, what.type};
  };
  void* block = schedule.elements(*what.type, what.count);
  void* incoming = schedule.elements(*what.type, what.count);
  if (!schedule.is_good()) return;
  schedule.copy(typed(own), typed(block));
  for (int mask = 1; mask < comm.size(); mask *= 2) {
    const int peer = comm.rank() ^ mask;
    if (peer < comm.size()) {
      schedule.receive(peer, typed(incoming));
      schedule.send(peer, typed(block));
      schedule.fence();
      if (peer > comm.rank()) {
        schedule.combine(*what.op, typed(block), incoming);
        std::swap(block, incoming);
      } else {
        if (has_result)
          schedule.combine(*what.op, typed(incoming), what.receive);
        else
          schedule.copy(typed(incoming), typed(what.receive));
        has_result = true;
        schedule.combine(*what.op, typed(incoming), block);
      }
    }
    if (mask > comm.size() / 2) break;
  }
}

}  // namespace

void plan_reduce_within(Schedule& schedule, const Comm& comm, const Reduced& what,
                        int root) noexcept {
  if (what.count == 0) return;
  const int size = comm.size();
  const int top = what.op->is_commutative ? root : 0;
  const int me = (comm.rank() - top + size) % size;
  const auto rank_of = [&](int relative) noexcept { return (relative + top) % size; };
  const auto typed = [&](const void* at) noexcept -> Typed {
    return {const_cast<void*>(at), what.count, what.type};
  };
  const void* result = what.send == MPI_IN_PLACE ? what.receive : what.send;
  void* spare = nullptr;
  void* next_spare = nullptr;
  if (me % 2 == 0 && me + 1 < size) {
    spare = schedule.elements(*what.type, what.count);
    next_spare = schedule.elements(*what.type, what.count);
  }
  int mask = 1;
  for (; mask < size && (me & mask) == 0; mask *= 2) {
    if (me + mask >= size) continue;
    schedule.receive(rank_of(me + mask), typed(spare));
    schedule.fence();
    schedule.combine(*what.op, typed(result), spare);
    result = spare;
    std::swap(spare, next_spare);
  }
  if (me != 0) schedule.send(rank_of(me - mask), typed(result));
  if (top == root) {
    if (me == 0 && result != what.receive) schedule.copy(typed(result), typed(what.receive));
  } else if (comm.rank() == top) {
    schedule.send(root, typed(result));
  } else if (comm.rank() == root) {
    schedule.fence();  // what has gone up may have been in the buffer
    schedule.receive(top, typed(what.receive));
  }
  schedule.fence();
}

void plan_reduce(Schedule& schedule, const Reduced& what, int root) noexcept {
  Comm& comm = schedule.comm();
  if (comm.remote == nullptr) return plan_reduce_within(schedule, comm, what, root);
  if (root == MPI_PROC_NULL || what.count == 0) return;
  if (root == MPI_ROOT) return schedule.receive(0, {what.receive, what.count, what.type});
  void* const ours = comm.rank() == 0 ? schedule.elements(*what.type, what.count) : nullptr;
  if (!schedule.is_good()) return;
  schedule.use_local();
  plan_reduce_within(schedule, *comm.local, {what.send, ours, what.count, what.type, what.op}, 0);
  schedule.use_own();
  if (comm.rank() == 0) schedule.send(root, {ours, what.count, what.type});
}

void plan_allreduce(Schedule& schedule, const Reduced& what) noexcept {
  Comm& comm = schedule.comm();
  if (what.count == 0) return;
  const auto typed = [&](const void* at) noexcept -> Typed {
    return {const_cast<void*>(at), what.count, what.type};
  };
  if (comm.remote != nullptr) {
    plan_swap(schedule, what, what.receive);
    schedule.fence();
    schedule.use_local();
    return plan_bcast_within(schedule, *comm.local, typed(what.receive), 0);
  }
  const int size = comm.size();
  const int rank = comm.rank();
  if (what.send != MPI_IN_PLACE) schedule.copy(typed(what.send), typed(what.receive));
  if (size == 1) return;
  void* result = what.receive;
  void* incoming = schedule.elements(*what.type, what.count);
  int active = 1;
  while (active <= size / 2) active *= 2;
  const int pairs = size - active;
  const bool is_paired = rank < 2 * pairs;
  if (is_paired && rank % 2 == 0) {
    schedule.send(rank + 1, typed(result));
    schedule.fence();
    return schedule.receive(rank + 1, typed(result));
  }
  if (is_paired) {
    schedule.receive(rank - 1, typed(incoming));
    schedule.fence();
    schedule.combine(*what.op, typed(incoming), result);
  }
  const int me = is_paired ? rank / 2 : rank - pairs;
  for (int mask = 1; mask < active; mask *= 2) {
    const int partner = me ^ mask;
    const int peer = partner < pairs ? 2 * partner + 1 : partner + pairs;
    schedule.receive(peer, typed(incoming));
    schedule.send(peer, typed(result));
    schedule.fence();
    if (partner < me) {
      schedule.combine(*what.op, typed(incoming), result);
    } else {
      schedule.combine(*what.op, typed(result), incoming);
      std::swap(result, incoming);
    }
  }
  if (result != what.receive) schedule.copy(typed(result), typed(what.receive));
  if (is_paired) schedule.send(rank - 1, typed(what.receive));
}

void plan_spread_within(Schedule& schedule, const Comm& comm, const Reduced& what,
                        const int* counts, const void* all) noexcept {
  const auto mine = static_cast<std::size_t>(comm.rank());
  const Typed own = {what.receive, counts[mine], what.type};
  if (comm.rank() != 0) {
    if (own.bytes() != 0) schedule.receive(0, own);
    return;
  }
  std::int64_t before = 0;
  for (int i = 0; i < comm.size(); ++i) {
    const std::int64_t count = counts[static_cast<std::size_t>(i)];
    const Typed part = {
        reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(all) +
                                static_cast<std::uintptr_t>(before * what.type->extent)),
        count, what.type};
    if (i == 0)
      schedule.copy(part, own);
    else if (part.bytes() != 0)
      schedule.send(i, part);
    before += count;
  }
}

void plan_reduce_scatter(Schedule& schedule, const Reduced& what, const int* counts) noexcept {
  Comm& comm = schedule.comm();
  void* const sum = comm.rank() == 0 ? schedule.elements(*what.type, what.count) : nullptr;
  if (!schedule.is_good()) return;
  if (comm.remote != nullptr) {
    plan_swap(schedule, what, sum);
    schedule.fence();
    schedule.use_local();
    return plan_spread_within(schedule, *comm.local, what, counts, sum);
  }
  const void* const own = what.send == MPI_IN_PLACE ? what.receive : what.send;
  plan_reduce_within(schedule, comm, {own, sum, what.count, what.type, what.op}, 0);
  plan_spread_within(schedule, comm, what, counts, sum);
}

void plan_scan(Schedule& schedule, const Reduced& what) noexcept {
  if (what.count == 0) return;
  if (what.send != MPI_IN_PLACE)
    schedule.copy({const_cast<void*>(what.send), what.count, what.type},
                  {what.receive, what.count, what.type});
  plan_prefixes(schedule, what, what.receive, true);
}

void plan_exscan(Schedule& schedule, const Reduced& what) noexcept {
  if (what.count == 0) return;
  plan_prefixes(schedule, what, what.send == MPI_IN_PLACE ? what.receive : what.send, false);
}

}  // namespace vmpi
