// SPDX-License-Identifier: BSD-2-Clause
//
// Who may reach a region, and how (verbatim/query.h). Any thread; walks all connections.
#pragma once

#include <verbatim/query.h>

#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

int query_mr_peers(verbatim::Mr& mr, vbt_mr_peer* peers, std::uint32_t room,
                   std::uint32_t& count) noexcept;

}  // namespace verbatim::shm
