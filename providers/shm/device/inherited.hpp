// SPDX-License-Identifier: BSD-2-Clause
//
// Verbs on what a forked child has of its parent: those that ask and those that destroy work on the
// child's copies, and device memory may be allocated, which is the child's alone; every other
// answers EINVAL, as for the handle of an object that is not there. The first refusal of a context
// is a line in the log.
#pragma once

#include "providers/shm/memory/context.hpp"

namespace verbatim::shm {

struct Cq;

/// In the child, by the thread that there is.
void put_out_of_service(Context& context) noexcept;
void put_cursor_out_of_service(Cq& cq) noexcept;

}  // namespace verbatim::shm
