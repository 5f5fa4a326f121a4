// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/region.hpp"

#include <cerrno>

#include "providers/shm/context.hpp"
#include "providers/shm/live.hpp"
#include "providers/shm/region_table.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/arena.hpp"

namespace verbatim::shm {

namespace {

constexpr unsigned kRemote =
    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

}  // namespace

int alloc_pd(verbatim::Context&, verbatim::Pd** out) noexcept {
  auto* pd = make_nothrow<verbatim::Pd>();
  if (pd == nullptr) return ENOMEM;
  LockGuard<Mutex> guard(live.mutex);
  pd->plain.handle = ++live.pds;
  *out = pd;
  return 0;
}

int dealloc_pd(verbatim::Pd& pd) noexcept {
  destroy_nothrow(&pd);
  return 0;
}

int reg_mr(verbatim::Pd& pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access,
           verbatim::Mr** out) noexcept {
  Mr* mr = make_nothrow<Mr>();
  if (mr == nullptr) return ENOMEM;
  Region region{};
  region.iova = iova;
  region.length = length;
  region.address = reinterpret_cast<std::uint64_t>(addr);
  region.access = access;
  region.pd = pd.plain.handle;
  ArenaView view;
  mr->in_arena = length != 0 && arena_hold(addr, length, view);
  if (mr->in_arena && view.number != kNoArenaNumber && (access & kRemote) != 0) {
    arena_share(view.number);
    region.arena = view.number + 1;
    region.arena_offset = view.offset;
  }
  std::uint32_t key;
  if (const int error = region_table.publish(region, key); error != 0) {
    if (mr->in_arena) arena_drop(addr, length);
    destroy_nothrow(mr);
    return error;
  }
  mr->plain.lkey = mr->plain.rkey = key;
  mr->plain.handle = key >> 8;
  *out = mr;
  return 0;
}

int dereg_mr(verbatim::Mr& handle) noexcept {
  Mr& mr = static_cast<Mr&>(handle);
  const bool peers_may_touch = (mr.access & (kRemote | IBV_ACCESS_LOCAL_WRITE)) != 0;
  if (const int error = region_table.retire(mr.plain.lkey, peers_may_touch); error != 0)
    return error;
  if (mr.in_arena) arena_drop(mr.plain.addr, mr.plain.length);
  destroy_nothrow(&mr);
  return 0;
}

int create_ah(verbatim::Pd&, const ibv_ah_attr& attr, verbatim::Ah** out) noexcept {
  auto* ah = make_nothrow<verbatim::Ah>();
  if (ah == nullptr) return ENOMEM;
  ah->attr = attr;
  *out = ah;
  return 0;
}

int destroy_ah(verbatim::Ah& ah) noexcept {
  destroy_nothrow(&ah);
  return 0;
}

}  // namespace verbatim::shm
