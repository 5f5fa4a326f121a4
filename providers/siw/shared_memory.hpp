// SPDX-License-Identifier: BSD-2-Clause
// Memory that the siw driver shares with its user: it names each queue by a key, which is the place
// to map on the device's descriptor. One owner.
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbatim::siw {

/// No queue of the driver's is longer: its completion queues have 100 times 32768 elements, rounded
/// up to a power of two.
inline constexpr std::uint32_t kMostElements = 1u << 22;

class SharedMemory {
 public:
  SharedMemory() noexcept = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { unmap(); }

  /// `count` elements of `element` bytes, and `more` bytes behind them. 0, the errno of mmap(2), or
  /// EPROTO: what the driver says of the queue cannot be.
  [[nodiscard]] int map(int cmd_fd, std::uint64_t key, std::uint32_t count, std::size_t element,
                        std::size_t more = 0) noexcept;
  void unmap() noexcept;
  [[nodiscard]] void* data() const noexcept { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace verbatim::siw
