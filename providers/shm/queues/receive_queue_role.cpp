// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/receive_queue_role.hpp"

#include "providers/shm/fabric/process.hpp"

namespace verbatim::shm {

bool ReceiveQueue::reserve() noexcept {
  OwnSegment& segment = Process::get().segment();
  for (std::uint32_t log = first_log;; log = log_after(log)) {
    if (!segment.reserve(store.shown_bytes(log))) {
      give_up_until(log);
      return false;
    }
    if (log == last_log) return store.is_reserved = true;
  }
}

void ReceiveQueue::give_up_until(std::uint32_t end) noexcept {
  OwnSegment& segment = Process::get().segment();
  for (std::uint32_t log = first_log; log != end; log = log_after(log))
    segment.give_up(store.shown_bytes(log));
}

std::uint64_t ReceiveQueue::make(const QueueMemory& memory) noexcept {
  const std::uint64_t offset = store.make(memory);
  return offset == 0 ? 0 : extent::make(offset, store.log);
}

std::uint64_t ReceiveQueue::grow(const QueueMemory& memory, BiasedLock& taking,
                                 const std::atomic<std::uint64_t>& head) noexcept {
  // Its room is reserved, by reserve().
  ReceiveStore more;
  more.max_sge = store.max_sge;
  more.resize(log_after(store.log));
  const std::uint64_t offset = more.make(memory);
  if (offset == 0) {
    more.free(memory);
    return 0;
  }
  ReceiveStore before = store;
  {
    LockGuard<BiasedLock> guard(taking);
    more.copy_from(before, head.load(std::memory_order_relaxed),
                   tail.load(std::memory_order_relaxed));
    store = more;
    resize(more.log);
  }
  left[left_count++] = extent::make(Process::get().segment().offset_of(before.credits), before.log);
  before.free(memory);
  return extent::make(offset, store.log);
}

void ReceiveQueue::release(std::uint64_t place, const QueueMemory& memory) noexcept {
  OwnSegment& segment = Process::get().segment();
  const bool is_ours = store.credits != nullptr && segment.holds(store.credits);
  store.release(extent::offset(place), true);
  if (left_count == 0) return;
  for (; left_count != 0; --left_count) {
    const std::uint64_t before = left[left_count - 1];
    if (is_ours)
      segment.release(extent::offset(before), store.shown_bytes(extent::log(before)), true);
  }
  store.free(memory);
  resize(first_log);
}

void ReceiveQueue::give_up(const void* owner) noexcept {
  if (store.is_reserved && Process::get().segment().holds(owner)) {
    give_up_until(last_log);
    Process::get().segment().give_up(store.shown_bytes(last_log));
  }
  store.is_reserved = false;
}

}  // namespace verbatim::shm
