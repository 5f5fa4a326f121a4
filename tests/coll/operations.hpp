// SPDX-License-Identifier: BSD-2-Clause
// Every operation of a team against what it is by definition, computed from all members' data, which
// each of them can tell.
#pragma once

#include <verbatim/coll.h>

#include <cstddef>

namespace verbatim::harness {

enum class How { kBlocking, kPolled, kWaited };

/// All operations, types and reductions, in place and not, for `count` elements of each.
void check_all(vbt_coll_team* team, std::size_t count, How how);
/// One of each, of doubles: for what is about something else.
void check_some(vbt_coll_team* team, std::size_t count);
/// Of all kinds at once under way, ended in another order than they were begun.
void check_many_at_once(vbt_coll_team* team, std::size_t count);
/// In memory of vbt_coll_alloc.
void check_in_place_read(vbt_coll_team* team, std::size_t count);

}  // namespace verbatim::harness
