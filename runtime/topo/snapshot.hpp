// SPDX-License-Identifier: BSD-2-Clause
// The memory that holds a machine's bytes: one owner, writable until it is given away. Not
// thread-safe itself.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <utility>

#include "runtime/topo/machine_layout.hpp"

namespace verbatim::topo {

class Snapshot {
 public:
  Snapshot() noexcept = default;
  Snapshot(Snapshot&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Snapshot& operator=(Snapshot&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Snapshot() { std::free(bytes_); }

  /// Zeros. False when memory is out.
  [[nodiscard]] bool allocate(std::size_t size) noexcept {
    std::free(bytes_);
    bytes_ = static_cast<unsigned char*>(std::calloc(size, 1));
    size_ = bytes_ != nullptr ? size : 0;
    return bytes_ != nullptr;
  }
  [[nodiscard]] unsigned char* bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] MachineHead& head() const noexcept {
    return *reinterpret_cast<MachineHead*>(bytes_);
  }
  /// REQUIRES: `offset` leads to a table of T (MachineTables).
  template <class T>
  [[nodiscard]] T* table(std::uint64_t offset) const noexcept {
    return reinterpret_cast<T*>(bytes_ + offset);
  }

 private:
  unsigned char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace verbatim::topo
