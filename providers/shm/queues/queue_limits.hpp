// SPDX-License-Identifier: BSD-2-Clause
//
// How large the queues of shm can be, as programs are refused and granted by.
#pragma once

#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/srq.hpp"
#include "providers/shm/queues/work_batch.hpp"
#include "runtime/verbs/software/capacities.hpp"

namespace verbatim::shm {

inline constexpr QueueLimits kQueueLimits{"shm", kMaxWr, kMaxSge, kMaxInline, kMaxCqe};

}  // namespace verbatim::shm
