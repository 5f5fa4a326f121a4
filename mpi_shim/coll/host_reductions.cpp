// SPDX-License-Identifier: BSD-2-Clause
// Reductions of predefined operations and types within a host. All ranks read what all have put, and
// compute alike, in the order of ranks, so that all have the same result, bit by bit, whoever comes
// first. One round for up to a room's bytes: a, and P n b to read. Long ones of MPI_Alloc_mem are
// computed in slices, each by one rank from where all have their data: 2 n b.
#include <algorithm>
#include <cstring>

#include "mpi_shim/coll/host_copy.hpp"
#include "mpi_shim/coll/host_groups.hpp"
#include "mpi_shim/coll/host_mapped.hpp"
#include "mpi_shim/coll/host_team.hpp"

namespace vmpi {
namespace {

/// Small against the nearest cache, from which the result is read for each rank.
constexpr std::uint64_t kBlock = 8192;

/// Pieces that are put before the first of them is read: more would leave the nearer caches.
constexpr std::uint32_t kAhead = 2;

/// Up to a line's bytes. They are copied first, to where any type may lie.
[[nodiscard]] int reduce_lines(const HostReduction& what) noexcept {
  HostTeam& team = what.team;
  if (const int error = team.reserve(false); error != MPI_SUCCESS) return error;
  copy_bytes(team.line(), what.send, what.bytes);
  team.publish(what.kind, what.bytes);
  int result = MPI_SUCCESS;
  if (what.receive != nullptr) {
    alignas(64) unsigned char reduced[HostLine::kInline];
    alignas(64) unsigned char next[HostLine::kInline];
    const auto count = static_cast<std::int64_t>(what.bytes / what.element);
    for (int i = 0; i < team.size(); ++i) {
      if (i != team.rank()) {
        const int error = team.hear(i, what.kind, what.bytes);
        if (error == MPI_ERR_TRUNCATE) result = error;
        if (error != MPI_SUCCESS && error != MPI_ERR_TRUNCATE) return error;
      }
      copy_bytes(i == 0 ? reduced : next, team.line_of(i), what.bytes);
      if (i != 0) what.combine(next, reduced, count);
    }
    if (result == MPI_SUCCESS) copy_bytes(what.receive, reduced, what.bytes);
  }
  team.leave_round();
  return result;
}

/// One round of pieces: `part` bytes from `done` on.
[[nodiscard]] int reduce_round(const HostReduction& what, std::uint64_t done,
                               std::uint64_t part) noexcept {
  HostTeam& team = what.team;
  int result = MPI_SUCCESS;
  if (what.receive != nullptr) {
    // All are heard before the result is begun, of which there is none when they differ.
    for (int i = 0; i < team.size(); ++i) {
      if (i == team.rank()) continue;
      const int error = team.hear(i, what.kind, what.bytes, true);
      if (error != MPI_SUCCESS) result = error;
      if (error != MPI_SUCCESS && error != MPI_ERR_TRUNCATE) return error;
    }
    unsigned char* const reduced = what.receive + done;
    const std::uint64_t block = kBlock / what.element * what.element;
    for (std::uint64_t at = 0; at < part && result == MPI_SUCCESS; at += block) {
      const std::uint64_t now = std::min(block, part - at);
      std::memcpy(reduced + at, team.piece_of(0) + at, now);
      for (int i = 1; i < team.size(); ++i)
        what.combine(team.piece_of(i) + at, reduced + at,
                     static_cast<std::int64_t>(now / what.element));
    }
  }
  team.leave_round();
  return result;
}

[[nodiscard]] int reduce_rooms(const HostReduction& what) noexcept {
  HostTeam& team = what.team;
  const std::uint64_t most = team.piece_bytes(what.bytes) / what.element * what.element;
  std::uint64_t said = 0;
  int result = MPI_SUCCESS;
  for (std::uint64_t done = 0; done < what.bytes;) {
    // The next pieces are put before this one is read, once it is known that lengths are alike.
    while (said < what.bytes &&
           (said == done || (done != 0 && team.ahead() < kAhead && team.can_reserve(true)))) {
      const std::uint64_t part = std::min(most, what.bytes - said);
      if (const int error = team.reserve(true); error != MPI_SUCCESS) return error;
      std::memcpy(team.piece(), what.send + said, part);
      team.publish(what.kind, what.bytes);
      team.prefetch_room(part);
      said += part;
    }
    const std::uint64_t part = std::min(most, what.bytes - done);
    result = reduce_round(what, done, part);
    if (result != MPI_SUCCESS) return result;
    done += part;
  }
  return result;
}

/// Bytes [begin, end) of the result, from where the ranks have their data.
void reduce_part(const HostReduction& what, const HostBuffers& from, std::uint64_t begin,
                 std::uint64_t end) noexcept {
  alignas(64) unsigned char reduced[kBlock];
  const std::uint64_t block = kBlock / what.element * what.element;
  for (std::uint64_t at = begin; at < end; at += block) {
    const std::uint64_t bytes = std::min(block, end - at);
    // Not where it will be, which may be where this rank's own part lies.
    std::memcpy(reduced, from.sends[0] + at, bytes);
    for (int i = 1; i < what.team.size(); ++i)
      what.combine(from.sends[i] + at, reduced, static_cast<std::int64_t>(bytes / what.element));
    std::memcpy(what.receive + at, reduced, bytes);
  }
}

/// The root reads all.
[[nodiscard]] int reduce_mapped(const HostReduction& what, HostBuffers& found, int root) noexcept {
  HostTeam& team = what.team;
  if (team.rank() == root) {
    found.sends[root] = what.send;
    reduce_part(what, found, 0, what.bytes);
  }
  return team.meet(what.kind, what.bytes);
}

/// Each computes a slice, in its place in its own result, and reads the others' from theirs.
[[nodiscard]] int allreduce_mapped(const HostReduction& what, const HostBuffers& found) noexcept {
  HostTeam& team = what.team;
  const auto ranks = static_cast<std::uint64_t>(team.size());
  // Whole lines, of which no two ranks write parts.
  const std::uint64_t unit = std::max<std::uint64_t>(64, what.element);
  const std::uint64_t slice = (what.bytes / ranks + unit - 1) / unit * unit;
  const auto begin_of = [&](int rank) noexcept {
    return std::min(static_cast<std::uint64_t>(rank) * slice, what.bytes);
  };
  const auto end_of = [&](int rank) noexcept {
    return rank == team.size() - 1 ? what.bytes : begin_of(rank + 1);
  };
  reduce_part(what, found, begin_of(team.rank()), end_of(team.rank()));
  if (const int error = team.meet(what.kind, what.bytes); error != MPI_SUCCESS) return error;
  for (int i = 1; i < team.size(); ++i) {
    const int from = (team.rank() + i) % team.size();
    std::memcpy(what.receive + begin_of(from), found.receives[from] + begin_of(from),
                end_of(from) - begin_of(from));
  }
  return team.meet(what.kind, what.bytes);
}

[[nodiscard]] int reduce_within(HostTeam& team, HostKind kind, const void* send, void* receive,
                                std::int64_t count, Datatype& type, const Op& op,
                                int root) noexcept {
  const bool is_root = kind == HostKind::kAllreduce || team.rank() == root;
  const auto bytes = static_cast<std::uint64_t>(count * type.size);
  Combine* const combine = type.is_contiguous ? combine_of(op, type) : nullptr;
  const HostReduction what = {team,
                              kind,
                              combine,
                              first_byte(type, send == MPI_IN_PLACE ? receive : send),
                              is_root ? first_byte(type, receive) : nullptr,
                              bytes,
                              static_cast<std::uint64_t>(type.size)};
  if (combine != nullptr && bytes >= kLeastMapped) {
    HostBuffers found;
    const bool is_for_all = kind == HostKind::kAllreduce;
    const int error = find_buffers(team, kind, bytes, {what.send, bytes}, {what.receive, bytes},
                                   {is_for_all ? Wanted::Of::kAll : Wanted::Of::kAllButRoot, root,
                                    true, is_for_all, static_cast<std::uint32_t>(type.alignment)},
                                   found);
    if (error == MPI_SUCCESS)
      return is_for_all ? allreduce_mapped(what, found) : reduce_mapped(what, found, root);
    if (error != kNotOfHost) return error;
    int found_error = MPI_SUCCESS;
    HostTeam* const by = find_team_for(
        team, is_for_all ? Collective::kAllreduce : Collective::kReduce, bytes, found_error);
    if (by == nullptr) return found_error;
    return reduce_rooms({*by, kind, combine, what.send, what.receive, bytes, what.element});
  }
  if (combine == nullptr || (kind == HostKind::kReduce && bytes > team.room())) {
    // Of several rounds all see whether they are alike before the first of them.
    const int error = team.meet(kind, bytes);
    if (error != MPI_SUCCESS || combine == nullptr)
      return error != MPI_SUCCESS ? error : kNotOfHost;
  }
  if (bytes > HostLine::kInline) return reduce_rooms(what);
  return team.groups() == nullptr ? reduce_lines(what) : reduce_by_groups(what, root);
}

}  // namespace

int host_reduce(Comm& comm, const void* send, void* receive, std::int64_t count, Datatype& type,
                const Op& op, int root) noexcept {
  int error = MPI_SUCCESS;
  HostTeam* const team = find_host_team(comm, error);
  if (error != MPI_SUCCESS || team == nullptr) return error != MPI_SUCCESS ? error : kNotOfHost;
  return reduce_within(*team, HostKind::kReduce, send, receive, count, type, op, root);
}

int host_allreduce(Comm& comm, const void* send, void* receive, std::int64_t count, Datatype& type,
                   const Op& op) noexcept {
  int error = MPI_SUCCESS;
  HostTeam* const team = find_host_team(comm, error);
  if (error != MPI_SUCCESS || team == nullptr) return error != MPI_SUCCESS ? error : kNotOfHost;
  return reduce_within(*team, HostKind::kAllreduce, send, receive, count, type, op, 0);
}

}  // namespace vmpi
