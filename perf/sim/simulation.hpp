// SPDX-License-Identifier: BSD-2-Clause
// Runs the plans of all ranks in one process, data included, and tells when each would be done by
// LogGP's model of a network: a discrete-event simulation of the plans that the engine runs. What its
// times were held against is in perf/README.md, "The model".
//
// A send is complete when its receive has matched it, and data are copied then: so a plan that
// changes what is under way, or would wait for ever over messages without buffers, is found out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpi_shim/coll/plan.hpp"

namespace verbatim::sim {

/// Of messages of one level, in ns (and ns a byte).
struct LogGP {
  double latency = 1000;
  double overhead = 200;      ///< o: the processor's part, at each end
  double gap = 100;           ///< g: between the beginnings of two messages at one end
  double gap_of_bytes = 0.1;  ///< G
};

struct Model {
  LogGP between;                       ///< ranks of different nodes
  LogGP within = {300, 50, 30, 0.03};  ///< ranks of one node
  int ranks_of_node = 1;
  /// Messages between nodes leave and reach a node one behind the other, whatever its ranks: in the order in
  /// which they are sent, as far as clocks tell before all is known.
  bool nodes_share_link = false;
  double combine_of_bytes = 0;  ///< to combine a byte
  double copy_of_bytes = 0;     ///< to copy one
  /// Each part of a processor (o, a copy, a combination) takes longer by chance: by so much on the average,
  /// as a part of it, and by twice that at the most.
  double noise = 0;
  std::uint64_t seed =
      1;  ///< by which the same chance comes again, in whatever order ranks have their turns
  bool moves_data = true;  ///< else only the times are told, and buffers may be shared

  [[nodiscard]] bool is_within(int a, int b) const {
    return a / ranks_of_node == b / ranks_of_node;
  }
  [[nodiscard]] const LogGP& of(int a, int b) const { return is_within(a, b) ? within : between; }
};

struct Result {
  std::string wrong;    ///< empty, or why the plans do not fit each other
  double ns = 0;        ///< until the last rank is done
  double first_ns = 0;  ///< until the first one is
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t most_temporary = 0;  ///< bytes of memory of a rank beside the program's
  std::uint64_t most_state = 0;      ///< and of its steps
};

/// `each_first`: in which order ranks come to their turns, as a number that stands for it.
[[nodiscard]] Result simulate(const std::vector<std::unique_ptr<vmpi::Plan>>& plans,
                              const Model& model, std::uint32_t each_first = 0);

}  // namespace verbatim::sim
