// SPDX-License-Identifier: BSD-2-Clause
// The two ways to move along a ring that the kernel shares: as its producer (work requests) and as
// its consumer (completions). REQUIRES: the lock of the ring's owner, for the life of the object.
//
// Indices lie masked in the header. The other side's is believed in nothing but its low bits: every
// difference is masked, so whatever stands there, no more than mask() elements are seen, all of
// them inside the ring.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/rxe/queue.hpp"

namespace verbatim::rxe {

class Producer {
 public:
  Producer() noexcept = default;
  explicit Producer(const Queue& queue) noexcept
      : queue_(&queue), next_(own().load(std::memory_order_relaxed) & queue.mask()) {
    // Pairs with the kernel's release: it has read what lay in the slots that it gives back.
    const std::uint32_t consumed =
        std::atomic_ref(queue.ring()->consumer_index).load(std::memory_order_acquire);
    room_ = queue.mask() - ((next_ - consumed) & queue.mask());
  }

  [[nodiscard]] std::uint32_t room() const noexcept { return room_; }
  /// The slot to write. Without room it is the one that always stays empty: it may be written, but
  /// not advanced over.
  template <class Element>
  [[nodiscard]] Element& slot() const noexcept {
    return *static_cast<Element*>(queue_->element(next_));
  }
  void advance() noexcept {
    next_ = (next_ + 1) & queue_->mask();
    --room_;
  }
  /// Everything advanced over becomes the kernel's; pairs with its acquire of the producer index.
  void publish() noexcept { own().store(next_, std::memory_order_release); }

 private:
  [[nodiscard]] std::atomic_ref<__u32> own() const noexcept {
    return std::atomic_ref(queue_->ring()->producer_index);
  }

  const Queue* queue_ = nullptr;
  std::uint32_t next_ = 0;
  std::uint32_t room_ = 0;
};

class Consumer {
 public:
  explicit Consumer(const Queue& queue) noexcept
      : queue_(queue), next_(own().load(std::memory_order_relaxed) & queue.mask()) {
    // Pairs with the kernel's release: what it has written is whole.
    const std::uint32_t produced =
        std::atomic_ref(queue.ring()->producer_index).load(std::memory_order_acquire);
    count_ = (produced - next_) & queue.mask();
  }

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// REQUIRES: count() != 0.
  template <class Element>
  [[nodiscard]] const Element& front() const noexcept {
    return *static_cast<const Element*>(queue_.element(next_));
  }
  void advance() noexcept {
    next_ = (next_ + 1) & queue_.mask();
    --count_;
  }
  /// Everything advanced over becomes the kernel's again; pairs with its acquire of the index.
  void give_back() noexcept { own().store(next_, std::memory_order_release); }

 private:
  [[nodiscard]] std::atomic_ref<__u32> own() const noexcept {
    return std::atomic_ref(queue_.ring()->consumer_index);
  }

  const Queue& queue_;
  std::uint32_t next_;
  std::uint32_t count_;
};

}  // namespace verbatim::rxe
