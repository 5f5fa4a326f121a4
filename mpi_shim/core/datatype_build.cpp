// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/datatype_build.hpp"

#include <algorithm>

namespace vmpi {

void TypeBuilder::widen_data(std::int64_t from, std::int64_t to) noexcept {
  data_from_ = has_data_ ? std::min(data_from_, from) : from;
  data_to_ = has_data_ ? std::max(data_to_, to) : to;
  has_data_ = true;
}

void TypeBuilder::add(const Datatype& part, std::int64_t offset, std::int64_t stride,
                      std::int64_t count) noexcept {
  if (count <= 0 || checked_.overflowed() || !has_memory_) return;
  const std::int64_t last = checked_.sum(offset, checked_.product(count - 1, stride));
  const std::int64_t low = std::min(offset, last);
  const std::int64_t high = std::max(offset, last);
  if (part.has_bounds) {
    const std::int64_t lower = checked_.sum(low, part.lb);
    const std::int64_t upper = checked_.sum(high, checked_.sum(part.lb, part.extent));
    lower_ = type_.has_bounds ? std::min(lower_, lower) : lower;
    upper_ = type_.has_bounds ? std::max(upper_, upper) : upper;
    type_.has_bounds = true;
  }
  if (part.size == 0) return;
  widen_data(checked_.sum(low, part.true_lb),
             checked_.sum(high, checked_.sum(part.true_lb, part.true_extent)));
  type_.size = checked_.sum(type_.size, checked_.product(count, part.size));
  type_.elements = checked_.sum(type_.elements, checked_.product(count, part.elements));
  type_.alignment = std::max(type_.alignment, part.alignment);
  // The distance between any two of its bytes is a number too.
  (void)checked_.difference(data_to_, data_from_);
  if (checked_.overflowed()) return;
  add_blocks(part, offset, stride, count);
  add_signature(part, count);
}

void TypeBuilder::add_basic(std::uint32_t basic, std::int64_t offset, std::int64_t bytes,
                            std::int32_t alignment) noexcept {
  widen_data(offset, offset + bytes);
  type_.size += bytes;
  type_.elements += 1;
  type_.alignment = std::max(type_.alignment, alignment);
  push(Blocks{offset, bytes, 0, 1, nullptr, 0});
  push(Signature{basic, 1, nullptr});
}

void TypeBuilder::set_bounds(std::int64_t lb, std::int64_t extent) noexcept {
  type_.has_bounds = true;
  lower_ = lb;
  upper_ = checked_.sum(lb, extent);
}

// Every sum below lies within the bounds of the data, which `add` has checked.
void TypeBuilder::add_blocks(const Datatype& part, std::int64_t offset, std::int64_t stride,
                             std::int64_t count) noexcept {
  const auto blocks = static_cast<std::int64_t>(part.blocks.size());
  type_.depth = std::max(type_.depth, part.depth);
  if (blocks == 1) {
    Blocks one = part.blocks[0];
    one.offset += offset;
    if (count == 1) return push(one);
    if (one.count == 1) {
      const bool is_run = one.inner == nullptr && stride == one.bytes;
      one.stride = is_run ? 0 : stride;
      (is_run ? one.bytes : one.count) *= count;
      return push(one);
    }
    std::int64_t row = 0;
    if (!__builtin_mul_overflow(one.count, one.stride, &row) && stride == row) {
      one.count *= count;
      return push(one);
    }
  }
  if (count > kWrittenOut / blocks && part.depth < kDeepest) {
    type_.depth = std::max(type_.depth, part.depth + 1);
    return push(Blocks{offset, part.size, stride, count, &part, 0});
  }
  has_memory_ = has_memory_ && count <= kMostWrittenOut / blocks;
  for (std::int64_t i = 0; i < count && has_memory_; ++i) {
    for (const Blocks& block : part.blocks) {
      Blocks copy = block;
      copy.offset += offset + i * stride;
      push(copy);
    }
  }
}

void TypeBuilder::push(Blocks next) noexcept {
  if (!type_.blocks.empty()) {
    Blocks& last = type_.blocks[type_.blocks.size() - 1];
    const bool are_single = last.count == 1 && next.count == 1;
    if (are_single && last.inner == nullptr && next.inner == nullptr &&
        last.offset + last.bytes == next.offset) {
      last.bytes += next.bytes;
      return;
    }
    if (last.bytes == next.bytes && last.inner == next.inner) {
      const std::int64_t gap = next.offset - last.offset;
      if (are_single) {
        last.stride = gap;
        last.count = 2;
        return;
      }
      std::int64_t row = 0;
      const bool goes_on = last.count > 1 && (next.count == 1 || next.stride == last.stride) &&
                           !__builtin_mul_overflow(last.count, last.stride, &row) && gap == row;
      if (goes_on) {
        last.count += next.count;
        return;
      }
    }
  }
  has_memory_ = has_memory_ && type_.blocks.push_back(next);
}

void TypeBuilder::add_signature(const Datatype& part, std::int64_t count) noexcept {
  const auto entries = static_cast<std::int64_t>(part.signature.size());
  if (entries == 1) {
    const Signature& one = part.signature[0];
    return push(Signature{one.basic, one.count * count, one.inner});
  }
  if (count > kWrittenOut / entries && part.depth < kDeepest) {
    type_.depth = std::max(type_.depth, part.depth + 1);
    return push(Signature{0, count, &part});
  }
  has_memory_ = has_memory_ && count <= kMostWrittenOut / entries;
  for (std::int64_t i = 0; i < count && has_memory_; ++i)
    for (const Signature& entry : part.signature) push(entry);
}

void TypeBuilder::push(Signature next) noexcept {
  if (!type_.signature.empty()) {
    Signature& last = type_.signature[type_.signature.size() - 1];
    if (last.basic == next.basic && last.inner == next.inner) {
      last.count += next.count;
      return;
    }
  }
  has_memory_ = has_memory_ && type_.signature.push_back(next);
}

int TypeBuilder::finish() noexcept {
  if (!has_memory_) return MPI_ERR_NO_MEM;
  type_.true_lb = data_from_;
  type_.true_extent = checked_.difference(data_to_, data_from_);
  if (type_.has_bounds) {
    type_.lb = lower_;
    type_.extent = checked_.difference(upper_, lower_);
  } else {
    type_.lb = type_.true_lb;
    const std::int64_t over = type_.true_extent % type_.alignment;
    type_.extent = checked_.sum(type_.true_extent, over == 0 ? 0 : type_.alignment - over);
  }
  if (checked_.overflowed()) return MPI_ERR_VALUE_TOO_LARGE;
  std::int64_t before = 0;
  for (Blocks& block : type_.blocks) {
    block.before = before;
    before += block.bytes * block.count;
  }
  const bool is_run = type_.blocks.size() == 1 && type_.blocks[0].count == 1 &&
                      type_.blocks[0].inner == nullptr && type_.extent == type_.size;
  type_.is_contiguous = type_.size == 0 || is_run;
  return MPI_SUCCESS;
}

}  // namespace vmpi
