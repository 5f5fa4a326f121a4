// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/device/map_remote.hpp"

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/transfer/reach.hpp"
#include "providers/shm/windows/authorize.hpp"

namespace verbatim::shm {
namespace {

/// Why a range that may be reached is not mapped: its arena is on its way, or never will be.
int is_coming(const Qp& qp, std::uint32_t rkey) noexcept {
  Region region;
  if (!regions_of_peer(qp).find(rkey, region)) return EACCES;
  const bool has_arena = !qp.link.self && region.arena != 0 && region.arena <= kMaxArenas;
  return has_arena && !Process::get().arena_refused(*qp.link.peer, region.arena - 1) ? EAGAIN
                                                                                     : EOPNOTSUPP;
}

}  // namespace

int map_remote(verbatim::Qp& handle, std::uint32_t rkey, std::uint64_t address, std::size_t length,
               unsigned access, void** mapped) noexcept {
  auto& qp = static_cast<Qp&>(handle);
  const std::uint32_t mode = qp.mode.load(std::memory_order_relaxed);
  if (mode > IBV_QPS_RTS) return EINVAL;
  if (mode != IBV_QPS_RTS) return EAGAIN;
  const SendLock lock(qp);
  if (const Wait wait = attach(qp); wait != Wait::kNothing)
    return wait == Wait::kMemory ? ENOMEM : EAGAIN;
  if ((load_relaxed(qp.link.remote->access) & access) != access) return EACCES;
  unsigned char* found = nullptr;
  std::uint64_t there = 0;
  switch (way_to(qp, rkey, address, length, access, found, there)) {
    case Reach::kDone:
      *mapped = found;
      return 0;
    case Reach::kDenied:
      return EACCES;
    case Reach::kKernel:
      return EOPNOTSUPP;
    default:
      return is_coming(qp, rkey);
  }
}

}  // namespace verbatim::shm
