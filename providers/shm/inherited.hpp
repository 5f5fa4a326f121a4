// SPDX-License-Identifier: BSD-2-Clause
//
// Verbs on what a forked child has of its parent: those that ask and those that destroy work on the
// child's copies, and device memory may be allocated, which is the child's alone; every other
// answers EINVAL, as for the handle of an object that is not there. The first refusal of a context
// is a line in the log.
#pragma once

#include "providers/shm/context.hpp"

namespace verbatim::shm {

struct Cq;

/// In the child, by the thread that there is.
void put_out_of_service(Context& context) noexcept;
void put_cursor_out_of_service(Cq& cq) noexcept;

/// Says so in the log, the first time for its context, if the parent opened it.
[[gnu::cold]] void tell_if_inherited(Context& context, const char* verb) noexcept;
/// For verbs that are no slots of the table: whether the parent opened it; then that is said too.
bool is_inherited(ibv_context& context, const char* verb) noexcept;

}  // namespace verbatim::shm
