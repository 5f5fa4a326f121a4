// SPDX-License-Identifier: BSD-2-Clause
// What messages, copies and reductions cost, in LogGP's terms: what algorithms of collectives are chosen by
// (coll/crossovers.hpp). All ranks of a communicator go by the same numbers, as they have to choose alike.
//
//   costs.cpp          the numbers, their bounds, and their text
//   costs_measure.cpp  what they are on this host (hand_over.cpp: between its cores)
//   costs_find.cpp     what holds here: the user's word, what was measured before, or is now
//   costs_agreed.cpp   what all ranks of a job take: what rank 0 has found
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vmpi {

struct Comm;

enum class CostOf : std::uint8_t {
  kNearLatency,   ///< a cache line, to a core that shares the L3 cache
  kFarLatency,    ///< to one that does not; alike where there is one cache
  kHostOverhead,  ///< o of a message within a host
  kHostGap,       ///< g
  kHandshake,     ///< before the data of one that is longer than kEagerBytes
  kPut,           ///< a byte, to memory that others map
  kFetch,         ///< a byte, from where another core has just put it
  kKernel,        ///< a byte, copied from another process by the kernel
  kCombine,       ///< a byte, added up
  kLatency,       ///< L between hosts
  kOverhead,
  kGap,
  kByte,  ///< G
  kLongHandshake,
};
inline constexpr int kCosts = 14;

/// Of formulas, tables and what they are chosen by: raised when one of them changes, since ranks whose
/// libraries choose otherwise would wait for each other (tests/mpi/costs_test.cpp knows their digest).
inline constexpr unsigned kChoosing = 1;

struct CostFacts {
  const char* name;
  const char* what;
  // In ps, as all of them.
  std::uint32_t built_in;
  std::uint32_t least;
  std::uint32_t most;
};
[[nodiscard]] const CostFacts& facts_of(CostOf which) noexcept;

struct Costs {
  std::uint32_t ps[kCosts];
  std::uint32_t measured;  ///< a bit for each; the others are built in, or the user's
  std::uint64_t digest;    ///< of the numbers: those of one digest choose alike

  [[nodiscard]] double ns(CostOf which) const noexcept {
    return ps[static_cast<std::size_t>(which)] / 1000.0;
  }
  [[nodiscard]] bool is_measured(CostOf which) const noexcept {
    return (measured >> static_cast<unsigned>(which) & 1) != 0;
  }
  /// Brought within its bounds.
  void set(CostOf which, double ns) noexcept;
  void set_measured(CostOf which, double ns) noexcept;
};

[[nodiscard]] const Costs& built_in_costs() noexcept;

/// "near.latency:61.250m,far.latency:150.000,...": ns with three decimals, m where it was measured. Without
/// blanks, as a launcher keeps it.
inline constexpr std::size_t kCostsText = 600;
void write_costs(const Costs& costs, std::span<char, kCostsText> out) noexcept;
/// Null, or what is wrong, which is written to `wrong`; `into` is then as it was. Every byte of the text is
/// judged, since others have written it. `are_all`: each number has to be there, as it was written; else
/// those that are, a user's, replace what `into` has, and none of them counts as measured.
[[nodiscard]] const char* parse_costs(const char* text, bool are_all, Costs& into,
                                      std::span<char> wrong) noexcept;

/// Measures those of this host, in some 2 ms, and leaves the others as they are. A thread of its own runs
/// meanwhile. REQUIRES: make_predefined_types() and make_predefined_ops().
void measure_costs(Costs& into) noexcept;
/// Where the kernel copies nothing from other processes, bytes go through memory that both have.
void go_without_kernel(Costs& costs) noexcept;

enum class CostsFrom : std::uint8_t { kBuiltIn, kUser, kKept, kMeasured };
/// Of this process: what VERBATIM_COLL_COSTS says, over what was measured on this host since it started, or
/// is now and kept for others. `path`: where (empty: nowhere). REQUIRES: as measure_costs().
[[nodiscard]] CostsFrom find_costs(Costs& out, std::span<char> path) noexcept;
/// Null, or what is wrong with VERBATIM_COLL_COSTS. Weak in MPI_Init: a program without collectives does
/// not have this file.
[[nodiscard, gnu::weak]] const char* read_costs() noexcept;

/// Rank 0's part, before the bootstrap's barrier. Weak for the same reason.
[[gnu::weak]] void publish_costs() noexcept;
/// What all ranks of it go by. Ends all where the launcher does not say them, or says them otherwise than
/// they are written: this rank alone would choose by others.
[[nodiscard]] const Costs& costs_of(Comm& comm) noexcept;
/// A copy that lasts; null: no memory. What others say is judged: built-in ones where it is wrong.
[[nodiscard]] const Costs* keep_costs(const Costs& said) noexcept;
/// MPI_Finalize.
[[gnu::weak]] void forget_costs() noexcept;

}  // namespace vmpi
