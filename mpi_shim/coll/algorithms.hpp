// SPDX-License-Identifier: BSD-2-Clause
// The algorithms of collectives over one group of ranks, a file each. An algorithm adds the steps of
// one rank to a plan. What they cost is said in LogGP's terms: P ranks, n bytes; L latency, o the
// processor's part in a message, g the gap between messages, G the gap between bytes; c is what a
// byte costs to combine. A round is r = L + 2 o; log stands for ceil(log2). Of N nodes with S ranks each
// r' and G' are those within a node.
//
// Ranks that name different counts end in MPI_ERR_TRUNCATE, never in memory that was not named.
#pragma once

#include "mpi_shim/coll/plan.hpp"

namespace vmpi {

enum class Collective : std::uint8_t {
  kBarrier,
  kBcast,
  kGather,
  kScatter,
  kAllgather,
  kAlltoall,
  kReduce,
  kAllreduce,
  kReduceScatter,
  kScan,
  kExscan,
};
inline constexpr int kCollectives = 11;

/// Bytes of a message of pipelined chains: s.
inline constexpr std::int64_t kPipelineSegment = 64 << 10;

[[nodiscard]] constexpr int log_of(std::int64_t count) noexcept {
  int log = 0;
  while (std::int64_t{1} << log < count) ++log;
  return log;
}

struct Reduced {
  const void* send;  ///< or MPI_IN_PLACE
  void* receive;
  std::int64_t count;
  Datatype* type;
  const Op* op;

  [[nodiscard]] const void* own() const noexcept { return send == MPI_IN_PLACE ? receive : send; }
  [[nodiscard]] Typed typed(const void* at) const noexcept {
    return {const_cast<void*>(at), count, type};
  }
  [[nodiscard]] Typed part(const void* at, std::int64_t begin, std::int64_t end) const noexcept {
    return part_of(at, *type, begin, end);
  }
};

/// What a collective is called with; each has some of them. Buffers were checked.
struct Operands {
  int root = 0;
  /// The data of a bcast; of gather and allgather what this rank gives, of scatter what it gets: or
  /// MPI_IN_PLACE.
  const Typed* own = nullptr;
  /// Of scatter (at the root) and alltoall, where its buffer may be MPI_IN_PLACE.
  const Slices* in = nullptr;
  /// Of gather (at the root), allgather and alltoall.
  const Slices* out = nullptr;
  const Reduced* what = nullptr;
  /// Of reduce_scatter: elements for each rank; `what->count` is their sum.
  const int* counts = nullptr;
};

using Algorithm = void(Plan& plan, const Operands& of) noexcept;

Algorithm barrier_dissemination;
Algorithm barrier_tree;
Algorithm barrier_leaders;  ///< REQUIRES: nodes, as do all leaders and owners below

Algorithm bcast_binomial;
Algorithm bcast_scatter_allgather;
Algorithm bcast_chain;
Algorithm bcast_leaders;
Algorithm bcast_node_chain;  ///< REQUIRES: nodes

Algorithm gather_binomial;  ///< REQUIRES: all slices are alike
Algorithm gather_linear;
Algorithm scatter_binomial;  ///< REQUIRES: all slices are alike
Algorithm scatter_linear;

Algorithm allgather_bruck;
Algorithm allgather_recursive_doubling;  ///< REQUIRES: P is a power of two
Algorithm allgather_ring;
Algorithm allgather_neighbour_exchange;  ///< REQUIRES: P is even
Algorithm allgather_leaders;
Algorithm allgather_owners;

Algorithm alltoall_bruck;  ///< REQUIRES: all slices are alike
Algorithm alltoall_spread;
Algorithm alltoall_pairwise;

// Reductions combine in the order of ranks when the operation does not commute, but for those that
// require that it does. For a number of ranks the order is always one: so is the result.

Algorithm reduce_binomial;
Algorithm reduce_rabenseifner;
Algorithm reduce_ring;     ///< REQUIRES: the operation commutes
Algorithm reduce_leaders;  ///< REQUIRES: it commutes, or nodes are in order
Algorithm reduce_owners;   ///< REQUIRES: the operation commutes

Algorithm allreduce_recursive_doubling;
Algorithm allreduce_rabenseifner;
Algorithm allreduce_ring;  ///< REQUIRES: the operation commutes
Algorithm allreduce_reduce_bcast;
Algorithm allreduce_leaders;  ///< REQUIRES: the operation commutes, or nodes are in order
Algorithm allreduce_owners;   ///< REQUIRES: the operation commutes

Algorithm reduce_scatter_binomial;
Algorithm reduce_scatter_pairwise;           ///< REQUIRES: the operation commutes
Algorithm reduce_scatter_recursive_halving;  ///< REQUIRES: the operation commutes

Algorithm scan_recursive_doubling;
Algorithm scan_linear;
Algorithm exscan_recursive_doubling;
Algorithm exscan_linear;

}  // namespace vmpi
