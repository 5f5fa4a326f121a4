// SPDX-License-Identifier: BSD-2-Clause
// Barrier, broadcast, allgather and all-to-all within a host: everybody reads what it wants where it
// was put. With few bytes that is one hand-over of a cache line, flag and data together; a longer
// message goes through the rooms piece by piece; a long one is read where it lies, of MPI_Alloc_mem,
// or goes through more rooms, if few ranks have them, or by messages.
//
// Costs one round for up to a room's bytes, whatever the number of ranks: a, and P n b to read.
#include <algorithm>
#include <cstring>

#include "mpi_shim/coll/host_copy.hpp"
#include "mpi_shim/coll/host_groups.hpp"
#include "mpi_shim/coll/host_mapped.hpp"
#include "mpi_shim/coll/host_team.hpp"

namespace vmpi {
namespace {

/// A rank that says other lengths does not end it: the others wait for what this one says next.
[[nodiscard]] bool is_ended_by(int error, int& result) noexcept {
  if (error == MPI_SUCCESS) return false;
  result = error;
  return error != MPI_ERR_TRUNCATE;
}

/// The root writes pieces, as far ahead as there are rooms.
[[nodiscard]] int speak_to_all(HostTeam& team, const Typed& data, std::uint64_t bytes) noexcept {
  const std::uint64_t most = team.piece_bytes(bytes);
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t part = std::min(most, bytes - done);
    if (const int error = team.reserve(true); error != MPI_SUCCESS) return error;
    copy_out(data, done, team.piece(), part);
    team.publish(HostKind::kBcast, bytes);
    team.leave_round();
    done += part;
  }
  return MPI_SUCCESS;
}

[[nodiscard]] int hear_of_root(HostTeam& team, const Typed& data, std::uint64_t bytes,
                               int root) noexcept {
  int result = MPI_SUCCESS;
  const std::uint64_t most = team.piece_bytes(bytes);
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t part = std::min(most, bytes - done);
    team.pass();
    if (is_ended_by(team.hear(root, HostKind::kBcast, bytes), result)) return result;
    if (result == MPI_SUCCESS) copy_in(data, done, team.piece_of(root), part);
    team.leave_round();
    done += part;
  }
  return result;
}

/// In one round. The root may have said fewer bytes than there is room for.
[[nodiscard]] int hear_at_once(HostTeam& team, const Typed& data, std::uint64_t bytes,
                               int root) noexcept {
  team.pass();
  int result = MPI_SUCCESS;
  if (is_ended_by(team.hear(root, HostKind::kBcast, bytes), result)) return result;
  const std::uint64_t said = team.bytes_heard();
  if (result != MPI_SUCCESS && team.has_spoken_of(HostKind::kBcast) && said <= bytes)
    result = MPI_SUCCESS;
  if (result == MPI_SUCCESS)
    copy_in(data, 0, said <= HostLine::kInline ? team.line_of(root) : team.piece_of(root), said);
  team.leave_round();
  return result;
}

/// One round in which every rank says `bytes` from `offset(rank)` of what it gives on, and all
/// take, by `take(rank, where it lies)`.
template <class Put, class Take>
[[nodiscard]] int say_to_each_other(HostTeam& team, HostKind kind, std::uint64_t said,
                                    std::uint64_t part, Put put, Take take) noexcept {
  const bool is_short = part <= HostLine::kInline;
  if (const int error = team.reserve(!is_short); error != MPI_SUCCESS) return error;
  put(is_short ? team.line() : team.piece());
  team.publish(kind, said);
  if (!is_short) team.prefetch_room(part);
  int result = MPI_SUCCESS;
  for (int i = 0; i < team.size(); ++i) {
    if (i == team.rank()) continue;
    int error = MPI_SUCCESS;
    if (is_ended_by(team.hear(i, kind, said), error)) return error;
    if (error == MPI_SUCCESS)
      take(i, is_short ? team.line_of(i) : team.piece_of(i));
    else
      result = error;
  }
  team.leave_round();
  return result;
}

}  // namespace

int host_barrier(Comm& comm) noexcept {
  int error = MPI_SUCCESS;
  HostTeam* const team = find_host_team(comm, error);
  if (error != MPI_SUCCESS || team == nullptr) return error != MPI_SUCCESS ? error : kNotOfHost;
  return team->meet(HostKind::kBarrier, 0);
}

int host_bcast(Comm& comm, const Typed& data, int root) noexcept {
  int error = MPI_SUCCESS;
  HostTeam* const team = find_host_team(comm, error);
  if (error != MPI_SUCCESS || team == nullptr) return error != MPI_SUCCESS ? error : kNotOfHost;
  const auto bytes = static_cast<std::uint64_t>(data.bytes());
  if (bytes > team->room() || bytes >= kLeastMapped) {
    HostBuffers found;
    error = find_buffers(*team, HostKind::kBcast, bytes, buffer_of(data), {},
                         {Wanted::Of::kRoot, root}, found);
    if (error == MPI_SUCCESS) {
      if (comm.rank() != root) copy_in(data, 0, found.sends[root], bytes);
      return team->meet(HostKind::kBcast, bytes);
    }
    if (error != kNotOfHost) return error;
    HostTeam* const by = find_team_for(*team, Collective::kBcast, bytes, error);
    if (by == nullptr) return error;
    return comm.rank() == root ? speak_to_all(*by, data, bytes)
                               : hear_of_root(*by, data, bytes, root);
  }
  const bool is_short = bytes <= HostLine::kInline;
  if (comm.rank() != root && is_short && team->groups() != nullptr) [[unlikely]]
    return hear_root_by_groups(*team, data, bytes, root);
  if (comm.rank() != root) return hear_at_once(*team, data, bytes, root);
  error = team->reserve(!is_short);
  if (error != MPI_SUCCESS) return error;
  copy_out(data, 0, is_short ? team->line() : team->piece(), bytes);
  team->publish(HostKind::kBcast, bytes);
  if (!is_short) team->prefetch_room(bytes);
  team->leave_round();
  return MPI_SUCCESS;
}

