// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/comm_nodes.hpp"

#include "mpi_shim/core/errors.hpp"
#include "mpi_shim/core/world.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"

namespace vmpi {
namespace {

constexpr std::size_t kLongestText = 64u << 10;

/// Of the ranks of the world; empty: all are on one node.
LastingArray<int> world_nodes;
/// Whether the launcher need not be asked any more.
constinit bool are_known = false;

void ask_launcher() noexcept {
  are_known = true;
  char text[1024];
  const KeyAnswer answer = look_up_mapping(text, sizeof text);
  if (answer == KeyAnswer::kSilence)
    abort_all(1, "the launcher does not say on which nodes ranks are (PMI_process_mapping)");
  if (answer == KeyAnswer::kNoSuchKey) return;
  Array<int> numbers;
  if (!parse_process_mapping(text, world.size, numbers)) {
    verbatim::log_info(
        "the launcher's PMI_process_mapping is \"%.80s\", which says no node of each "
        "rank: all count as of one",
        text);
    return;
  }
  world_nodes = static_cast<LastingArray<int>&&>(numbers);
}

/// By the world's nodes, whose numbers become such as are below the communicator's size. False: no
/// memory.
[[nodiscard]] bool set_nodes(Comm& comm) noexcept {
  const auto size = static_cast<std::size_t>(comm.size());
  Array<int> numbers;
  Array<int> renamed;
  if (!numbers.resize(size) || !renamed.resize(world_nodes.size())) return false;
  int known = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const int number = world_nodes[comm.group->world_rank(static_cast<int>(i))];
    int& name = renamed[static_cast<std::size_t>(number)];
    if (name == 0) name = ++known;
    numbers[i] = name - 1;
  }
  return comm.nodes.set(numbers.data(), comm.size());
}

}  // namespace

const char* read_nodes() noexcept {
  static constinit char wrong[256];
  const char* const text = verbatim::environment_text("VERBATIM_MPI_NODES", kLongestText);
  if (text == nullptr) return nullptr;
  Array<int> numbers;
  const char* const refused = parse_nodes(text, world.size, numbers, wrong);
  if (refused != nullptr) return refused;
  world_nodes = static_cast<LastingArray<int>&&>(numbers);
  are_known = true;
  return nullptr;
}

void look_at_nodes(Comm& comm) noexcept {
  comm.node_state = NodeState::kOne;
  if (comm.remote != nullptr || comm.size() < 2) return;
  if (!are_known) ask_launcher();
  if (world_nodes.empty()) return;
  if (!set_nodes(comm))
    verbatim::log_error("there is no memory left to see which ranks share a node");
  else if (comm.nodes.count() > 1)
    // The local one of an intercommunicator has no context to give to those of its nodes.
    comm.node_state = comm.nodes.are_composed() && comm.whole == nullptr ? NodeState::kComposed
                                                                         : NodeState::kApart;
  if (comm.node_state != NodeState::kComposed) comm.nodes = {};
}

Comm* node_comm(Comm& comm) noexcept {
  if (comm.node != nullptr) return comm.node;
  const std::span<const int> ranks = comm.nodes.ranks_of(comm.nodes.node_of(comm.rank()));
  Array<int> members;
  if (!members.assign(ranks.data(), ranks.size())) return nullptr;
  for (int& member : members) member = static_cast<int>(comm.group->world_rank(member));
  Group* const group = make_group(members.data(), members.size());
  if (group == nullptr) return nullptr;
  // Context and context + 1 are the communicator's own, the two behind them those of a local one or of
  // this. Nodes have no rank in common: so all may have the same ones.
  comm.node = make_comm(comm, *group, nullptr, comm.context + 2);
  release(*group);
  if (comm.node == nullptr) return nullptr;
  comm.node->node_state = NodeState::kOne;
  comm.node->whole = &comm;
  return comm.node;
}

}  // namespace vmpi
