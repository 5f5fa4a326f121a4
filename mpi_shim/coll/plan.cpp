// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace vmpi {
namespace {

/// What elements of a type take up around the place that they are named by: with the gap at the end
/// of the last one, too, since an operation may assign whole structures.
struct ElementsSpan {
  std::int64_t low;
  std::int64_t bytes;
};
[[nodiscard]] ElementsSpan span_of(const Datatype& type, std::int64_t count) noexcept {
  const std::int64_t last = count > 0 ? (count - 1) * type.extent : 0;
  const std::int64_t low = std::min(type.lb, type.true_lb) + std::min<std::int64_t>(last, 0);
  const std::int64_t end = std::max(type.lb + type.extent, type.true_lb + type.true_extent);
  return {low, end + std::max<std::int64_t>(last, 0) - low};
}

}  // namespace

Plan::~Plan() {
  for (void* const memory : memory_) std::free(memory);
  if (steps_ != reinterpret_cast<Step*>(steps_here_)) std::free(static_cast<void*>(steps_));
}

bool Plan::grow() noexcept {
  if (!is_good_) return false;
  const std::size_t capacity = 4 * capacity_;
  void* const grown = std::malloc(capacity * sizeof(Step));
  is_good_ = grown != nullptr;
  if (!is_good_) return false;
  std::memcpy(grown, static_cast<const void*>(steps_), count_ * sizeof(Step));
  if (steps_ != reinterpret_cast<Step*>(steps_here_)) std::free(static_cast<void*>(steps_));
  steps_ = static_cast<Step*>(grown);
  capacity_ = capacity;
  return true;
}

unsigned char* Plan::bytes(std::int64_t count) noexcept {
  if (count < 0) is_good_ = false;
  if (!is_good_) return nullptr;
  temporary_ += count;
  constexpr auto kAlignment = static_cast<std::int64_t>(alignof(std::max_align_t));
  if (count <= kBytesHere - taken_here_) {
    unsigned char* const here = bytes_here_ + taken_here_;
    taken_here_ += (count + kAlignment - 1) / kAlignment * kAlignment;
    return here;
  }
  void* const memory = std::malloc(static_cast<std::size_t>(count));
  if (memory != nullptr && memory_.push_back(memory)) return static_cast<unsigned char*>(memory);
  std::free(memory);
  is_good_ = false;
  return nullptr;
}

void* Plan::elements(const Datatype& type, std::int64_t count) noexcept {
  const ElementsSpan span = span_of(type, count);
  void* const memory = bytes(span.bytes);
  if (memory == nullptr) return nullptr;
  // By numbers: the origin may lie outside of the memory.
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory) -
                                 static_cast<std::uintptr_t>(span.low));
}

std::size_t Plan::most_messages() const noexcept {
  std::size_t most = 0;
  std::size_t now = 0;
  for (const Step& step : *this) {
    if (step.kind == Step::Kind::kFence) now = 0;
    if (step.kind == Step::Kind::kSend || step.kind == Step::Kind::kReceive) ++now;
    most = std::max(most, now);
  }
  return most;
}

AsBytes::AsBytes(Plan& plan, const Typed& whole) noexcept
    : whole_(whole), is_copy_(!whole.type->is_contiguous) {
  at_ = is_copy_ ? plan.bytes(whole.bytes()) : first_byte(*whole.type, whole.buffer);
}

void AsBytes::take(Plan& plan) const noexcept {
  if (is_copy_) plan.copy(whole_, part(0, whole_.bytes()));
}

void AsBytes::give(Plan& plan) const noexcept {
  if (is_copy_) plan.copy(part(0, whole_.bytes()), whole_);
}

}  // namespace vmpi
