// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_rank_floors.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "perf/cli/perf_ranks.hpp"
#include "perf/cli/stop_signals.hpp"
#include "perf/support/affinity.hpp"

namespace verbatim::cli {
namespace {

constexpr int kMostCpus = 1024;

/// At rank 0: where the partner may run.
std::vector<int> cpus_of_partner(int partner, int rank) {
  std::vector<int> cpus;
  if (rank == partner) {
    cpus = perf::allowed_cpus();
    cpus.resize(std::min<std::size_t>(cpus.size(), kMostCpus));
    MPI_Send(cpus.data(), static_cast<int>(cpus.size()), MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
  if (rank != 0) return {};
  cpus.resize(kMostCpus);
  MPI_Status status;
  MPI_Recv(cpus.data(), kMostCpus, MPI_INT, partner, 0, MPI_COMM_WORLD, &status);
  int count = 0;
  MPI_Get_count(&status, MPI_INT, &count);
  cpus.resize(static_cast<std::size_t>(count));
  return cpus;
}

/// Two that are bound to cores of their own are measured there.
perf::CorePair cores_of(const std::vector<int>& own, const std::vector<int>& partners) {
  if (own.empty() || own == partners) return perf::choose_core_pair(own);
  int near = own.front();
  for (const int cpu : own)
    if (partners.size() == 1 && near == partners.front()) near = cpu;
  std::vector<int> both = {near};
  for (const int cpu : partners)
    if (cpu != near) both.push_back(cpu);
  return perf::choose_core_pair(both);
}

}  // namespace

std::optional<PerfRunFloors> take_rank_floors(PerfHeld held, PerfFloorPlan plan, int partner) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bool is_one_host = ranks_share_host();
  const char* const lack = ranks < 2      ? "one rank alone has nobody to wait for"
                           : !is_one_host ? "the ranks are of several hosts"
                                          : nullptr;
  std::vector<int> partners;
  if (lack == nullptr) partners = cpus_of_partner(partner, rank);
  std::optional<PerfRunFloors> floors;
  if (rank == 0) {
    floors.emplace(std::move(held), std::move(plan), cores_of(perf::allowed_cpus(), partners));
    if (lack != nullptr) {
      floors->lack(lack);
    } else {
      try {
        const StopSignals stop;
        floors->take(stop);
      } catch (const Stopped&) {
        // The signal acts as soon as nobody watches for it.
        floors->lack("interrupted");
      }
    }
  }
  if (lack == nullptr) meet_asleep();
  return floors;
}

}  // namespace verbatim::cli
