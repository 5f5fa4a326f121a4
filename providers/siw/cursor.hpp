// SPDX-License-Identifier: BSD-2-Clause
// ibv_start_poll and its companions over siw's completions. From start to end the cursor belongs to
// one thread; the queue's lock is taken for each completion only, so a program may post, poll and
// destroy in between.
#pragma once

#include <infiniband/verbs.h>

#include "runtime/sync/spin_lock.hpp"

namespace verbatim::siw {

struct Cq;

struct Cursor {
  SpinLock lock;
  ibv_wc wc{};
};

/// Before the queue is made: 0, or EOPNOTSUPP and why in the log.
[[nodiscard]] int check_fields(const ibv_cq_init_attr_ex& attr) noexcept;
void wire_cursor(Cq& cq) noexcept;

}  // namespace verbatim::siw
