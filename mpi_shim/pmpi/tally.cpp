// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/pmpi/tally.hpp"

#include <cinttypes>
#include <cstddef>
#include <cstdio>

#include "runtime/base/log.hpp"

namespace vmpi::pmpi {
namespace {

constexpr const char* kNames[kCollectives] = {"MPI_Barrier",   "MPI_Bcast",     "MPI_Reduce",
                                              "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall"};
constexpr const char* kShortNames[kCollectives] = {"barrier",   "bcast",     "reduce",
                                                   "allreduce", "allgather", "alltoall"};
constexpr const char* kTexts[kReasons] = {
    "",        "intercommunicator", "one rank", "too many ranks", "not one host",
    "no team", "operation",         "type",     "too long",       "arguments"};

}  // namespace

const char* name_of(Collective collective) noexcept { return kNames[static_cast<int>(collective)]; }
const char* short_name_of(Collective collective) noexcept {
  return kShortNames[static_cast<int>(collective)];
}
const char* text_of(Reason reason) noexcept { return kTexts[static_cast<int>(reason)]; }

void Tally::add(const Tally& other) noexcept {
  for (int i = 0; i < kCollectives; ++i) {
    rows[i].taken += other.rows[i].taken;
    rows[i].bytes += other.rows[i].bytes;
    for (int k = 0; k < kReasons; ++k) rows[i].passed_on[k] += other.rows[i].passed_on[k];
  }
}

void tell(const Tally& tally, int ranks, const char* version) noexcept {
  if (!verbatim::log_enabled(verbatim::LogLevel::kInfo)) return;
  verbatim::log_info("collectives of the %d ranks of %s, calls of all ranks together:", ranks,
                     version);
  verbatim::log_info("%-10s %12s %16s %12s  %s", "collective", "taken", "bytes", "passed on",
                     "why");
  for (int i = 0; i < kCollectives; ++i) {
    const Tally::Row& row = tally.rows[i];
    std::uint64_t passed_on = 0;
    char why[256] = "";
    std::size_t at = 0;
    for (int k = 0; k < kReasons; ++k) {
      if (row.passed_on[k] == 0) continue;
      passed_on += row.passed_on[k];
      const int written = std::snprintf(why + at, sizeof why - at, "%s%" PRIu64 " %s",
                                        at == 0 ? "" : ", ", row.passed_on[k], kTexts[k]);
      if (written > 0) at += static_cast<std::size_t>(written);
      if (at >= sizeof why) at = sizeof why - 1;
    }
    verbatim::log_info("%-10s %12" PRIu64 " %16" PRIu64 " %12" PRIu64 "  %s", kShortNames[i],
                       row.taken, row.bytes, passed_on, why);
  }
}

}  // namespace vmpi::pmpi
