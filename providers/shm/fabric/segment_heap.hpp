// SPDX-License-Identifier: BSD-2-Clause
//
// Which pieces of the segment's heap are free. Only offsets live here, in this process's private
// memory: nothing in the shared segment is ever followed to find free memory, and peers cannot see
// the free lists.
//
// Sizes go up in classes of 64 B x 2^k and x 1.5; a freed piece serves its class again and is never
// split, joined or returned. Fresh pieces come from the heap's untouched end. Both ways are O(1).
// Not thread-safe: OwnSegment holds its mutex around every call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbatim::shm {

class SegmentHeap {
 public:
  /// Pieces come from [first, end). REQUIRES: both are multiples of 64, first != 0.
  void open(std::uint64_t first, std::uint64_t end) noexcept;
  /// Frees the lists.
  void close() noexcept;

  /// Offset of a piece of piece_bytes(bytes), 0 when there is none. `recycled`: it has been used
  /// before.
  [[nodiscard]] std::uint64_t take(std::size_t bytes, bool& recycled) noexcept;
  /// Promises that there will be a piece for whoever takes the promise back just before take(); no
  /// other take() uses it up. No piece is chosen. False: there is none left.
  [[nodiscard]] bool promise(std::size_t bytes) noexcept;
  /// REQUIRES: promise(bytes) was true and has not been taken back.
  void take_back(std::size_t bytes) noexcept;
  /// REQUIRES: take(bytes) gave `offset`. Cannot fail: the list's room was made when the piece was
  /// carved.
  void give(std::uint64_t offset, std::size_t bytes) noexcept;

  /// What `bytes` is rounded up to.
  [[nodiscard]] static std::uint64_t piece_bytes(std::size_t bytes) noexcept;

 private:
  static constexpr std::uint32_t kClasses = 46;  // up to 512 MiB

  struct FreeList {
    std::uint32_t* lines;  ///< offsets in units of a line
    std::uint32_t count;
    std::uint32_t capacity;
    std::uint32_t carved;  ///< pieces of this class that exist
    std::uint32_t owed;    ///< promises of such a piece
  };
  static std::uint32_t class_of(std::size_t bytes) noexcept;
  static std::uint64_t class_bytes(std::uint32_t number) noexcept;

  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t owed_ = 0;  ///< bytes from next_ on, for promises beyond the pieces that are free
  FreeList lists_[kClasses] = {};
};

}  // namespace verbatim::shm
