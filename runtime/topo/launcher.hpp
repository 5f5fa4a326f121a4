// SPDX-License-Identifier: BSD-2-Clause
// What the program that started us says of the processes that it started on this host. Any thread,
// as far as nobody calls setenv at that moment.
#pragma once

#include <cstdint>

#include "runtime/topo/machine_layout.hpp"

namespace verbatim::topo {

struct LocalRanks {
  std::uint32_t count = kNone;  // kNone: nobody said
  std::uint32_t rank = kNone;   // ours among them
};

/// Reads the variables of MPICH and MVAPICH (MPI_LOCALNRANKS), Open MPI
/// (OMPI_COMM_WORLD_LOCAL_SIZE) and torchrun (LOCAL_WORLD_SIZE).
[[nodiscard]] LocalRanks local_ranks() noexcept;

/// Whether the ranks of this host, spread over `cores`, leave none for a second busy thread each.
/// False where nobody said how many there are.
[[nodiscard]] bool cores_are_short(const LocalRanks& ranks, std::uint32_t cores) noexcept;

}  // namespace verbatim::topo
