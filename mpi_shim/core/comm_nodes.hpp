// SPDX-License-Identifier: BSD-2-Clause
// Nodes of a communicator, which all its ranks know alike: by VERBATIM_MPI_NODES, else by the launcher
// (PMI_process_mapping), else there is one. The big lock is held by every caller.
#pragma once

#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/nodes.hpp"

namespace vmpi {

/// Reads VERBATIM_MPI_NODES: null, or what is wrong with it. Weak in MPI_Init: a program without
/// collectives does not have this file.
[[nodiscard, gnu::weak]] const char* read_nodes() noexcept;

/// The first look at a communicator, which may ask the launcher.
void look_at_nodes(Comm& comm) noexcept;

/// Null: there is nothing to compose.
[[nodiscard]] inline const Nodes* nodes_of(Comm& comm) noexcept {
  if (comm.node_state == NodeState::kUnknown) look_at_nodes(comm);
  return comm.node_state == NodeState::kComposed ? &comm.nodes : nullptr;
}
/// Whether its ranks are of several nodes.
[[nodiscard]] inline bool has_several_nodes(Comm& comm) noexcept {
  if (comm.node_state == NodeState::kUnknown) look_at_nodes(comm);
  return comm.node_state != NodeState::kOne;
}
/// Those of its ranks that share this one's node, as a communicator of its own, for collectives alone;
/// null: no memory. REQUIRES: nodes_of(comm) is not null.
[[nodiscard]] Comm* node_comm(Comm& comm) noexcept;

}  // namespace vmpi
