// SPDX-License-Identifier: BSD-2-Clause
// What a device that is gone has left in its queues: requests that its driver took no notice of, or
// did not finish. They are flushed out of the rings in which they lie, in which we go on where the
// kernel has stopped; so posting needs no other way, and nothing is kept beside. What lies in a
// shared receive queue is no queue pair's, and is not flushed (IBTA 10.2.9). Any thread.
#pragma once

#include <infiniband/verbs.h>

namespace verbatim::rxe {

struct Cq;

/// Completions of those that belong to this queue, in order: how many. REQUIRES: the device is
/// gone, and what it completed has been taken; no lock of the data path but, maybe, the send lock
/// of a queue pair whose requests are being built, which are left for the next time.
[[gnu::cold, nodiscard]] int flush_left_behind(Cq& cq, int entries, ibv_wc* wc) noexcept;

}  // namespace verbatim::rxe
