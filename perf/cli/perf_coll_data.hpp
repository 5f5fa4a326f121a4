// SPDX-License-Identifier: BSD-2-Clause
// The buffers of one rank for one size of a collective: what it gives in each round, known from its
// number, and a check of what it gets. Any thread, one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/cli/perf_coll_options.hpp"

namespace verbatim::cli {

/// Throws Failure where the buffers of a rank would take more than the limit, or their places would
/// not be ints.
void check_coll_memory(const CollOptions& options, int ranks, std::uint64_t bytes);

class CollData {
 public:
  /// Throws Failure: no memory. REQUIRES: check_coll_memory() has passed.
  CollData(const CollOptions& options, int rank, int ranks, std::uint64_t bytes);
  ~CollData();
  CollData(const CollData&) = delete;
  CollData& operator=(const CollData&) = delete;

  /// The call of a round: other buffers than the last one's, and other values.
  [[nodiscard]] const CollArguments& prepare(std::uint64_t round);
  /// What is wrong in what the call of the round that was prepared last has brought; empty: nothing.
  [[nodiscard]] std::string wrong() const;

 private:
  struct Pair {
    unsigned char* given = nullptr;
    unsigned char* taken = nullptr;
  };

  [[nodiscard]] unsigned char* make(std::uint64_t bytes) const;
  void drop(unsigned char* buffer) const;
  [[nodiscard]] bool is_root() const { return rank_ == arguments_.root; }
  [[nodiscard]] std::uint64_t slices_of(CollSide side) const { return coll_slices(side, ranks_); }
  [[nodiscard]] std::uint64_t slice_bytes() const;
  void lay_out(std::uint64_t elements);
  void write_given(unsigned char* at) const;
  void write_slice(unsigned char* at, int from, int to) const;
  [[nodiscard]] std::string wrong_slice(const unsigned char* at, int from, int to) const;
  [[nodiscard]] std::string wrong_vector() const;
  [[nodiscard]] std::string wrong_slices() const;

  const CollOptions& options_;
  const CollCall& call_;
  const int rank_, ranks_;
  std::uint64_t vector_ = 0;  ///< elements that a rank gives of a reduction
  std::vector<Pair> pairs_;
  std::vector<int> counts_, displacements_, byte_displacements_;
  std::vector<MPI_Datatype> types_;
  CollArguments arguments_;
  std::uint64_t round_ = 0;
  std::uint64_t given_bytes_ = 0, taken_bytes_ = 0;
  unsigned char* taken_ = nullptr;
  bool is_written_ = false;
};

}  // namespace verbatim::cli
