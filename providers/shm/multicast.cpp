// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/multicast.hpp"

#include <cerrno>
#include <cstring>

#include "providers/shm/fabric/node.hpp"
#include "providers/shm/live.hpp"
#include "providers/shm/qp.hpp"
#include "providers/shm/region_fast.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {
namespace {

struct Halves {
  std::uint64_t prefix, suffix;
};

Halves halves(const ibv_gid& gid) noexcept {
  Halves h;
  static_assert(sizeof h == sizeof gid.raw);
  std::memcpy(&h, gid.raw, sizeof h);
  return h;
}

bool is_of(const GroupRecord& record, const Halves& group) noexcept {
  return peek(record.prefix) == group.prefix && peek(record.suffix) == group.suffix;
}

/// Our table, made at the first use; nullptr: no memory. live.mutex is held.
GroupRecord* own_groups() noexcept {
  OwnSegment& segment = Node::get().segment();
  std::uint64_t at = segment.head().groups.load(std::memory_order_relaxed);
  if (at == 0) {
    at = segment.allocate(kMaxGroups * sizeof(GroupRecord));
    if (at == 0) return nullptr;
    segment.head().groups.store(at, std::memory_order_release);
  }
  return segment.at<GroupRecord>(at);
}

/// Our record of this membership, or nullptr. live.mutex is held.
GroupRecord* find(GroupRecord* groups, std::uint32_t qpn, const Halves& group) noexcept {
  const std::uint32_t end = Node::get().segment().head().group_end.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < end; ++i)
    if (groups[i].qpn.load(std::memory_order_relaxed) == qpn && is_of(groups[i], group))
      return &groups[i];
  return nullptr;
}

struct Search {
  Halves group;
  std::uint32_t except;
  std::uint32_t* out;
  std::uint32_t count;
};

void look(const Peer& peer, void* with) {
  Search& search = *static_cast<Search*>(with);
  const SegmentHeader& head = peer.segment.live_head();
  const std::uint64_t at = head.groups.load(std::memory_order_acquire);
  if (at == 0) return;
  std::uint32_t end = head.group_end.load(std::memory_order_acquire);
  if (end > kMaxGroups) end = kMaxGroups;
  const auto* records = peer.segment.at<GroupRecord>(at, end * sizeof(GroupRecord));
  for (std::uint32_t i = 0; records != nullptr && i < end; ++i) {
    const std::uint32_t qpn = records[i].qpn.load(std::memory_order_acquire);
    if (qpn != 0 && qpn != search.except && is_of(records[i], search.group) &&
        search.count < kMaxMembers)
      search.out[search.count++] = qpn;
  }
}

}  // namespace

std::uint32_t members_of(const ibv_gid& group, std::uint32_t except,
                         std::uint32_t (&out)[kMaxMembers]) noexcept {
  Search search{halves(group), except, out, 0};
  Node::get().each_living_peer(look, &search);
  return search.count;
}

int attach_mcast(verbatim::Qp& handle, const ibv_gid& gid, std::uint16_t) noexcept {
  const std::uint32_t qpn = static_cast<Qp&>(handle).own->qpn;
  const Halves group = halves(gid);
  LockGuard<Mutex> guard(live.mutex);
  GroupRecord* const groups = own_groups();
  if (groups == nullptr) return ENOMEM;
  if (find(groups, qpn, group) != nullptr) return EALREADY;
  std::atomic<std::uint32_t>& end = Node::get().segment().head().group_end;
  std::uint32_t i = 0;
  while (i < end.load(std::memory_order_relaxed) &&
         groups[i].qpn.load(std::memory_order_relaxed) != 0)
    ++i;
  if (i == kMaxGroups) {
    log_error("attach_mcast: the queue pairs of this process are in %u groups, more than shm has",
              kMaxGroups);
    return ENOMEM;
  }
  poke(groups[i].prefix, group.prefix);
  poke(groups[i].suffix, group.suffix);
  // Publishes the membership; pairs with the loads in look().
  groups[i].qpn.store(qpn, std::memory_order_release);
  if (i == end.load(std::memory_order_relaxed)) end.store(i + 1, std::memory_order_release);
  return 0;
}

int detach_mcast(verbatim::Qp& handle, const ibv_gid& gid, std::uint16_t) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  GroupRecord* const groups = own_groups();
  if (groups == nullptr) return ENOMEM;
  GroupRecord* const record = find(groups, static_cast<Qp&>(handle).own->qpn, halves(gid));
  if (record == nullptr) {
    log_error("detach_mcast: QP 0x%06x is not in this group", handle.plain.qp_num);
    return EINVAL;
  }
  record->qpn.store(0, std::memory_order_release);
  return 0;
}

}  // namespace verbatim::shm
