// SPDX-License-Identifier: BSD-2-Clause
// Where on its host a rank runs, as far as that stays so: the L3 cache and the NUMA node of the processors
// that it is bound to, or what VERBATIM_MPI_GROUPS says. The big lock is held by every caller.
#pragma once

#include <cstdint>

namespace vmpi {

/// Numbers mean the same to all processes of the host.
struct HostPlace {
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

  std::uint32_t node = kUnknown;
  std::uint32_t cache = kUnknown;
  std::uint32_t is_declared = 0;
};

/// Reads VERBATIM_MPI_GROUPS: null, or what is wrong with it. Weak in MPI_Init: a program without
/// collectives does not have this file.
[[nodiscard, gnu::weak]] const char* read_groups() noexcept;
/// Whether there was one.
[[nodiscard]] bool are_groups_declared() noexcept;

/// Of the calling thread, by its affinity at this moment. A part is unknown where the thread may move
/// from one to another. It takes some 100 us, and where nobody has read the machine yet what hwloc takes.
[[nodiscard]] HostPlace find_host_place() noexcept;

}  // namespace vmpi
