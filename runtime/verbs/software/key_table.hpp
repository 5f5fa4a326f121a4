// SPDX-License-Identifier: BSD-2-Clause
// The owner's side of keys: given with a meaning, changed, and taken back with a promise. When
// change() or retire() returns 0, nobody touches memory by the old meaning any more. Any thread.
//
// Where the records lie, and who has to be waited for, is the provider's:
//
//   Storage   kMost                   more indices than it ever has
//             Record, Meaning         see key_record.hpp
//             records(), capacity()   the table as it is now
//             back(record)            makes the record's memory usable: 0 or errno
//             write_rest(record, m)   members that only this storage has
//             counted(keys)           how many are in use (called under a spin lock)
//   await     bool(): nobody who looked a key up before this call still uses it; false: not within
//             the bound of patience. It follows a full fence behind the end of the meaning, so that
//             whoever marked itself as a user before either has seen the end or is waited for.
#pragma once

#include <cerrno>

#include "runtime/base/log.hpp"
#include "runtime/verbs/software/key_numbers.hpp"
#include "runtime/verbs/software/key_record.hpp"

namespace verbatim {

/// Records of this process alone.
template <std::uint32_t kCapacity>
struct PrivateKeys {
  static constexpr std::uint32_t kMost = kCapacity;
  using Record = KeyRecord;
  using Meaning = KeyMeaning;

  [[nodiscard]] KeyRecord* records() noexcept { return table; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return kCapacity; }
  int back(const KeyRecord&) noexcept { return 0; }
  void write_rest(KeyRecord&, const KeyMeaning&) noexcept {}
  void counted(std::uint32_t) noexcept {}

  KeyRecord table[kCapacity];
};

template <class Storage>
class KeyTable {
 public:
  using Record = typename Storage::Record;
  using Meaning = typename Storage::Meaning;

  /// A key that means nothing yet: 0, ENOMEM (none is free) with a line in the log, or what back()
  /// answers.
  int reserve(std::uint32_t& key) noexcept {
    const std::uint32_t taken = numbers_.take(storage_.capacity(), counted());
    if (taken == 0) {
      log_error("all %u memory region keys are in use: deregister some", storage_.capacity());
      return ENOMEM;
    }
    if (const int error = storage_.back(record_of(taken)); error != 0) {
      numbers_.give_back(taken, counted());
      return error;
    }
    key = taken;
    return 0;
  }

  /// A key that means this (its serial is the table's to give): 0, or an errno as of reserve().
  int publish(const Meaning& meaning, std::uint32_t& key) noexcept {
    if (const int error = reserve(key); error != 0) return error;
    show(key, meaning);
    return 0;
  }

  /// A key of an index that was reserved, whatever its last byte, means this from here on. REQUIRES:
  /// the index means nothing.
  void show(std::uint32_t key, const Meaning& meaning) noexcept {
    write(record_of(key), meaning, key, numbers_.next_serial());
  }
  /// ... or nothing. A full fence: whoever marked itself as a user before it has seen it gone, or
  /// can be waited for.
  void hide(std::uint32_t key) noexcept {
    record_of(key).serial.exchange(0, std::memory_order_seq_cst);
  }
  /// The end of all keys of the index, of which `key` was the last. REQUIRES: hidden, and nobody
  /// uses it.
  void release(std::uint32_t key) noexcept { numbers_.give_back(key, counted()); }

  /// Gives `key` another meaning. EINVAL: it means nothing. EBUSY when `await` gave up: it means what it meant before.
  template <class Await>
  int change(std::uint32_t key, const Meaning& meaning, Await await) noexcept {
    Record& record = record_of(key);
    const std::uint64_t before = record.serial.exchange(0, std::memory_order_seq_cst);
    if (before == 0) return EINVAL;
    if (!await()) {
      record.serial.store(before, std::memory_order_release);
      return EBUSY;
    }
    write(record, meaning, key, numbers_.next_serial());
    return 0;
  }

  /// Ends `key`. EBUSY when `await` gave up: the key stays dead, and the call may be made again.
  template <class Await>
  int retire(std::uint32_t key, Await await) noexcept {
    hide(key);
    if (!await()) return EBUSY;
    release(key);
    return 0;
  }

  [[nodiscard]] KeyView<Record> view() noexcept {
    return {storage_.records(), storage_.capacity()};
  }
  /// Forgets all (the storage has gone).
  void reset() noexcept { numbers_.reset(); }
  /// In a forked child; see KeyNumbers.
  void remake_lock() noexcept { numbers_.remake_lock(); }

 private:
  Record& record_of(std::uint32_t key) noexcept { return storage_.records()[key_index(key)]; }
  auto counted() noexcept {
    return [this](std::uint32_t keys) noexcept { storage_.counted(keys); };
  }
  /// Pairs with find_key().
  void write(Record& record, const Meaning& meaning, std::uint32_t key,
             std::uint64_t serial) noexcept {
    store_relaxed(record.iova, meaning.iova);
    store_relaxed(record.length, meaning.length);
    store_relaxed(record.address, meaning.address);
    store_relaxed(record.access, meaning.access);
    store_relaxed(record.pd, meaning.pd);
    store_relaxed(record.key, key);
    storage_.write_rest(record, meaning);
    record.serial.store(serial, std::memory_order_release);
  }

  [[no_unique_address]] Storage storage_;
  KeyNumbers<Storage::kMost> numbers_;
};

}  // namespace verbatim
