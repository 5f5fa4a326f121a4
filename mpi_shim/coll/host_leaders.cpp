// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/host_leaders.hpp"

#include "mpi_shim/coll/leaders.hpp"
#include "mpi_shim/coll/run.hpp"
#include "mpi_shim/core/comm_nodes.hpp"

namespace vmpi {
namespace {

class ByLeaders {
 public:
  ByLeaders(Comm& comm, Comm& node, const Nodes& nodes, int root) noexcept
      : comm_(comm), node_(node), plan_(comm.rank(), comm.size()), led_(on(plan_, nodes), root) {}

  [[nodiscard]] int barrier() noexcept {
    const Operands nothing;
    if (within(Collective::kBarrier, nothing) ||
        among([&] { barrier_dissemination(plan_, nothing); }))
      return outcome_.error;
    const Typed none = {nullptr, 0, &byte_type()};
    (void)within(Collective::kBcast, {.root = led_.leader, .own = &none});
    return outcome_.error;
  }

  [[nodiscard]] int bcast(const Typed& data) noexcept {
    if (among([&] { bcast_binomial(plan_, {.root = led_.root_node(), .own = &data}); }))
      return outcome_.error;
    (void)within(Collective::kBcast, {.root = led_.leader, .own = &data});
    return outcome_.error;
  }

  [[nodiscard]] int reduce(const Reduced& what) noexcept {
    const LedReduction parts = split(plan_, led_, what, false);
    if (!plan_.is_good()) return MPI_ERR_NO_MEM;
    if (parts.is_within &&
        within(Collective::kReduce, {.root = led_.leader, .what = &parts.within}))
      return outcome_.error;
    (void)among([&] { reduce_binomial(plan_, {.root = led_.root_node(), .what = &parts.among}); });
    return outcome_.error;
  }

  [[nodiscard]] int allreduce(const Reduced& what) noexcept {
    const LedReduction parts = split(plan_, led_, what, true);
    const Typed result = what.typed(what.receive);
    // Of one that is alone, too: it brings what it gives to the result's place.
    if (is_ended_by(by_node(Collective::kReduce, {.root = led_.leader, .what = &parts.within})) ||
        among([&] { allreduce_recursive_doubling(plan_, {.what = &parts.among}); }))
      return outcome_.error;
    (void)within(Collective::kBcast, {.root = led_.leader, .own = &result});
    return outcome_.error;
  }

  [[nodiscard]] int allgather(const Operands& of) noexcept {
    PackedRow row;
    if (!gather_row(plan_, led_, of, row)) return MPI_ERR_NO_MEM;
    if (is_ended_by(run(plan_))) return outcome_.error;
    const Typed whole = row.whole(led_.nodes);
    if (within(Collective::kBcast, {.root = led_.leader, .own = &whole})) return outcome_.error;
    Plan behind(comm_.rank(), comm_.size());
    spread_row(behind, led_, of, row);
    (void)is_ended_by(behind.is_good() ? run(behind) : MPI_ERR_NO_MEM);
    return outcome_.error;
  }

 private:
  [[nodiscard]] static Plan& on(Plan& plan, const Nodes& nodes) noexcept {
    plan.lie_on(&nodes);
    return plan;
  }
  /// One of a wrong length does not end it: the others wait for what this rank says next.
  [[nodiscard]] bool is_ended_by(int error) noexcept { return outcome_.is_ended_by(error); }

  [[nodiscard]] int by_node(Collective which, const Operands& of) noexcept {
    const int error = do_collective(which, node_, of);
    const Nodes& nodes = comm_.nodes;
    if (error == MPI_ERR_TRUNCATE && node_.odd_rank >= 0)
      comm_.odd_rank =
          nodes.ranks_of(nodes.node_of(comm_.rank()))[static_cast<std::size_t>(node_.odd_rank)];
    return error;
  }
  [[nodiscard]] bool within(Collective which, const Operands& of) noexcept {
    return !led_.is_alone() && is_ended_by(by_node(which, of));
  }

  [[nodiscard]] int run(const Plan& plan) noexcept {
    const Route route = {&comm_, tag_};
    if (!plan.is_good()) return MPI_ERR_NO_MEM;
    return Run(plan, &route, Plane::kCollective).to_the_end();
  }
  template <class Add>
  [[nodiscard]] bool among(Add add) noexcept {
    if (!led_.leads) return false;
    {
      const AmongLeaders leaders(plan_, led_);
      add();
    }
    return is_ended_by(run(plan_));
  }

  Comm& comm_;
  Comm& node_;
  int tag_ = next_tag(comm_);
  Plan plan_;
  Led led_;
  Outcome outcome_;
};

}  // namespace

Algorithm* leaders_of(Collective which) noexcept {
  switch (which) {
    case Collective::kBarrier:
      return barrier_leaders;
    case Collective::kBcast:
      return bcast_leaders;
    case Collective::kAllgather:
      return allgather_leaders;
    case Collective::kReduce:
      return reduce_leaders;
    case Collective::kAllreduce:
      return allreduce_leaders;
    default:
      return nullptr;
  }
}

int do_by_leaders(Collective which, Comm& comm, const Operands& of) noexcept {
  Comm* const node = node_comm(comm);
  if (node == nullptr) return MPI_ERR_NO_MEM;
  const bool has_root = which == Collective::kBcast || which == Collective::kReduce;
  ByLeaders call(comm, *node, *nodes_of(comm), has_root ? of.root : 0);
  switch (which) {
    case Collective::kBarrier:
      return call.barrier();
    case Collective::kBcast:
      return call.bcast(*of.own);
    case Collective::kAllgather:
      return call.allgather(of);
    case Collective::kReduce:
      return call.reduce(*of.what);
    default:
      return call.allreduce(*of.what);
  }
}

}  // namespace vmpi
