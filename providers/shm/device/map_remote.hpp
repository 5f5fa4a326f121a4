// SPDX-License-Identifier: BSD-2-Clause
//
// Peers' memory as pointers (verbatim/map.h). Any thread.
#pragma once

#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

/// `mapped` stays good until the queue pair is detached, since that holds the peer, and the peer its
/// arenas. 0 or an errno, as vbt_map_remote says.
int map_remote(verbatim::Qp& qp, std::uint32_t rkey, std::uint64_t address, std::size_t length,
               unsigned access, void** mapped) noexcept;

}  // namespace verbatim::shm
