// SPDX-License-Identifier: BSD-2-Clause
//
// The memory of the requests that wait in a send queue. Each lies in one piece: its words, its SGEs,
// and the bytes that it was given inline.
//
// Most queue pairs never have more than a request or two waiting, so the store begins with a few
// places and grows to as many as the send queue has; a program's allocators are asked for all of
// them when the queue pair is created. Under the send lock.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "providers/shm/queues/pending_send.hpp"
#include "providers/shm/queues/work_batch.hpp"
#include "runtime/verbs/queue_memory.hpp"

namespace verbatim::shm {

class SendStore {
 public:
  bool is_made() const noexcept { return places_ != nullptr; }
  /// Makes `most` places at once. False: no memory. REQUIRES: nothing waits.
  [[gnu::cold]] bool make(const QueueMemory& memory, std::uint32_t most,
                          std::uint32_t max_sge) noexcept;
  /// Is there a place for one more than the requests of [head, tail), of at most `most`? Makes more
  /// of them if not, which moves those that wait. False: no memory.
  bool has_place(const QueueMemory& memory, std::uint32_t most, std::uint32_t max_sge,
                 std::uint32_t head, std::uint32_t tail) noexcept {
    return tail - head < count_ || grow(memory, most, max_sge, head, tail);
  }
  void free(const QueueMemory& memory) noexcept;

  PendingSend& at(std::uint32_t index) const noexcept {
    return *reinterpret_cast<PendingSend*>(place(index));
  }
  ibv_sge* sges_of(std::uint32_t index) const noexcept {
    return reinterpret_cast<ibv_sge*>(place(index) + sizeof(PendingSend));
  }
  /// kMaxInline bytes.
  unsigned char* inline_bytes_of(std::uint32_t index) const noexcept {
    return place(index) + place_bytes_ - kMaxInline;
  }

 private:
  [[gnu::cold]] bool grow(const QueueMemory& memory, std::uint32_t most, std::uint32_t max_sge,
                          std::uint32_t head, std::uint32_t tail) noexcept;
  /// Has `count` places from now on, with the requests of [head, tail) in them.
  [[gnu::cold]] bool move_to(const QueueMemory& memory, std::uint32_t count, std::uint32_t max_sge,
                             std::uint32_t head, std::uint32_t tail) noexcept;
  unsigned char* place(std::uint32_t index) const noexcept {
    return places_ + std::size_t{index & (count_ - 1)} * place_bytes_;
  }

  unsigned char* places_ = nullptr;
  std::uint32_t count_ = 0;  ///< a power of two; 0 before the first request
  std::uint32_t place_bytes_ = 0;
};

}  // namespace verbatim::shm
