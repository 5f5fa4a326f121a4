// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/launcher.hpp"

#include "runtime/base/environment.hpp"

namespace verbatim::topo {
namespace {

struct Names {
  const char* count;
  const char* rank;
};
constexpr Names kLaunchers[] = {
    {"MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"LOCAL_WORLD_SIZE", "LOCAL_RANK"},
};
constexpr std::uint32_t kMaxRanks = 1u << 20;

}  // namespace

LocalRanks local_ranks() noexcept {
  LocalRanks ranks;
  for (const Names& names : kLaunchers) {
    const auto count =
        static_cast<std::uint32_t>(environment_integer(names.count, 0, 1, kMaxRanks));
    if (count == 0) continue;
    ranks.count = count;
    ranks.rank = static_cast<std::uint32_t>(environment_integer(names.rank, kNone, 0, count - 1));
    break;
  }
  return ranks;
}

bool cores_are_short(const LocalRanks& ranks, std::uint32_t cores) noexcept {
  return ranks.count != kNone && ranks.count > cores;
}

}  // namespace verbatim::topo
