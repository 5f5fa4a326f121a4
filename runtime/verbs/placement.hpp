// SPDX-License-Identifier: BSD-2-Clause
//
// Where registered memory lies, seen from the thread that asks or posts. Any thread; system calls:
// for queries, and for posts that are slow anyway. Nodes are the kernel's numbers, of the thread as
// of the pages, and this is about where memory really is: runtime/topo (its machines may be made
// up, and reading one takes a millisecond) has no part in it. Spec: getcpu(2), move_pages(2).
#pragma once

#include <verbatim/query.h>

#include <cstdint>

#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// The part of vbt_mr_attr from `nodes` on. The kernel is asked about up to 16384 pages.
void report_placement(const Mr& mr, vbt_mr_attr& out) noexcept;

/// The calling thread has `done` this to memory that it probably uses ("posted", "registered"):
/// warns, once per process, when most of its pages lie on other nodes. Costs a load on machines of
/// one node and after the warning; the first 64 calls of others look at 256 pages each.
[[gnu::cold]] void warn_of_remote_buffer(const char* done, const void* address,
                                         std::uint64_t length) noexcept;

}  // namespace verbatim
