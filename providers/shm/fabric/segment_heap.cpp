// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/segment_heap.hpp"

#include <bit>
#include <cstdlib>

#include "runtime/base/cache_line.hpp"

namespace verbatim::shm {
namespace {

// From a page up, each piece starts two lines further into its page than the one before: rings
// whose slot n were all at the same page offset would fight for the same sets of the first level
// cache.
constexpr std::uint64_t kColouredFrom = 4096;
constexpr std::uint64_t kColour = 2 * kCacheLine;

}  // namespace

// 1, 2, 3, 4, 6, 8, 12, 16 ... lines: class 2k-1 is 2^k lines, class 2k is 3 * 2^(k-1).
std::uint32_t SegmentHeap::class_of(std::size_t bytes) noexcept {
  const std::uint64_t lines = (std::uint64_t{bytes} + kCacheLine - 1) / kCacheLine;
  if (lines <= 1) return 0;
  const auto k = static_cast<std::uint32_t>(std::bit_width(lines) - 1);
  const std::uint64_t power = std::uint64_t{1} << k;
  if (lines == power) return 2 * k - 1;
  return lines <= power + power / 2 ? 2 * k : 2 * k + 1;
}

std::uint64_t SegmentHeap::class_bytes(std::uint32_t number) noexcept {
  if (number == 0) return kCacheLine;
  if (number % 2 == 1) return kCacheLine << ((number + 1) / 2);
  return (3 * kCacheLine) << (number / 2 - 1);
}

std::uint64_t SegmentHeap::piece_bytes(std::size_t bytes) noexcept {
  return class_bytes(class_of(bytes));
}

void SegmentHeap::open(std::uint64_t first, std::uint64_t end) noexcept {
  next_ = first;
  end_ = end;
}

void SegmentHeap::close() noexcept {
  for (FreeList& list : lists_) {
    std::free(list.lines);
    list = {};
  }
  next_ = end_ = owed_ = 0;
}

std::uint64_t SegmentHeap::take(std::size_t bytes, bool& recycled) noexcept {
  if (bytes > end_) return 0;
  const std::uint32_t number = class_of(bytes);
  if (number >= kClasses) return 0;
  FreeList& list = lists_[number];
  recycled = list.count > list.owed;
  if (recycled) return std::uint64_t{list.lines[--list.count]} * kCacheLine;

  const std::uint64_t size = class_bytes(number);
  if (size > end_ - next_ - owed_) return 0;
  if (list.carved == list.capacity) {
    const std::uint32_t capacity = list.capacity == 0 ? 16 : list.capacity * 2;
    void* const grown = std::realloc(list.lines, capacity * sizeof(std::uint32_t));
    if (grown == nullptr) return 0;
    list.lines = static_cast<std::uint32_t*>(grown);
    list.capacity = capacity;
  }
  const std::uint64_t offset = next_;
  const std::uint64_t colour = size >= kColouredFrom ? kColour : 0;
  next_ = end_ - offset - size - owed_ > colour ? offset + size + colour : offset + size;
  ++list.carved;
  return offset;
}

bool SegmentHeap::promise(std::size_t bytes) noexcept {
  if (bytes > end_) return false;
  const std::uint32_t number = class_of(bytes);
  if (number >= kClasses) return false;
  FreeList& list = lists_[number];
  if (list.owed >= list.count) {
    const std::uint64_t fresh = class_bytes(number) + kColour;
    if (fresh > end_ - next_ - owed_) return false;
    owed_ += fresh;
  }
  ++list.owed;
  return true;
}

void SegmentHeap::take_back(std::size_t bytes) noexcept {
  const std::uint32_t number = class_of(bytes);
  if (lists_[number].owed-- > lists_[number].count) owed_ -= class_bytes(number) + kColour;
}

void SegmentHeap::give(std::uint64_t offset, std::size_t bytes) noexcept {
  const std::uint32_t number = class_of(bytes);
  FreeList& list = lists_[number];
  if (list.owed > list.count) owed_ -= class_bytes(number) + kColour;
  list.lines[list.count++] = static_cast<std::uint32_t>(offset / kCacheLine);
}

}  // namespace verbatim::shm
