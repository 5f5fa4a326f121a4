// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/ud/multicast.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "providers/shm/fabric/node.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp.hpp"
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
  Members& members;
  std::uint32_t found;  ///< also those that there was no room for
};

/// The record of `qpn`, if that is a UD queue pair of the peer's own that may receive. Whether the
/// peer's word for the number counts is seen when a lane leads to it.
const QpRecord* own_record(const Peer& peer, std::uint32_t qpn) noexcept {
  const std::uint32_t index = Node::index_in(peer, qpn);
  if (index >= peer.segment.qp_capacity()) return nullptr;
  const QpRecord& record = peer.segment.qps()[index];
  const bool is_receiver = peek(record.qpn) == qpn && peek(record.type) == IBV_QPT_UD &&
                           peek(record.speaks_for) == 0 &&
                           record.accepts.load(std::memory_order_acquire) != 0;
  return is_receiver ? &record : nullptr;
}

void look(const Peer& peer, void* with) {
  Search& search = *static_cast<Search*>(with);
  const SegmentHeader& head = peer.segment.live_head();
  const std::uint64_t at = head.groups.load(std::memory_order_acquire);
  if (at == 0) return;
  std::uint32_t end = head.group_end.load(std::memory_order_acquire);
  if (end > kMaxGroups) end = kMaxGroups;
  const auto* records = peer.segment.at<GroupRecord>(at, end * sizeof(GroupRecord));
  std::uint32_t here = 0;
  for (std::uint32_t i = 0; records != nullptr && i < end && here < kMaxMembers; ++i) {
    const std::uint32_t qpn = records[i].qpn.load(std::memory_order_acquire);
    if (qpn == 0 || qpn == search.except || !is_of(records[i], search.group)) continue;
    const QpRecord* const record = own_record(peer, qpn);
    if (record == nullptr) continue;
    ++here;
    if (search.found < search.members.capacity)
      search.members.list[search.found] = {record, qpn, peer.identity};
    ++search.found;
  }
}

}  // namespace

std::uint32_t find_members(const ibv_gid& group, std::uint32_t except, Members& members) noexcept {
  // Memory is got between two looks, since a look holds the lock of the list of peers. Who makes
  // the list longer all the time does not keep us here.
  for (int tries = 0;; ++tries) {
    Search search{halves(group), except, members, 0};
    Node::get().each_living_peer(look, &search);
    if (search.found <= members.capacity) return search.found;
    const std::uint32_t capacity = std::bit_ceil(search.found < 8 ? 8 : search.found);
    void* const list = tries < 3 ? std::realloc(members.list, capacity * sizeof(Member)) : nullptr;
    if (list == nullptr) return members.capacity;
    members.list = static_cast<Member*>(list);
    members.capacity = capacity;
  }
}

int attach_mcast(verbatim::Qp& handle, const ibv_gid& gid, std::uint16_t) noexcept {
  const std::uint32_t qpn = static_cast<Qp&>(handle).own->qpn;
  const Halves group = halves(gid);
  LockGuard<Mutex> guard(live.mutex);
  GroupRecord* const groups = own_groups();
  if (groups == nullptr) return ENOMEM;
  if (find(groups, qpn, group) != nullptr) return EALREADY;
  std::atomic<std::uint32_t>& end = Node::get().segment().head().group_end;
  const std::uint32_t used = end.load(std::memory_order_relaxed);
  std::uint32_t i = used;
  std::uint32_t members = 0;
  for (std::uint32_t k = used; k-- != 0;) {
    if (groups[k].qpn.load(std::memory_order_relaxed) == 0)
      i = k;
    else if (is_of(groups[k], group))
      ++members;
  }
  if (members >= kMaxMembers) {
    log_error("attach_mcast: %u queue pairs of this process are in this group, more cannot be",
              members);
    return ENOMEM;
  }
  if (i == kMaxGroups) {
    log_error("attach_mcast: the queue pairs of this process are in %u groups, more than shm has",
              kMaxGroups);
    return ENOMEM;
  }
  poke(groups[i].prefix, group.prefix);
  poke(groups[i].suffix, group.suffix);
  // Publishes the membership; pairs with the loads in look().
  groups[i].qpn.store(qpn, std::memory_order_release);
  if (i == used) end.store(i + 1, std::memory_order_release);
  return 0;
}

int detach_mcast(verbatim::Qp& handle, const ibv_gid& gid, std::uint16_t) noexcept {
  const QpRecord* const own = static_cast<Qp&>(handle).own;
  LockGuard<Mutex> guard(live.mutex);
  bool is_member;
  if (Node::get().segment().holds(own)) {
    GroupRecord* const groups = own_groups();
    if (groups == nullptr) return ENOMEM;
    GroupRecord* const record = find(groups, own->qpn, halves(gid));
    is_member = record != nullptr;
    if (is_member) record->qpn.store(0, std::memory_order_release);
  } else {
    // Of a forked child's parent, and the child has begun a segment of its own: what is left of
    // the membership is the count that keeps the queue pair.
    is_member = handle.uses.load(std::memory_order_relaxed) != 0;
  }
  if (is_member) return 0;
  log_refusal("detach_mcast: QP 0x%06x is not in this group", handle.plain.qp_num);
  return EINVAL;
}

}  // namespace verbatim::shm
