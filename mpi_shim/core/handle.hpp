// SPDX-License-Identifier: BSD-2-Clause
// Handles are numbers of 32 bits in the pointer types of the standard ABI: below 0x1000 the
// constants of the standard, else
//
//   kind (4 bits, never 0) | generation (8 bits) | index (20 bits)
//
// so a handle that was freed, or never was one, is found out by looking, and MPI_Comm_c2f and its
// kin are casts. Objects stay where they are: their addresses are stable until release.
//
// Not thread-safe: the big lock is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace vmpi {

enum class HandleKind : std::uint32_t {
  kComm = 1,
  kGroup,
  kDatatype,
  kOp,
  kRequest,
  kErrhandler,
  kInfo,
  kMessage,
  kKeyval,
};

inline constexpr std::uint32_t kFirstOfOurs = 0x1000;
inline constexpr std::uint32_t kIndexBits = 20;
inline constexpr std::uint32_t kGenerationBits = 8;

template <class Pointer>
[[nodiscard]] std::uint32_t number_of(Pointer handle) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  return value <= 0xffffffffu ? static_cast<std::uint32_t>(value) : 0;
}

/// T has a default constructor, and a member `std::uint32_t handle`.
template <HandleKind kKind, class T>
class HandleTable {
 public:
  constexpr HandleTable() noexcept = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  /// Null: no memory, or no numbers.
  [[nodiscard]] T* make() noexcept {
    if (free_ == kNone && !grow()) return nullptr;
    const std::uint32_t index = free_;
    Slot& slot = slot_at(index);
    free_ = slot.next_free;
    T* const made = ::new (static_cast<void*>(slot.memory)) T();
    slot.is_live = true;
    made->handle = static_cast<std::uint32_t>(kKind) << (kIndexBits + kGenerationBits) |
                   std::uint32_t{slot.generation} << kIndexBits | index;
    ++live_;
    return made;
  }

  /// Null: it is none of this kind, or was released.
  [[nodiscard]] T* find(std::uint32_t handle) noexcept {
    if (handle >> (kIndexBits + kGenerationBits) != static_cast<std::uint32_t>(kKind))
      return nullptr;
    const std::uint32_t index = handle & kIndexMask;
    if (index >= slots_) return nullptr;
    Slot& slot = slot_at(index);
    const std::uint32_t generation = handle >> kIndexBits & ((1u << kGenerationBits) - 1);
    if (!slot.is_live || slot.generation != generation) return nullptr;
    return std::launder(reinterpret_cast<T*>(slot.memory));
  }

  void release(T& object) noexcept {
    const std::uint32_t index = object.handle & kIndexMask;
    Slot& slot = slot_at(index);
    object.~T();
    slot.is_live = false;
    slot.generation = static_cast<std::uint8_t>(slot.generation + 1);
    slot.next_free = free_;
    free_ = index;
    --live_;
  }

  [[nodiscard]] std::uint32_t live() const noexcept { return live_; }

  /// visit(object) for each that lives.
  template <class Visit>
  void each(Visit visit) noexcept {
    for (std::uint32_t i = 0; i < slots_; ++i)
      if (slot_at(i).is_live) visit(*std::launder(reinterpret_cast<T*>(slot_at(i).memory)));
  }

  /// Gives all memory back; what lives is destroyed.
  void clear() noexcept {
    each([this](T& object) { release(object); });
    for (std::uint32_t i = 0; i * kSlab < slots_; ++i) std::free(slabs_[i]);
    std::free(slabs_);
    slabs_ = nullptr;
    slots_ = 0;
    free_ = kNone;
  }

 private:
  static constexpr std::uint32_t kIndexMask = (1u << kIndexBits) - 1;
  static constexpr std::uint32_t kSlab = 256;
  static constexpr std::uint32_t kNone = 0xffffffffu;

  struct Slot {
    alignas(T) unsigned char memory[sizeof(T)];
    std::uint32_t next_free;
    std::uint8_t generation;
    bool is_live;
  };

  [[nodiscard]] Slot& slot_at(std::uint32_t index) noexcept {
    return slabs_[index / kSlab][index % kSlab];
  }

  [[nodiscard]] bool grow() noexcept {
    if (slots_ + kSlab > kIndexMask) return false;
    const std::uint32_t slab = slots_ / kSlab;
    auto** const more =
        static_cast<Slot**>(std::realloc(static_cast<void*>(slabs_), (slab + 1) * sizeof(Slot*)));
    if (more == nullptr) return false;
    slabs_ = more;
    constexpr std::size_t kAlignment = alignof(Slot) > 64 ? alignof(Slot) : 64;
    constexpr std::size_t kBytes =
        (kSlab * sizeof(Slot) + kAlignment - 1) / kAlignment * kAlignment;
    auto* const made = static_cast<Slot*>(std::aligned_alloc(kAlignment, kBytes));
    if (made == nullptr) return false;
    for (std::uint32_t i = 0; i < kSlab; ++i) {
      made[i].is_live = false;
      made[i].generation = 0;
      made[i].next_free = i + 1 < kSlab ? slots_ + i + 1 : kNone;
    }
    slabs_[slab] = made;
    free_ = slots_;
    slots_ += kSlab;
    return true;
  }

  Slot** slabs_ = nullptr;
  std::uint32_t slots_ = 0;
  std::uint32_t free_ = kNone;
  std::uint32_t live_ = 0;
};

}  // namespace vmpi
