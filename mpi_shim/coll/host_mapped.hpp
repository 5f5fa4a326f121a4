// SPDX-License-Identifier: BSD-2-Clause
// Long collectives within a host on memory of MPI_Alloc_mem: ranks tell each other where their
// buffers lie, map them, and read there, so that nothing is copied twice. All ranks find alike
// whether that can be: one whose buffer is of other memory, or who cannot map another's, says so.
#pragma once

#include <cstdint>

#include "mpi_shim/coll/host_team.hpp"

namespace vmpi {

/// From here on it pays to ask where buffers lie.
inline constexpr std::uint64_t kLeastMapped = 32u << 10;

/// Contiguous data of this rank; null: it has none, or none that others could map.
struct HostBuffer {
  const void* at;
  std::uint64_t bytes;
};

/// The others' buffers, as this rank reads them.
struct HostBuffers {
  const unsigned char* sends[HostTeam::kMostRanks];
  const unsigned char* receives[HostTeam::kMostRanks];
};

[[nodiscard]] inline HostBuffer buffer_of(const Typed& data) noexcept {
  if (!data.type->is_contiguous || data.bytes() <= 0) return {nullptr, 0};
  return {first_byte(*data.type, data.buffer), static_cast<std::uint64_t>(data.bytes())};
}

/// Whose buffers others read: all ranks', the root's alone, or all but the root's.
struct Wanted {
  enum class Of : std::uint8_t { kAll, kRoot, kAllButRoot };

  Of of = Of::kAll;
  int root = 0;
  bool sends = true;
  bool receives = false;
  std::uint32_t alignment = 1;  ///< of what is computed there

  [[nodiscard]] bool is_of(int rank) const noexcept {
    return of == Of::kAll || (of == Of::kRoot) == (rank == root);
  }
};

/// Tells where they are, in a collective that moves `bytes`, and maps those of the others.
/// MPI_SUCCESS: `found` says where all that is wanted lies. kNotOfHost: some of it cannot be mapped.
/// Or an error, as of HostTeam::meet().
[[nodiscard]] int find_buffers(HostTeam& team, HostKind kind, std::uint64_t bytes,
                               const HostBuffer& send, const HostBuffer& receive,
                               const Wanted& wanted, HostBuffers& found) noexcept;

}  // namespace vmpi
