// SPDX-License-Identifier: BSD-2-Clause
// A ring of slots by which one process of this host tells another its messages: it lies in the
// receiver's memory, mapped by the sender (vbt_map_remote), who stores a message and then its
// header. One sender, one receiver; the big lock is held.
//
//   taken | slots of 64 bytes: header, up to 56 bytes of message | messages that are longer
//
// What the receiver has taken stands in its own memory, and the sender looks there when it has no
// room by what it knows. What stands in the slots is the sender's word and judged as such.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi_shim/core/wire.hpp"
#include "runtime/sync/prefetch.hpp"

namespace vmpi {

struct alignas(64) RingSlot {
  static constexpr std::size_t kInline = 56;

  /// Number of the message, from 1 on (32 bits), where its bytes lie in units of 64 if they are not
  /// here (16), how many they are (16).
  std::atomic<std::uint64_t> header;
  unsigned char bytes[kInline];
};
static_assert(sizeof(RingSlot) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct RingMemory {
  static constexpr std::uint32_t kSlots = 128;
  static constexpr std::uint32_t kUnit = 64;
  static constexpr std::uint32_t kBytes = 64u << 10;  ///< of messages that are not in their slots

  alignas(64) std::atomic<std::uint32_t> taken;
  std::atomic<std::uint32_t> processor;  ///< on which the receiver waits, and 1; 0: not said
  RingSlot slots[kSlots];
  unsigned char bytes[kBytes];
};
static_assert(RingMemory::kBytes / RingMemory::kUnit <= 0x10000);

/// Places for bytes that go with messages of a ring, and are free when those have been taken.
class RingPlaces {
 public:
  /// `restarts`: what is free from the beginning on is used first, since it lies in caches. Else all
  /// of it in turn: a line that the receiver has read long ago is had sooner than one just read.
  RingPlaces(std::uint32_t size, bool restarts) noexcept : size_(size), restarts_(restarts) {}

  /// False: there is none yet, of what has been taken up to message `taken`. REQUIRES: bytes <= size.
  [[nodiscard]] bool find(std::uint32_t bytes, std::uint64_t taken) noexcept;
  /// The one that was found last.
  [[nodiscard]] std::uint32_t place() const noexcept { return place_; }
  /// It goes with the message of this number.
  void use(std::uint64_t number) noexcept {
    used_[(first_ + count_++) % RingMemory::kSlots].number = number;
    head_ = used_[(first_ + count_ - 1) % RingMemory::kSlots].end;
  }

 private:
  struct Used {
    std::uint64_t number;
    std::uint32_t end;
  };

  std::uint32_t size_;
  bool restarts_;
  // [tail_, head_) are in use, counted without end.
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t place_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
  Used used_[RingMemory::kSlots];
};

/// The sender's end.
class RingWriter {
 public:
  explicit RingWriter(RingMemory& memory) noexcept : memory_(&memory) {}

  /// Where a message of so many bytes is to be written, before publish(); null: there is no room.
  [[nodiscard]] unsigned char* reserve(std::size_t bytes) noexcept {
    if (sent_ - taken_ == RingMemory::kSlots && !look()) return nullptr;
    if (bytes <= RingSlot::kInline) [[likely]]
      return slot().bytes;
    return reserve_long(bytes);
  }
  void publish(std::size_t bytes) noexcept {
    std::uint64_t place = 0;
    if (bytes > RingSlot::kInline) {
      place = places_.place() / RingMemory::kUnit;
      places_.use(sent_);
    }
    // Publishes the message; pairs with the load in RingReader::next().
    slot().header.store((sent_ + 1) << 32 | place << 16 | bytes, std::memory_order_release);
    ++sent_;
  }
  /// Asks for the line of a message that comes some messages later.
  void prefetch() const noexcept {
    constexpr std::uint32_t kAhead = 16;
    verbatim::prefetch_to_write(&memory_->slots[(sent_ + kAhead) % RingMemory::kSlots]);
  }
  /// A place elsewhere that goes with the next message, if there is one.
  [[nodiscard]] bool find(RingPlaces& places, std::uint32_t bytes) noexcept {
    return places.find(bytes, taken_) || (look(), places.find(bytes, taken_));
  }
  void use(RingPlaces& places) const noexcept { places.use(sent_); }
  /// Slots that are free; looks again before it says that they are few.
  [[nodiscard]] std::uint32_t room() noexcept {
    if (sent_ - taken_ > RingMemory::kSlots / 2) (void)look();
    return RingMemory::kSlots - static_cast<std::uint32_t>(sent_ - taken_);
  }
  /// Messages that the receiver has not taken.
  [[nodiscard]] std::uint32_t left() noexcept {
    (void)look();
    return static_cast<std::uint32_t>(sent_ - taken_);
  }
  /// On which the receiver waited last, by its own word.
  [[nodiscard]] std::uint32_t processor() const noexcept {
    return memory_->processor.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] RingSlot& slot() noexcept { return memory_->slots[sent_ % RingMemory::kSlots]; }
  /// True: there is a slot.
  bool look() noexcept;
  [[nodiscard]] unsigned char* reserve_long(std::size_t bytes) noexcept;

  RingMemory* memory_;
  // Of 64 bits: between two long messages there may be more short ones than 32 bits count.
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;  ///< as far as we have looked
  RingPlaces places_{RingMemory::kBytes, true};
};

/// The receiver's.
class RingReader {
 public:
  enum class Found : std::uint8_t { kNothing, kMessage, kNonsense };

  explicit RingReader(RingMemory& memory) noexcept : memory_(&memory) {}

  [[nodiscard]] bool has_message() const noexcept {
    return slot().header.load(std::memory_order_relaxed) >> 32 == taken_ + 1;
  }
  /// The next message, which stays where it is until take().
  [[nodiscard]] Found next(const unsigned char*& message, std::size_t& bytes) const noexcept {
    const RingSlot& at = slot();
    // Pairs with the store in RingWriter::publish().
    const std::uint64_t header = at.header.load(std::memory_order_acquire);
    if (header >> 32 != taken_ + 1) return Found::kNothing;
    bytes = header & 0xffff;
    message = at.bytes;
    if (bytes <= RingSlot::kInline) [[likely]]
      return Found::kMessage;
    const std::size_t place = (header >> 16 & 0xffff) * RingMemory::kUnit;
    if (place > RingMemory::kBytes || bytes > RingMemory::kBytes - place) return Found::kNonsense;
    message = memory_->bytes + place;
    return Found::kMessage;
  }
  void take() noexcept {
    // Gives the slot back; pairs with the load in RingWriter::look().
    memory_->taken.store(++taken_, std::memory_order_release);
  }

 private:
  [[nodiscard]] const RingSlot& slot() const noexcept {
    return memory_->slots[taken_ % RingMemory::kSlots];
  }

  RingMemory* memory_;
  std::uint32_t taken_ = 0;
};

}  // namespace vmpi
