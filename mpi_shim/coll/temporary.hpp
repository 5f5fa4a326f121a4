// SPDX-License-Identifier: BSD-2-Clause
// Memory that a collective needs while it runs: bytes, a buffer of typed elements, requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "mpi_shim/core/datatype.hpp"
#include "mpi_shim/core/engine.hpp"

namespace vmpi {

class Bytes {
 public:
  Bytes() noexcept = default;
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { std::free(memory_); }

  [[nodiscard]] bool make(std::int64_t bytes) noexcept {
    if (bytes < 0) return false;
    memory_ = std::malloc(bytes > 0 ? static_cast<std::size_t>(bytes) : 1);
    return memory_ != nullptr;
  }
  [[nodiscard]] unsigned char* data() noexcept { return static_cast<unsigned char*>(memory_); }

 private:
  void* memory_ = nullptr;
};

/// What elements of a type take up around the place that they are named by: with the gap at the end
/// of the last one, too, since an operation may assign whole structures.
struct ElementsSpan {
  std::int64_t low;
  std::int64_t bytes;

  /// By numbers: the origin may lie outside of the memory.
  [[nodiscard]] void* origin(void* memory) const noexcept {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory) -
                                   static_cast<std::uintptr_t>(low));
  }
};
[[nodiscard]] inline ElementsSpan span_of(const Datatype& type, std::int64_t count) noexcept {
  const std::int64_t last = count > 0 ? (count - 1) * type.extent : 0;
  const std::int64_t low = std::min(type.lb, type.true_lb) + std::min<std::int64_t>(last, 0);
  const std::int64_t end = std::max(type.lb + type.extent, type.true_lb + type.true_extent);
  return {low, end + std::max<std::int64_t>(last, 0) - low};
}

/// Room for elements of a type where its gaps stay gaps: what operations work on.
class Elements {
 public:
  [[nodiscard]] bool make(const Datatype& type, std::int64_t count) noexcept {
    const ElementsSpan span = span_of(type, count);
    if (!memory_.make(span.bytes)) return false;
    origin_ = span.origin(memory_.data());
    return true;
  }
  [[nodiscard]] void* origin() noexcept { return origin_; }

 private:
  Bytes memory_;
  void* origin_ = nullptr;
};

/// The first error of a collective. A message that was too long does not end it, since others wait
/// for what this rank says next.
struct Outcome {
  int error = MPI_SUCCESS;

  [[nodiscard]] bool is_ended_by(int result) noexcept {
    if (error == MPI_SUCCESS) error = result;
    return result != MPI_SUCCESS && result != MPI_ERR_TRUNCATE;
  }
};

/// Messages that are under way together. Its destructor has nothing to wait for: finish() is called
/// on every way out after the first begin.
class Bundle {
 public:
  Bundle() noexcept = default;
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;
  ~Bundle() { std::free(static_cast<void*>(requests_)); }

  [[nodiscard]] bool reserve(int count) noexcept;
  /// After an error nothing more is begun.
  void send(Comm& comm, int dest, int tag, const void* buffer, std::int64_t count,
            Datatype& type) noexcept;
  void receive(Comm& comm, int source, int tag, void* buffer, std::int64_t count,
               Datatype& type) noexcept;
  /// Waits for all; the first error. What has no peer any more after an error is cancelled.
  [[nodiscard]] int finish() noexcept;

 private:
  Request* prepare(Comm& comm, int peer, int tag, const void* buffer, std::int64_t count,
                   Datatype& type) noexcept;

  Request* requests_ = nullptr;
  int begun_ = 0;
  int error_ = MPI_SUCCESS;
};

}  // namespace vmpi
