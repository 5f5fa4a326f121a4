// SPDX-License-Identifier: BSD-2-Clause
// siw's queues as arrays of a power of two. There is no shared index: an element carries flags, and
// is the reader's when they are not 0 and the writer's when they are; each side counts for itself.
// So nothing that the kernel writes is ever used as a place. REQUIRES: the lock of the queue's
// owner.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/siw/layout.hpp"
#include "providers/siw/shared_memory.hpp"

namespace verbatim::siw {

/// Work requests: we write, the kernel reads. Element: siw_sqe or siw_rqe.
template <class Element>
class WorkRing {
 public:
  [[nodiscard]] int map(int cmd_fd, std::uint64_t key, std::uint32_t count) noexcept {
    if (const int error = memory_.map(cmd_fd, key, count, sizeof(Element))) return error;
    mask_ = count - 1;
    return 0;
  }
  [[nodiscard]] bool mapped() const noexcept { return memory_.data() != nullptr; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return mask_ + 1; }

  /// The element that comes `ahead` of the next one: null when the kernel has not taken what it
  /// holds yet.
  [[nodiscard]] Element* vacant(std::uint32_t ahead = 0) const noexcept {
    if (ahead > mask_) return nullptr;
    Element& element = at(next_ + ahead);
    // Pairs with the kernel's release: it has read the element that it gives back.
    return flags_of(element).load(std::memory_order_acquire) == 0 ? &element : nullptr;
  }
  /// The next element becomes the kernel's; pairs with its acquire of the flags.
  void publish(std::uint16_t flags) noexcept {
    flags_of(at(next_)).store(flags, std::memory_order_release);
    ++next_;
  }
  /// Shows every element, vacant or not: one that was taken keeps what it held until it is used
  /// again.
  template <class Show>
  void show(Show show) const noexcept {
    for (std::uint32_t i = 0; i <= mask_; ++i) show(static_cast<const Element&>(at(next_ + i)));
  }
  /// Gives each element that the kernel has not taken to `take`, oldest first, and makes it vacant.
  /// REQUIRES: a queue pair that the kernel works no more on.
  template <class Take>
  void reclaim(Take take) noexcept {
    for (std::uint32_t i = 0; i <= mask_; ++i) {
      Element& element = at(next_ + i);
      if (flags_of(element).load(std::memory_order_acquire) == 0) continue;
      take(static_cast<const Element&>(element));
      flags_of(element).store(0, std::memory_order_relaxed);
    }
  }

 private:
  [[nodiscard]] Element& at(std::uint32_t position) const noexcept {
    return static_cast<Element*>(memory_.data())[position & mask_];
  }
  [[nodiscard]] static std::atomic_ref<__u16> flags_of(Element& element) noexcept {
    return std::atomic_ref<__u16>(element.flags);
  }

  SharedMemory memory_;
  std::uint32_t mask_ = 0;
  std::uint32_t next_ = 0;  ///< free-running
};

/// Completions: the kernel writes, we read. Behind them lies the word by which a queue is armed.
class CompletionRing {
 public:
  [[nodiscard]] int map(int cmd_fd, std::uint64_t key, std::uint32_t count) noexcept {
    if (const int error = memory_.map(cmd_fd, key, count, sizeof(siw_cqe), sizeof(siw_cq_ctrl)))
      return error;
    mask_ = count - 1;
    return 0;
  }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return mask_ + 1; }

  /// The oldest completion, or null.
  [[nodiscard]] const siw_cqe* front() const noexcept {
    siw_cqe& element = at(next_);
    // Pairs with the kernel's release: what it has written is whole.
    const std::uint8_t flags = flags_of(element).load(std::memory_order_acquire);
    return (flags & SIW_WQE_VALID) != 0 ? &element : nullptr;
  }
  /// It becomes the kernel's again; pairs with its acquire of the flags.
  void pop() noexcept {
    flags_of(at(next_)).store(0, std::memory_order_release);
    ++next_;
  }
  /// Stands in place of a queue pair's number: the queue pair of the completion is gone.
  static constexpr std::uint64_t kNobody = UINT64_MAX;
  /// Makes nobody's what waits here of a queue pair.
  [[gnu::cold]] void drop(std::uint32_t qp_number) noexcept {
    for (std::uint32_t i = 0; i <= mask_; ++i) {
      siw_cqe& element = at(next_ + i);
      if ((flags_of(element).load(std::memory_order_acquire) & SIW_WQE_VALID) == 0) return;
      if (element.qp_id == qp_number) element.qp_id = kNobody;
    }
  }
  /// Has the kernel tell of the next completion. Nothing read later may come from before this.
  void arm(std::uint32_t how) noexcept {
    auto* const control =
        reinterpret_cast<siw_cq_ctrl*>(static_cast<siw_cqe*>(memory_.data()) + capacity());
    std::atomic_ref<__u32>(control->flags).store(how, std::memory_order_seq_cst);
  }

 private:
  [[nodiscard]] siw_cqe& at(std::uint32_t position) const noexcept {
    return static_cast<siw_cqe*>(memory_.data())[position & mask_];
  }
  [[nodiscard]] static std::atomic_ref<__u8> flags_of(siw_cqe& element) noexcept {
    return std::atomic_ref<__u8>(element.flags);
  }

  SharedMemory memory_;
  std::uint32_t mask_ = 0;
  std::uint32_t next_ = 0;  ///< free-running
};

}  // namespace verbatim::siw
