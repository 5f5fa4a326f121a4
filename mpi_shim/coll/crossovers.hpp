// SPDX-License-Identifier: BSD-2-Clause
// The table by which algorithms are chosen: for one collective, so many ranks on such nodes, and what the
// call allows, up to how many bytes each algorithm is the fastest, as the formulas say by the costs that all
// ranks have agreed on. It is made when a communicator first needs it, and kept for the next ones alike.
//
// Made by the same numbers it is the same at all ranks. The big lock is held by every caller.
#pragma once

#include "mpi_shim/coll/select.hpp"

namespace vmpi {

inline constexpr std::int64_t kAnyBytes = 0x7fffffffffffffff;

struct Crossover {
  std::int64_t to_bytes;
  const KnownAlgorithm* algorithm;
};

/// Of a call's shape, whatever its bytes are. Rows are in order, and the last one is of any bytes.
class Crossovers {
 public:
  static constexpr int kMostRows = 7;

  void make(Collective which, const Shape& shape) noexcept;
  [[nodiscard]] std::span<const Crossover> rows() const noexcept {
    return {rows_, static_cast<std::size_t>(count_)};
  }
  [[nodiscard]] const KnownAlgorithm& of(std::int64_t bytes) const noexcept {
    const Crossover* row = rows_;
    while (bytes > row->to_bytes) ++row;
    return *row->algorithm;
  }

 private:
  Crossover rows_[kMostRows] = {};
  int count_ = 0;
};

/// Where a table is kept, of kKeptTables: two that have one place take it from each other.
[[nodiscard]] std::size_t place_of_table(Collective which, const Shape& shape) noexcept;
/// More than the collectives of two communicators: one that is needed again is made again.
inline constexpr std::size_t kKeptTables = 64;

/// Whatever the user says.
[[nodiscard]] const KnownAlgorithm& choose(Collective which, const Shape& shape) noexcept;
/// In ns; of one that cannot do such a call nothing can be said.
[[nodiscard]] double model_ns(const KnownAlgorithm& algorithm, const Shape& shape) noexcept;

}  // namespace vmpi
