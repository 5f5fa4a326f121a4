// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/ud/multicast.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {
namespace {

/// Our table, made at the first use; nullptr: no memory. live.mutex is held.
GroupRecord* own_groups() noexcept {
  OwnSegment& segment = Process::get().segment();
  std::uint64_t at = segment.head().groups.load(std::memory_order_relaxed);
  if (at == 0) {
    at = segment.allocate(kMaxGroups * sizeof(GroupRecord));
    if (at == 0) return nullptr;
    segment.head().groups.store(at, std::memory_order_release);
  }
  return segment.at<GroupRecord>(at);
}

GroupTable<GroupRecord> table_of(GroupRecord* groups) noexcept {
  return {groups, kMaxGroups, Process::get().segment().head().group_end};
}

struct Search {
  const ibv_gid& group;
  std::uint32_t except;
  Members& members;
  std::uint32_t found;  ///< also those that there was no room for
};

/// The record of `qpn`, if that is a UD queue pair of the peer's own that may receive. Whether the
/// peer's word for the number counts is seen when an endpoint leads to it.
const QpRecord* own_record(const Peer& peer, std::uint32_t qpn) noexcept {
  const std::uint32_t index = Process::index_in(peer, qpn);
  if (index >= peer.segment.qp_capacity()) return nullptr;
  const QpRecord& record = peer.segment.qps()[index];
  const bool is_receiver =
      load_relaxed(record.qpn) == qpn && load_relaxed(record.type) == IBV_QPT_UD &&
      load_relaxed(record.speaks_for) == 0 && record.accepts.load(std::memory_order_acquire) != 0;
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
  if (records == nullptr) return;
  std::uint32_t here = 0;
  each_member(records, end, search.group, [&](std::uint32_t qpn) noexcept {
    const QpRecord* const record = qpn == search.except ? nullptr : own_record(peer, qpn);
    if (record == nullptr) return true;
    if (search.found < search.members.capacity)
      search.members.list[search.found] = {record, qpn, peer.identity};
    ++search.found;
    return ++here < kMaxMembers;
  });
}

}  // namespace

std::uint32_t find_members(const ibv_gid& group, std::uint32_t except, Members& members) noexcept {
  // Memory is got between two looks, since a look holds the lock of the list of peers. Who makes
  // the list longer all the time does not keep us here.
  for (int tries = 0;; ++tries) {
    Search search{group, except, members, 0};
    Process::get().each_living_peer(look, &search);
    if (search.found <= members.capacity) return search.found;
    const std::uint32_t capacity = std::bit_ceil(search.found < 8 ? 8 : search.found);
    void* const list = tries < 3 ? std::realloc(members.list, capacity * sizeof(Member)) : nullptr;
    if (list == nullptr) return members.capacity;
    members.list = static_cast<Member*>(list);
    members.capacity = capacity;
  }
}

int attach_mcast(verbatim::Qp& handle, const ibv_gid& gid, std::uint16_t) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  GroupRecord* const groups = own_groups();
  if (groups == nullptr) return ENOMEM;
  switch (table_of(groups).join(static_cast<Qp&>(handle).own->qpn, gid, kMaxMembers)) {
    case Joined::kJoined:
      return 0;
    case Joined::kAlready:
      return EALREADY;
    case Joined::kGroupFull:
      log_error("attach_mcast: %u queue pairs of this process are in this group, more cannot be",
                kMaxMembers);
      return ENOMEM;
    case Joined::kTableFull:
      break;
  }
  log_error("attach_mcast: the queue pairs of this process are in %u groups, more than shm has",
            kMaxGroups);
  return ENOMEM;
}

int detach_mcast(verbatim::Qp& handle, const ibv_gid& gid, std::uint16_t) noexcept {
  const QpRecord* const own = static_cast<Qp&>(handle).own;
  LockGuard<Mutex> guard(live.mutex);
  bool is_member;
  if (Process::get().segment().holds(own)) {
    GroupRecord* const groups = own_groups();
    if (groups == nullptr) return ENOMEM;
    is_member = table_of(groups).leave(own->qpn, gid);
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
