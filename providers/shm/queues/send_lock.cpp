// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/send_lock.hpp"

#include <sched.h>

#include "runtime/sync/pause.hpp"

namespace verbatim::shm {

void SendLock::take_slowly() noexcept {
  for (std::uint32_t spins = 1;; ++spins) {
    if ((word_.load(std::memory_order_relaxed) & 1) == 0 && try_take()) return;
    if (spins % 1024 == 0)
      ::sched_yield();
    else
      cpu_pause();
  }
}

}  // namespace verbatim::shm
