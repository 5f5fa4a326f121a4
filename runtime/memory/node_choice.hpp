// SPDX-License-Identifier: BSD-2-Clause
//
// Which nodes a block of memory is to lie on: the decision alone, on any machine, made up or real.
// Any thread; no allocation, no system call. Nodes are the kernel's numbers here.
#pragma once

#include <verbatim/memory.h>

#include <cstdint>

#include "runtime/topo/machine.hpp"
#include "runtime/topo/process_limits.hpp"

namespace verbatim {

struct NodeWish {
  std::uint32_t where = VBT_WHERE_LOCAL;
  std::uint32_t node = 0;                   ///< of VBT_WHERE_NODE
  std::uint32_t device_node = topo::kNone;  ///< of VBT_WHERE_DEVICE
  std::uint32_t thread_node = topo::kNone;  ///< an index of the machine's nodes
};

struct NodeChoice {
  /// None: nobody knows, the kernel is not told anything. Several: interleaved or spread over them.
  std::uint32_t count = 0;
  std::uint32_t nodes[topo::kMaxNodes];
  std::uint32_t fallbacks = 0;  ///< enum vbt_alloc_fallback
  const char* reason = "";      ///< of a fallback or of an error; never null
};

/// 0, or EINVAL for a node that is not there or not ours.
[[nodiscard]] int choose_nodes(const topo::Machine& machine, const topo::ProcessLimits& limits,
                               const NodeWish& wish, NodeChoice& choice) noexcept;

}  // namespace verbatim