int host_allgather(Comm& comm, const Typed& in, const Slices& out) noexcept {
  int error = MPI_SUCCESS;
  HostTeam* team = find_host_team(comm, error);
  if (error != MPI_SUCCESS || team == nullptr) return error != MPI_SUCCESS ? error : kNotOfHost;
  const Typed own = in.is_in_place() ? out[comm.rank()] : in;
  const auto bytes = static_cast<std::uint64_t>(own.bytes());
  if (bytes >= kLeastMapped) {
    HostBuffers found;
    error = find_buffers(*team, HostKind::kAllgather, bytes, buffer_of(own), {}, {}, found);
    if (error == MPI_SUCCESS) {
      for (int i = 1; i < team->size(); ++i) {
        const int from = (team->rank() + i) % team->size();
        copy_in(out[from], 0, found.sends[from], bytes);
      }
      if (!in.is_in_place()) copy(in, out[comm.rank()]);
      error = team->meet(HostKind::kAllgather, bytes);
      return error != MPI_SUCCESS || bytes <= static_cast<std::uint64_t>(out.bytes(0))
                 ? error
                 : team->disagree(team->rank());
    }
    if (error != kNotOfHost) return error;
    team = find_team_for(*team, Collective::kAllgather, bytes, error);
    if (team == nullptr) return error;
  }
  const int result = bytes > static_cast<std::uint64_t>(out.bytes(comm.rank()))
                         ? team->disagree(team->rank())
                         : MPI_SUCCESS;
  const std::uint64_t most = team->piece_bytes(bytes);
  for (std::uint64_t done = 0; done == 0 || done < bytes;) {
    const std::uint64_t part = std::min(most, bytes - done);
    error = say_to_each_other(
        *team, HostKind::kAllgather, bytes, part,
        [&](unsigned char* to) noexcept { copy_out(own, done, to, part); },
        [&](int rank, const unsigned char* from) noexcept {
          copy_in(out[rank], done, from, part);
        });
    if (error != MPI_SUCCESS) return error;
    done += part;
    if (part == 0) break;
  }
  if (!in.is_in_place()) copy(in, out[comm.rank()]);
  return result;
}

int host_alltoall(Comm& comm, const Slices& in, const Slices& out) noexcept {
  int error = MPI_SUCCESS;
  HostTeam* team = find_host_team(comm, error);
  if (error != MPI_SUCCESS || team == nullptr) return error != MPI_SUCCESS ? error : kNotOfHost;
  const int me = comm.rank();
  const int size = comm.size();
  const bool is_in_place = in.buffer == MPI_IN_PLACE;
  const Slices& gives = is_in_place ? out : in;
  const auto bytes = static_cast<std::uint64_t>(gives.bytes(0));
  const auto ranks = static_cast<std::uint64_t>(size);
  if (bytes >= kLeastMapped / ranks) {
    HostBuffers found;
    const HostBuffer all = is_in_place || !in.one_type->is_contiguous
                               ? HostBuffer{nullptr, bytes * ranks}
                               : HostBuffer{first_byte(*in.one_type, in.buffer), bytes * ranks};
    error = find_buffers(*team, HostKind::kAlltoall, bytes, all, {}, {}, found);
    if (error == MPI_SUCCESS) {
      for (int i = 1; i < size; ++i) {
        const int from = (me + i) % size;
        copy_in(out[from], 0, found.sends[from] + static_cast<std::uint64_t>(me) * bytes, bytes);
      }
      copy(in[me], out[me]);
      error = team->meet(HostKind::kAlltoall, bytes);
      return error != MPI_SUCCESS || bytes <= static_cast<std::uint64_t>(out.bytes(0))
                 ? error
                 : team->disagree(team->rank());
    }
    if (error != kNotOfHost) return error;
    team = find_team_for(*team, Collective::kAlltoall, bytes * ranks, error);
    if (team == nullptr) return error;
  }
  const int result =
      bytes > static_cast<std::uint64_t>(out.bytes(0)) ? team->disagree(team->rank()) : MPI_SUCCESS;
  // Of each destination so much in a round; what goes to this rank itself stays where it is.
  const std::uint64_t most = team->piece_bytes(bytes * ranks) / ranks / 64 * 64;
  for (std::uint64_t done = 0; done == 0 || done < bytes;) {
    const std::uint64_t part = std::min(most, bytes - done);
    error = say_to_each_other(
        *team, HostKind::kAlltoall, bytes, part * (ranks - 1),
        [&](unsigned char* to) noexcept {
          for (int i = 0; i < size; ++i) {
            if (i == me) continue;
            copy_out(gives[i], done, to, part);
            to += part;
          }
        },
        [&](int rank, const unsigned char* from) noexcept {
          const int place = me < rank ? me : me - 1;
          copy_in(out[rank], done, from + static_cast<std::uint64_t>(place) * part, part);
        });
    if (error != MPI_SUCCESS) return error;
    done += part;
    if (part == 0) break;
  }
  if (!is_in_place) copy(in[me], out[me]);
  return result;
}

}  // namespace vmpi
