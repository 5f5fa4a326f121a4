// SPDX-License-Identifier: BSD-2-Clause
// What an open device has in the kernel. Two questions are answered from it: whose is an event, and
// is the handle in a reply one that cannot be. Both numbers come from outside, so neither is used
// as an address. Any thread (one mutex); control code and events only.
//
// Invariant: a number that add() gave is found until remove(), and never again after it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/sync/mutex.hpp"

namespace verbatim::uverbs {

enum class Kind : std::uint8_t { kNone, kPd, kMr, kMw, kCq, kQp, kSrq, kAh, kCmId };

/// How many events about an object have left for the application, each of which it acknowledges.
struct Delivered {
  std::uint32_t completion = 0;
  std::uint32_t asynchronous = 0;
};

class ObjectTable {
 public:
  ObjectTable() noexcept = default;
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;
  ~ObjectTable();

  /// The number by which the kernel will name the object in events (its user_handle); 0: no memory.
  [[nodiscard]] std::uint64_t add(Kind kind, void* object) noexcept;
  /// The object, or null: there is none of this kind by that number.
  [[nodiscard]] void* find(Kind kind, std::uint64_t number) noexcept;
  /// Finds the object of an event that the application is given now, and counts the event in
  /// `kind_of_event`.
  [[nodiscard]] void* deliver(Kind kind, std::uint64_t number,
                              std::uint32_t Delivered::*kind_of_event) noexcept;
  /// Gives it a name by which find_named() knows it; 0 takes that away. Named is what is whole.
  void name(std::uint64_t number, std::uint32_t name) noexcept;
  /// Has `visit` look at the object of that name, which does not go meanwhile: under the table's
  /// lock, so `visit` must not come back here.
  void find_named(Kind kind, std::uint32_t name, void (*visit)(void* object, void* argument),
                  void* argument) noexcept;
  template <class Visit>
  void find_named(Kind kind, std::uint32_t name, Visit visit) noexcept {
    find_named(
        kind, name, [](void* object, void* argument) { (*static_cast<Visit*>(argument))(object); },
        &visit);
  }
  /// Has `visit` look at every object of a kind that has a name, under the table's lock.
  void each_named(Kind kind, void (*visit)(void* object, void* argument), void* argument) noexcept;
  template <class Visit>
  void each_named(Kind kind, Visit visit) noexcept {
    each_named(
        kind, [](void* object, void* argument) { (*static_cast<Visit*>(argument))(object); },
        &visit);
  }
  /// What was delivered for it, of which there will be no more.
  Delivered remove(std::uint64_t number) noexcept;

  /// Notes a handle that the kernel gave: 0, ENOMEM, or EPROTO (it is that of a living object: one
  /// number space serves all kinds; or it is out of all proportion).
  [[nodiscard]] int claim(std::uint32_t handle) noexcept;
  void release(std::uint32_t handle) noexcept;

 private:
  struct Slot {
    void* object;
    std::uint32_t generation;
    std::uint32_t next_free;
    Delivered delivered;
    std::uint32_t name;
    std::uint32_t first_named;  ///< of the names that fall on this place; position + 1, 0: none
    std::uint32_t next_named;   ///< of those that fall on the same place as this one's
    Kind kind;
  };
  [[nodiscard]] Slot* slot_locked(std::uint64_t number) noexcept;
  [[nodiscard]] std::uint32_t& first_named_locked(std::uint32_t name) noexcept;
  void link_name_locked(std::uint32_t position) noexcept;
  void unlink_name_locked(std::uint32_t position) noexcept;
  [[nodiscard]] bool grow_locked() noexcept;

  Mutex mutex_;
  Slot* slots_ = nullptr;
  std::uint32_t slot_count_ = 0;
  std::uint32_t first_free_ = 0;  ///< position + 1; 0: none
  std::uint64_t* claimed_ = nullptr;
  std::size_t claimed_words_ = 0;
};

}  // namespace verbatim::uverbs
