// SPDX-License-Identifier: BSD-2-Clause
// A ring that the rxe driver shares with its user: work requests one way, completions the other.
// The kernel allocates it and tells where to map it; each side moves one index. One owner object;
// its lock is that object's.
//
// What the kernel said about the ring is checked once, in map(), and then kept here: the mapped
// header's constants are never read again. Indices are masked on every use.
// Layout: struct rxe_queue_buf and mminfo, <rdma/rdma_user_rxe.h>.
#pragma once

#include <cstddef>
#include <cstdint>

#include "providers/rxe/user_rxe.hpp"

namespace verbatim::rxe {

class Queue {
 public:
  Queue() noexcept = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() { unmap(); }

  /// Maps what a create command's reply describes. `least_element`: the bytes that an element has
  /// at the least. 0, the errno of mmap(2), or EPROTO (the description cannot be).
  [[nodiscard]] int map(int cmd_fd, const mminfo& place, std::size_t least_element) noexcept;
  void unmap() noexcept;
  /// Takes the place of this ring; it is left without one.
  void take(Queue& other) noexcept;

  [[nodiscard]] bool mapped() const noexcept { return ring_ != nullptr; }
  [[nodiscard]] std::size_t element_size() const noexcept { return std::size_t{1} << shift_; }
  /// Elements that fit at once: one slot of the ring always stays empty.
  [[nodiscard]] std::uint32_t capacity() const noexcept { return mask_; }

  [[nodiscard]] std::uint32_t mask() const noexcept { return mask_; }
  [[nodiscard]] rxe_queue_buf* ring() const noexcept { return ring_; }
  [[nodiscard]] void* element(std::uint32_t index) const noexcept {
    return ring_->data + (std::size_t{index & mask_} << shift_);
  }

 private:
  rxe_queue_buf* ring_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint32_t mask_ = 0;
  std::uint32_t shift_ = 0;
};

}  // namespace verbatim::rxe
