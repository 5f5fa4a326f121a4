// SPDX-License-Identifier: BSD-2-Clause
// Schedules of the collectives that move data. Trees and rows are those of the blocking algorithms.
#include "mpi_shim/coll/plans.hpp"

namespace vmpi {
namespace {

void plan_barrier_within(Schedule& schedule, const Comm& comm) noexcept {
  const Typed nothing = {nullptr, 0, &byte_type()};
  const int size = comm.size();
  for (int distance = 1; distance < size; distance *= 2) {
    schedule.receive((comm.rank() - distance + size) % size, nothing);
    schedule.send((comm.rank() + distance) % size, nothing);
    schedule.fence();
    if (distance > size / 2) break;
  }
}

/// One slice to each of the ranks that messages go to, and one from each.
void plan_spread(Schedule& schedule, const Slices& in, const Slices& out, int begin) noexcept {
  const int peers = schedule.comm().peers().size();
  for (int i = 0; i < peers; ++i) {
    const int from = (begin - i + peers) % peers;
    const Typed slice = out[from];
    if (slice.bytes() != 0) schedule.receive(from, slice);
  }
  for (int i = 0; i < peers; ++i) {
    const int to = (begin + i) % peers;
    const Typed slice = in[to];
    if (slice.bytes() != 0) schedule.send(to, slice);
  }
}

}  // namespace

void plan_barrier(Schedule& schedule) noexcept {
  Comm& comm = schedule.comm();
  if (comm.remote == nullptr) return plan_barrier_within(schedule, comm);
  // The first ranks hear of each other when all of their own have come, and tell their own.
  const Typed nothing = {nullptr, 0, &byte_type()};
  schedule.use_local();
  plan_barrier_within(schedule, *comm.local);
  schedule.use_own();
  if (comm.rank() == 0) {
    schedule.receive(0, nothing);
    schedule.send(0, nothing);
    schedule.fence();
  }
  schedule.use_local();
  plan_bcast_within(schedule, *comm.local, nothing, 0);
}

void plan_bcast_within(Schedule& schedule, const Comm& comm, const Typed& data, int root) noexcept {
  const int size = comm.size();
  const int me = (comm.rank() - root + size) % size;
  int mask = 1;
  while (mask < size && (me & mask) == 0) mask *= 2;
  if (me != 0) {
    schedule.receive((me - mask + root) % size, data);
    schedule.fence();
  }
  for (mask /= 2; mask > 0; mask /= 2)
    if (me + mask < size) schedule.send((me + mask + root) % size, data);
}

void plan_bcast(Schedule& schedule, const Typed& data, int root) noexcept {
  Comm& comm = schedule.comm();
  if (comm.remote == nullptr) return plan_bcast_within(schedule, comm, data, root);
  if (root == MPI_PROC_NULL) return;
  if (root == MPI_ROOT) return schedule.send(0, data);
  if (comm.rank() == 0) {
    schedule.receive(root, data);
    schedule.fence();
  }
  schedule.use_local();
  plan_bcast_within(schedule, *comm.local, data, 0);
}

void plan_gather(Schedule& schedule, const Typed& in, const Slices& out, int root) noexcept {
  Comm& comm = schedule.comm();
  const bool is_inter = comm.remote != nullptr;
  if (is_inter && root == MPI_PROC_NULL) return;
  const bool takes = is_inter ? root == MPI_ROOT : root == comm.rank();
  if (!takes) {
    if (in.bytes() != 0) schedule.send(root, in);
    return;
  }
  for (int i = 0; i < comm.peers().size(); ++i) {
    const Typed slice = out[i];
    if ((is_inter || i != root) && slice.bytes() != 0) schedule.receive(i, slice);
  }
  if (!is_inter && !in.is_in_place()) schedule.copy(in, out[root]);
}

void plan_scatter(Schedule& schedule, const Slices& in, const Typed& out, int root) noexcept {
  Comm& comm = schedule.comm();
  const bool is_inter = comm.remote != nullptr;
  if (is_inter && root == MPI_PROC_NULL) return;
  const bool gives = is_inter ? root == MPI_ROOT : root == comm.rank();
  if (!gives) {
    if (out.bytes() != 0) schedule.receive(root, out);
    return;
  }
  for (int i = 0; i < comm.peers().size(); ++i) {
    const Typed slice = in[i];
    if ((is_inter || i != root) && slice.bytes() != 0) schedule.send(i, slice);
  }
  if (!is_inter && !out.is_in_place()) schedule.copy(in[root], out);
}

void plan_allgather(Schedule& schedule, const Typed& in, const Slices& out) noexcept {
  Comm& comm = schedule.comm();
  if (comm.remote != nullptr) {
    for (int i = 0; i < comm.peers().size(); ++i)
      if (const Typed slice = out[i]; slice.bytes() != 0) schedule.receive(i, slice);
    for (int i = 0; i < comm.peers().size() && in.bytes() != 0; ++i) schedule.send(i, in);
    return;
  }
  const int size = comm.size();
  const int me = comm.rank();
  Array<std::int64_t> begins;  // of the slices in our row, which begins with our own
  std::int64_t total = 0;
  for (int i = 0; i < size; ++i) total += out.bytes((me + i) % size);
  unsigned char* const row = schedule.bytes(total);
  if (row == nullptr || !begins.resize(static_cast<std::size_t>(size) + 1)) return schedule.fail();
  for (int i = 0; i < size; ++i)
    begins[static_cast<std::size_t>(i) + 1] =
        begins[static_cast<std::size_t>(i)] + out.bytes((me + i) % size);
  const auto part = [&](int from, int to) noexcept -> Typed {
    const std::int64_t begin = begins[static_cast<std::size_t>(from)];
    return {row + begin, begins[static_cast<std::size_t>(to)] - begin, &byte_type()};
  };
  schedule.copy(in.is_in_place() ? out[me] : in, part(0, 1));
  for (int have = 1; have < size;) {
    const int more = have < size - have ? have : size - have;
    schedule.receive((me + have) % size, part(have, have + more));
    schedule.send((me - have + size) % size, part(0, more));
    schedule.fence();
    have += more;
  }
  for (int i = in.is_in_place() ? 1 : 0; i < size; ++i)
    schedule.copy(part(i, i + 1), out[(me + i) % size]);
}

void plan_alltoall(Schedule& schedule, const Slices& in, const Slices& out) noexcept {
  Comm& comm = schedule.comm();
  if (comm.remote != nullptr)
    return plan_spread(schedule, in, out, comm.rank() % comm.peers().size());
  const int size = comm.size();
  if (in.buffer != MPI_IN_PLACE) return plan_spread(schedule, in, out, comm.rank());
  // What goes is put aside now, since what comes takes its place.
  Array<std::int64_t> offsets;
  if (!offsets.resize(static_cast<std::size_t>(size) + 1)) return schedule.fail();
  for (int i = 0; i < size; ++i)
    offsets[static_cast<std::size_t>(i) + 1] = offsets[static_cast<std::size_t>(i)] + out.bytes(i);
  unsigned char* const packed = schedule.bytes(offsets[static_cast<std::size_t>(size)]);
  if (packed == nullptr) return;
  Slices aside;
  aside.form = Slices::Form::kPacked;
  aside.buffer = packed;
  aside.offsets = offsets.data();
  for (int i = 0; i < size; ++i) pack_all(out[i], packed + offsets[static_cast<std::size_t>(i)]);
  plan_spread(schedule, aside, out, comm.rank());
}

}  // namespace vmpi
