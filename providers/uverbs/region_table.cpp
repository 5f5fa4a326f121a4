// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/region_table.hpp"

#include "runtime/sync/spin_lock.hpp"

namespace verbatim::uverbs {

void RegionTable::add(RegionEntry& entry, const RegionFacts& facts) noexcept {
  const LockGuard guard(mutex_);
  entry.facts = facts;
  RegionEntry*& first = bucket(facts.lkey);
  entry.next = first;
  entry.link = &first;
  if (first != nullptr) first->link = &entry.next;
  first = &entry;
}

bool RegionTable::remove(RegionEntry& entry) noexcept {
  const LockGuard guard(mutex_);
  if (entry.link == nullptr) return false;
  *entry.link = entry.next;
  if (entry.next != nullptr) entry.next->link = entry.link;
  entry.link = nullptr;
  return true;
}

bool RegionTable::find(std::uint32_t lkey, RegionFacts& out) noexcept {
  const LockGuard guard(mutex_);
  for (const RegionEntry* entry = bucket(lkey); entry != nullptr; entry = entry->next) {
    if (entry->facts.lkey != lkey) continue;
    out = entry->facts;
    return true;
  }
  return false;
}

}  // namespace verbatim::uverbs
