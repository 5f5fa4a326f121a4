// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/host_mapped.hpp"

#include <verbatim/map.h>

#include <cstring>

#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/transfer.hpp"

namespace vmpi {
namespace {

/// Where a buffer lies, as its owner says. `bytes` 0: others cannot map it.
struct Place {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint32_t rkey;
  std::uint32_t reserved;
};
/// What a line says.
struct Places {
  Place send;
  Place receive;
  std::uint64_t bytes;  ///< of the collective: a header has no room for very long ones
};
static_assert(sizeof(Places) <= HostLine::kInline);

[[nodiscard]] Place place_of(const HostBuffer& buffer) noexcept {
  if (buffer.at == nullptr || buffer.bytes == 0) return {};
  const ibv_mr* const mr = mr_of_mapped(const_cast<void*>(buffer.at), buffer.bytes);
  if (mr == nullptr) return {};
  return {reinterpret_cast<std::uintptr_t>(buffer.at), buffer.bytes, mr->rkey, 0};
}

/// Of a rank, or ours, which has said whether others can map it. Null: it cannot be read by all.
[[nodiscard]] const unsigned char* map(const HostTeam& team, int rank, const Place& place,
                                       const HostBuffer& own) noexcept {
  if (place.bytes == 0 || place.bytes < own.bytes) return nullptr;
  if (rank == team.rank()) return static_cast<const unsigned char*>(own.at);
  Peer* const peer = known_peer(team.comm().group->world_rank(rank));
  void* mapped = nullptr;
  if (peer == nullptr || peer->qp == nullptr || peer->is_dead) return nullptr;
  // One that is being mapped at the moment is for the next time.
  if (vbt_map_remote(peer->qp, place.rkey, place.address, place.bytes, IBV_ACCESS_REMOTE_READ,
                     &mapped) != 0)
    return nullptr;
  return static_cast<const unsigned char*>(mapped);
}

[[nodiscard]] bool is_usable(const unsigned char* at, const Wanted& wanted) noexcept {
  return at != nullptr && reinterpret_cast<std::uintptr_t>(at) % wanted.alignment == 0;
}

/// One round in which all say something, and all hear it. MPI_ERR_TRUNCATE at all when they are in
/// different collectives, or of different lengths.
template <class Said>
[[nodiscard]] int tell_all(HostTeam& team, HostKind kind, std::uint64_t bytes, const Said& own,
                           Said* all) noexcept {
  if (const int error = team.reserve(false); error != MPI_SUCCESS) return error;
  std::memcpy(team.line(), &own, sizeof own);
  team.publish(kind, bytes);
  int result = MPI_SUCCESS;
  for (int i = 0; i < team.size(); ++i) {
    const int error = i == team.rank() ? MPI_SUCCESS : team.hear(i, kind, bytes);
    if (error != MPI_SUCCESS) result = error;
    if (error != MPI_SUCCESS && error != MPI_ERR_TRUNCATE) return error;
    std::memcpy(&all[i], team.line_of(i), sizeof all[i]);
  }
  team.leave_round();
  return result;
}

}  // namespace

int find_buffers(HostTeam& team, HostKind kind, std::uint64_t bytes, const HostBuffer& send,
                 const HostBuffer& receive, const Wanted& wanted, HostBuffers& found) noexcept {
  Places places[HostTeam::kMostRanks];
  Places own = {};
  own.bytes = bytes;
  if (wanted.is_of(team.rank())) {
    if (wanted.sends) own.send = place_of(send);
    if (wanted.receives) own.receive = place_of(receive);
  }
  int error = tell_all(team, kind, bytes, own, places);
  if (error != MPI_SUCCESS) return error;
  for (int i = 0; i < team.size(); ++i)
    if (places[i].bytes != bytes) return team.disagree(i);
  std::uint32_t has_all = 1;
  for (int i = 0; i < team.size(); ++i) {
    if (!wanted.is_of(i)) continue;
    if (wanted.sends) found.sends[i] = map(team, i, places[i].send, send);
    if (wanted.receives) found.receives[i] = map(team, i, places[i].receive, receive);
    if ((wanted.sends && !is_usable(found.sends[i], wanted)) ||
        (wanted.receives && !is_usable(found.receives[i], wanted)))
      has_all = 0;
  }
  std::uint32_t have_all[HostTeam::kMostRanks];
  error = tell_all(team, kind, bytes, has_all, have_all);
  if (error != MPI_SUCCESS) return error;
  for (int i = 0; i < team.size(); ++i)
    if (have_all[i] != 1) return kNotOfHost;
  return MPI_SUCCESS;
}

}  // namespace vmpi
