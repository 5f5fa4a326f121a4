// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/memory/region.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cinttypes>

#include "providers/shm/memory/context.hpp"
#include "providers/shm/memory/region_table.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/address_space.hpp"
#include "runtime/memory/arena.hpp"

namespace verbatim::shm {

namespace {

constexpr unsigned kRemote =
    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

void* memory_of(const Region& region) noexcept { return reinterpret_cast<void*>(region.address); }

/// Notes where the range of mr.shown lies, if peers may be shown it.
void find_arena(Mr& mr, const Context& context) noexcept {
  Region& region = mr.shown;
  ArenaView view;
  mr.in_arena = region.length != 0 && arena_hold(memory_of(region), region.length, view);
  const bool mappable = mr.in_arena && view.number != kNoArenaNumber && context.shows_arenas;
  mr.arena = mappable ? view.number + 1 : 0;
  mr.arena_offset = mappable ? view.offset : 0;
}

/// Shows it to peers that have rights to it.
void show_arena(Mr& mr) noexcept {
  Region& region = mr.shown;
  region.arena = 0;
  region.arena_offset = 0;
  if (mr.arena == 0 || (region.access & kRemote) == 0) return;
  arena_share(mr.arena - 1);
  region.arena = mr.arena;
  region.arena_offset = mr.arena_offset;
}

/// Refuses memory that a device could not pin: 0 or EFAULT. What an arena holds cannot go, and what
/// is on demand may come later.
int check_memory(const char* verb, const Mr& mr) noexcept {
  const Region& region = mr.shown;
  if (mr.in_arena || (region.access & IBV_ACCESS_ON_DEMAND) != 0) return 0;
  const MissingByte missing = find_missing_to_register(
      region.address, region.length, (region.access & IBV_ACCESS_LOCAL_WRITE) != 0);
  if (missing.lack == Lack::kNothing) [[likely]]
    return 0;
  log_error("%s: cannot register [%#" PRIx64 ", %#" PRIx64 ") (Bad address): %#" PRIx64 " %s", verb,
            region.address, region.address + region.length, missing.at, words_of(missing.lack));
  return EFAULT;
}

bool peers_may_touch(const Mr& mr) noexcept {
  return (mr.shown.access & (kRemote | IBV_ACCESS_LOCAL_WRITE)) != 0;
}

}  // namespace

int check_rights(unsigned access) noexcept {
  if ((access & IBV_ACCESS_FLUSH_PERSISTENT) == 0) return 0;
  log_refusal(
      "reg_mr: IBV_ACCESS_FLUSH_PERSISTENT: shm cannot promise that memory outlives a loss of "
      "power; IBV_ACCESS_FLUSH_GLOBAL is what it has");
  return EOPNOTSUPP;
}

bool may_lack_pages(const Mr& mr) noexcept {
  return (mr.shown.access & IBV_ACCESS_ON_DEMAND) != 0 && !mr.in_arena && mr.mapping == nullptr;
}

namespace {

/// What the record says of mr.shown. Memory that may not be there is nobody's plain region, so it
/// costs plain ones nothing, and no instruction of ours touches it.
Region record_of(const Mr& mr) noexcept {
  Region record = mr.shown;
  record.access &= ~unsigned{IBV_ACCESS_ON_DEMAND};
  if (may_lack_pages(mr)) {
    record.access |= IBV_ACCESS_ON_DEMAND;
    record.pd |= holder::kOnDemand;
  }
  return record;
}

}  // namespace

int publish_mr(Mr& mr) noexcept {
  std::uint32_t key;
  if (const int error = region_table.publish(record_of(mr), key); error != 0) {
    if (mr.in_arena) arena_drop(memory_of(mr.shown), mr.shown.length);
    return error;
  }
  mr.plain.lkey = mr.plain.rkey = key;
  mr.plain.handle = key >> 8;
  return 0;
}

int reg_mr(verbatim::Pd& pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access,
           verbatim::Mr** out) noexcept {
  if (const int error = check_rights(access); error != 0) return error;
  Mr* mr = make_nothrow<Mr>();
  if (mr == nullptr) return ENOMEM;
  mr->shown.iova = iova;
  mr->shown.length = length;
  mr->shown.address = reinterpret_cast<std::uint64_t>(addr);
  mr->shown.access = access;
  mr->shown.pd = pd.plain.handle;
  find_arena(*mr, Context::of(pd.plain.context));
  show_arena(*mr);
  int error = check_memory("reg_mr", *mr);
  if (error == 0) error = publish_mr(*mr);
  if (error != 0) {
    destroy_nothrow(mr);
    return error;
  }
  *out = mr;
  return 0;
}

int reg_fixed_mr(verbatim::Pd& pd, void* memory, std::size_t length, unsigned access,
                 verbatim::Mr** out) noexcept {
  if (const int error = reg_mr(pd, memory, length, 0, access, out); error != 0) return error;
  static_cast<Mr*>(*out)->may_change = false;
  return 0;
}

int rereg_mr(verbatim::Mr& handle, int flags, verbatim::Pd* pd, void* addr, std::size_t length,
             unsigned access) noexcept {
  Mr& mr = static_cast<Mr&>(handle);
  if (!mr.may_change) {
    log_refusal("rereg_mr: only regions that ibv_reg_mr and its kin made can be changed");
    return EINVAL;
  }
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  if (changes_access)
    if (const int error = check_rights(access); error != 0) return error;
  Mr next;
  next.shown = mr.shown;
  next.arena = mr.arena;
  next.arena_offset = mr.arena_offset;
  if (changes_access) next.shown.access = access;
  if (pd != nullptr) next.shown.pd = pd->plain.handle;
  if (moves) {
    next.shown.address = reinterpret_cast<std::uint64_t>(addr);
    next.shown.length = length;
    next.shown.iova = (next.shown.access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : next.shown.address;
    find_arena(next, Context::of(mr.plain.context));
  } else {
    next.in_arena = mr.in_arena;
  }
  if (moves || changes_access)
    if (const int error = check_memory("rereg_mr", next); error != 0) return error;
  show_arena(next);
  if (const int error = region_table.change(mr.plain.lkey, record_of(next), peers_may_touch(mr));
      error != 0) {
    if (moves && next.in_arena) arena_drop(memory_of(next.shown), next.shown.length);
    return error;
  }
  if (moves) {
    if (mr.in_arena) arena_drop(memory_of(mr.shown), mr.shown.length);
    mr.in_arena = next.in_arena;
  }
  mr.shown = next.shown;
  mr.arena = next.arena;
  mr.arena_offset = next.arena_offset;
  return 0;
}

int dereg_mr(verbatim::Mr& handle) noexcept {
  Mr& mr = static_cast<Mr&>(handle);
  if (const int error = region_table.retire(mr.plain.lkey, peers_may_touch(mr)); error != 0)
    return error;
  if (mr.in_arena) arena_drop(memory_of(mr.shown), mr.shown.length);
  if (mr.mapping != nullptr) ::munmap(mr.mapping, mr.mapping_bytes);
  destroy_nothrow(&mr);
  return 0;
}

int alloc_null_mr(verbatim::Pd& pd, verbatim::Mr** out) noexcept {
  Mr* mr = make_nothrow<Mr>();
  if (mr == nullptr) return ENOMEM;
  mr->may_change = false;
  mr->shown.length = ~std::uint64_t{0};
  mr->shown.access = IBV_ACCESS_LOCAL_WRITE;
  mr->shown.pd = holder::kNullMemory | pd.plain.handle;
  if (const int error = publish_mr(*mr); error != 0) {
    destroy_nothrow(mr);
    return error;
  }
  mr->plain.rkey = 0;  // of a null region only the lkey is one
  *out = mr;
  return 0;
}

}  // namespace verbatim::shm
