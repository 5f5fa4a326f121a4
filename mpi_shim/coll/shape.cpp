// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/shape.hpp"

namespace vmpi {
namespace {

[[nodiscard]] bool are_alike(const Slices& slices) noexcept {
  return slices.form == Slices::Form::kAlike;
}

/// REQUIRES: they are alike.
[[nodiscard]] std::int64_t slice_bytes(const Slices& slices) noexcept {
  return slices.count * slices.one_type->size;
}

[[nodiscard]] std::int64_t bytes_of_all(const Slices& slices, int ranks) noexcept {
  if (are_alike(slices)) return ranks * slice_bytes(slices);
  std::int64_t bytes = 0;
  for (int i = 0; i < ranks; ++i) bytes += slices.bytes(i);
  return bytes;
}

[[nodiscard]] Shape shape_of(Collective which, const Operands& of, const Plan& plan) noexcept {
  const int rank = plan.rank();
  const int ranks = plan.size();
  Shape shape;
  shape.ranks = ranks;
  if (plan.nodes() != nullptr) {
    shape.has_nodes = true;
    shape.are_nodes_in_order = plan.nodes()->are_in_order();
    shape.are_nodes_alike = plan.nodes()->are_alike();
    shape.nodes = plan.nodes()->count();
    shape.ranks_of_node = plan.nodes()->most();
  }
  shape.is_apart = plan.is_apart();
  shape.costs = plan.costs();
  switch (which) {
    case Collective::kBarrier:
      break;
    case Collective::kBcast:
      shape.bytes = of.own->bytes();
      break;
    case Collective::kGather:
    case Collective::kScatter: {
      const Slices& slices = which == Collective::kGather ? *of.out : *of.in;
      // The form is that of the function, but only the root's says more.
      shape.are_alike = are_alike(slices);
      if (shape.are_alike) shape.bytes = rank == of.root ? slice_bytes(slices) : of.own->bytes();
      break;
    }
    case Collective::kAllgather:
      shape.are_alike = are_alike(*of.out);
      shape.bytes = bytes_of_all(*of.out, ranks);
      break;
    case Collective::kAlltoall:
      shape.are_alike = are_alike(*of.out);
      if (shape.are_alike) shape.bytes = slice_bytes(*of.out);
      break;
    case Collective::kReduce:
    case Collective::kAllreduce:
    case Collective::kReduceScatter:
    case Collective::kScan:
    case Collective::kExscan:
      shape.bytes = of.what->count * of.what->type->size;
      shape.is_commutative = of.what->op->is_commutative;
      break;
  }
  return shape;
}

}  // namespace

Algorithm* algorithm_for(const Plan& plan, Collective which, const Operands& of) noexcept {
  // Of no elements there is nothing to combine, and all ranks know.
  if (of.what != nullptr && of.what->count == 0) return nullptr;
  return select(which, shape_of(which, of, plan));
}

void make_plan(Plan& plan, Collective which, const Operands& of) noexcept {
  Algorithm* const algorithm = algorithm_for(plan, which, of);
  if (algorithm != nullptr) algorithm(plan, of);
}

}  // namespace vmpi
