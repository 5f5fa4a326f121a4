// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rxe/queue.hpp"

#include <sys/mman.h>

#include <bit>
#include <cerrno>

namespace verbatim::rxe {

int Queue::map(int cmd_fd, const mminfo& place, std::size_t least_element) noexcept {
  constexpr std::size_t kHeader = sizeof(rxe_queue_buf);
  constexpr std::uint32_t kLargestShift = 20;
  if (place.size < kHeader) return EPROTO;
  void* const memory = ::mmap(nullptr, place.size, PROT_READ | PROT_WRITE, MAP_SHARED, cmd_fd,
                              static_cast<off_t>(place.offset));
  if (memory == MAP_FAILED) return errno;
  auto* const ring = static_cast<rxe_queue_buf*>(memory);
  const std::uint32_t shift = ring->log2_elem_size;
  const std::uint32_t mask = ring->index_mask;
  const bool sound = shift <= kLargestShift && (std::size_t{1} << shift) >= least_element &&
                     mask != UINT32_MAX && std::has_single_bit(mask + 1) &&
                     (std::uint64_t{mask} + 1) << shift <= place.size - kHeader;
  if (!sound) {
    ::munmap(memory, place.size);
    return EPROTO;
  }
  unmap();
  ring_ = ring;
  bytes_ = place.size;
  mask_ = mask;
  shift_ = shift;
  return 0;
}

void Queue::unmap() noexcept {
  if (ring_ != nullptr) ::munmap(ring_, bytes_);
  ring_ = nullptr;
}

void Queue::take(Queue& other) noexcept {
  unmap();
  ring_ = other.ring_;
  bytes_ = other.bytes_;
  mask_ = other.mask_;
  shift_ = other.shift_;
  other.ring_ = nullptr;
}

}  // namespace verbatim::rxe
