// SPDX-License-Identifier: BSD-2-Clause
// What was taken and what was passed on, by collective: counted for each communicator, whose calls
// come one by one, and added up when it goes.
#pragma once

#include <cstdint>

namespace vmpi::pmpi {

enum class Collective : std::uint8_t {
  kBarrier,
  kBcast,
  kReduce,
  kAllreduce,
  kAllgather,
  kAlltoall,
};
inline constexpr int kCollectives = 6;

/// Why a call is the MPI's own to do. All but the last are found alike by all ranks.
enum class Reason : std::uint8_t {
  kNone,
  kIntercommunicator,
  kOneRank,
  kTooManyRanks,
  kHosts,
  kNoTeam,
  kOperation,
  kType,
  kTooLong,
  kArguments,
};
inline constexpr int kReasons = 10;

[[nodiscard]] const char* name_of(Collective collective) noexcept;  ///< "MPI_Barrier"
/// "MPI_Barrier" as "barrier".
[[nodiscard]] const char* short_name_of(Collective collective) noexcept;
[[nodiscard]] const char* text_of(Reason reason) noexcept;

struct Tally {
  struct Row {
    std::uint64_t taken;
    std::uint64_t bytes;
    std::uint64_t passed_on[kReasons];
  };
  Row rows[kCollectives];

  void take(Collective collective, std::uint64_t bytes) noexcept {
    Row& row = rows[static_cast<int>(collective)];
    ++row.taken;
    row.bytes += bytes;
  }
  void pass_on(Collective collective, Reason reason) noexcept {
    ++rows[static_cast<int>(collective)].passed_on[static_cast<int>(reason)];
  }
  void add(const Tally& other) noexcept;
};
/// As many numbers, which are added up over the ranks.
inline constexpr int kNumbersOfTally = sizeof(Tally) / sizeof(std::uint64_t);
[[nodiscard]] inline std::uint64_t* numbers_of(Tally& tally) noexcept {
  return reinterpret_cast<std::uint64_t*>(&tally);
}

/// The table, as lines of the log at `info`.
[[gnu::cold]] void tell(const Tally& tally, int ranks, const char* version) noexcept;

}  // namespace vmpi::pmpi
