// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/object_table.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/sync/spin_lock.hpp"

namespace verbatim::uverbs {
namespace {

constexpr std::uint32_t kFirstRoom = 64;
constexpr std::uint32_t kMostObjects = 1u << 26;
constexpr std::uint32_t kBits = 64;

std::uint64_t bit_of(std::uint32_t handle) noexcept { return std::uint64_t{1} << (handle % kBits); }

}  // namespace

ObjectTable::~ObjectTable() {
  std::free(slots_);
  std::free(claimed_);
}

ObjectTable::Slot* ObjectTable::slot_locked(std::uint64_t number) noexcept {
  const auto position = static_cast<std::uint32_t>(number);
  if (position == 0 || position > slot_count_) return nullptr;
  Slot& slot = slots_[position - 1];
  if (slot.kind == Kind::kNone || slot.generation != number >> 32) return nullptr;
  return &slot;
}

/// The kernel counts its numbers up, and other processes take some of them.
std::uint32_t& ObjectTable::first_named_locked(std::uint32_t name) noexcept {
  return slots_[(name * 0x9e3779b1u) >> (32 - std::countr_zero(slot_count_))].first_named;
}

void ObjectTable::link_name_locked(std::uint32_t position) noexcept {
  Slot& slot = slots_[position - 1];
  if (slot.name == 0) return;
  std::uint32_t& first = first_named_locked(slot.name);
  slot.next_named = first;
  first = position;
}

void ObjectTable::unlink_name_locked(std::uint32_t position) noexcept {
  Slot& slot = slots_[position - 1];
  if (slot.name == 0) return;
  std::uint32_t* link = &first_named_locked(slot.name);
  while (*link != position) link = &slots_[*link - 1].next_named;
  *link = slot.next_named;
  slot.name = 0;
}

bool ObjectTable::grow_locked() noexcept {
  const std::uint32_t room = slot_count_ == 0 ? kFirstRoom : slot_count_ * 2;
  if (room > kMostObjects) return false;
  auto* const grown = static_cast<Slot*>(std::realloc(slots_, room * sizeof(Slot)));
  if (grown == nullptr) return false;
  slots_ = grown;
  for (std::uint32_t i = room; i > slot_count_; --i) {
    slots_[i - 1] = {nullptr, 1, first_free_, {}, 0, 0, 0, Kind::kNone};
    first_free_ = i;
  }
  // Names fall on other places now.
  for (std::uint32_t i = 0; i < slot_count_; ++i) slots_[i].first_named = 0;
  const std::uint32_t before = slot_count_;
  slot_count_ = room;
  for (std::uint32_t i = 1; i <= before; ++i) link_name_locked(i);
  return true;
}

std::uint64_t ObjectTable::add(Kind kind, void* object) noexcept {
  const LockGuard guard(mutex_);
  if (first_free_ == 0 && !grow_locked()) return 0;
  const std::uint32_t position = first_free_;
  Slot& slot = slots_[position - 1];
  first_free_ = slot.next_free;
  slot.object = object;
  slot.delivered = {};
  slot.kind = kind;
  return std::uint64_t{slot.generation} << 32 | position;
}

void* ObjectTable::find(Kind kind, std::uint64_t number) noexcept {
  const LockGuard guard(mutex_);
  const Slot* const slot = slot_locked(number);
  return slot != nullptr && slot->kind == kind ? slot->object : nullptr;
}

void* ObjectTable::deliver(Kind kind, std::uint64_t number,
                           std::uint32_t Delivered::*kind_of_event) noexcept {
  const LockGuard guard(mutex_);
  Slot* const slot = slot_locked(number);
  if (slot == nullptr || slot->kind != kind) return nullptr;
  ++(slot->delivered.*kind_of_event);
  return slot->object;
}

void ObjectTable::name(std::uint64_t number, std::uint32_t name) noexcept {
  const LockGuard guard(mutex_);
  Slot* const slot = slot_locked(number);
  if (slot == nullptr) return;
  const auto position = static_cast<std::uint32_t>(number);
  unlink_name_locked(position);
  slot->name = name;
  link_name_locked(position);
}

void ObjectTable::find_named(Kind kind, std::uint32_t name,
                             void (*visit)(void* object, void* argument), void* argument) noexcept {
  const LockGuard guard(mutex_);
  if (name == 0 || slot_count_ == 0) return;
  for (std::uint32_t i = first_named_locked(name); i != 0; i = slots_[i - 1].next_named) {
    const Slot& slot = slots_[i - 1];
    if (slot.kind == kind && slot.name == name) return visit(slot.object, argument);
  }
}

void ObjectTable::each_named(Kind kind, void (*visit)(void* object, void* argument),
                             void* argument) noexcept {
  const LockGuard guard(mutex_);
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    const Slot& slot = slots_[i];
    if (slot.kind == kind && slot.name != 0) visit(slot.object, argument);
  }
}

Delivered ObjectTable::remove(std::uint64_t number) noexcept {
  const LockGuard guard(mutex_);
  Slot* const slot = slot_locked(number);
  if (slot == nullptr) return {};
  unlink_name_locked(static_cast<std::uint32_t>(number));
  ++slot->generation;
  slot->kind = Kind::kNone;
  slot->object = nullptr;
  slot->next_free = first_free_;
  first_free_ = static_cast<std::uint32_t>(number);
  return slot->delivered;
}

int ObjectTable::claim(std::uint32_t handle) noexcept {
  if (handle >= kMostObjects) return EPROTO;
  const LockGuard guard(mutex_);
  const std::size_t word = handle / kBits;
  if (word >= claimed_words_) {
    const std::size_t room = (word + 1) * 2;
    auto* const grown =
        static_cast<std::uint64_t*>(std::realloc(claimed_, room * sizeof(std::uint64_t)));
    if (grown == nullptr) return ENOMEM;
    std::memset(grown + claimed_words_, 0, (room - claimed_words_) * sizeof(std::uint64_t));
    claimed_ = grown;
    claimed_words_ = room;
  }
  if ((claimed_[word] & bit_of(handle)) != 0) return EPROTO;
  claimed_[word] |= bit_of(handle);
  return 0;
}

void ObjectTable::release(std::uint32_t handle) noexcept {
  const LockGuard guard(mutex_);
  const std::size_t word = handle / kBits;
  if (word < claimed_words_) claimed_[word] &= ~bit_of(handle);
}

}  // namespace verbatim::uverbs
