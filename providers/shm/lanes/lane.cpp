// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/lanes/lane.hpp"

#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "providers/shm/fabric/node.hpp"
#include "providers/shm/lanes/lane_share.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/queues/qp_life.hpp"
#include "providers/shm/queues/qp_make.hpp"
#include "providers/shm/transfer/send_fast.hpp"
#include "providers/shm/transfer/send_wait.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// Knocks come no faster than this: the destination's service thread may wait for a core.
constexpr std::uint64_t kKnockNs = 1'000'000;

/// A lane that leaves is listed until it goes.
constinit const QpKind kLeavingLane{.retire = forget_leaving};

/// Guards this process's list of lanes, whose head is in the segment's header.
constinit SpinLock leaving_lock;
Qp* first_leaving = nullptr;

std::uint32_t place_of(const LaneBook& d, std::uint32_t qpn) noexcept {
  return (qpn * 0x9e3779b1u) & (d.lane_capacity - 1);
}

void insert(LaneBook& d, Qp& lane) noexcept {
  std::uint32_t i = place_of(d, lane.lane.target);
  while (d.lanes[i] != nullptr) i = (i + 1) & (d.lane_capacity - 1);
  d.lanes[i] = &lane;
}

Peer* hold_living(std::uint32_t qpn) noexcept {
  Peer* peer = Node::get().hold_peer(qpn);
  if (peer == nullptr || peer->alive.load(std::memory_order_acquire)) return peer;
  Node::get().release_peer(*peer);
  return nullptr;
}

/// The queue pair, or XRC queue, that `lane` is to lead to; nullptr: that process has none of this
/// number that receives what comes over a lane of its kind.
const QpRecord* find_destination(const Peer& peer, const Qp& lane) noexcept {
  const std::uint32_t index = Node::index_in(peer, lane.lane.target);
  if (index >= peer.segment.qp_capacity()) return nullptr;
  const QpRecord& record = peer.segment.qps()[index];
  if (peek(record.qpn) != lane.lane.target || peek(record.speaks_for) != 0 ||
      record.accepts.load(std::memory_order_acquire) == 0)
    return nullptr;
  const Qp& face = *lane.lane.face;
  return face.kind->is_destination(face, record) ? &record : nullptr;
}

/// Its queue pair, or its process, is gone for good; or it never led anywhere, nor is about to.
bool is_lost(const Qp& lane) noexcept {
  if (is_xrc_lane(lane)) return false;  // what is gone there fails a request: see xrc_send.cpp
  if (lane.link.remote != nullptr)
    return is_dead(lane) ||
           lane.link.remote->accepts.load(std::memory_order_acquire) != lane.link.remote_session;
  Peer* const peer = hold_living(lane.lane.target);
  if (peer == nullptr) return !Node::get().is_meeting(lane.lane.target);
  const bool leads_there = find_destination(*peer, lane) != nullptr;
  Node::get().release_peer(*peer);
  return !leads_there;
}

/// Nobody who has the send lock finds it any more.
void list_abandoned(LaneBook& d, Qp& lane) noexcept {
  if (d.last == &lane) d.last = nullptr;
  Qp* first = live.abandoned.load(std::memory_order_relaxed);
  do {
    lane.next_live = first;
    // Pairs with park_abandoned().
  } while (!live.abandoned.compare_exchange_weak(first, &lane, std::memory_order_release,
                                                 std::memory_order_relaxed));
}

/// Abandons those that are lost, and `gone`, and makes a table with room for the others and as many
/// again. False: no memory; then some of the others may be opened anew. The send lock is held.
bool sort_out(LaneBook& d, const Qp* gone = nullptr) noexcept {
  Qp** const old = d.lanes;
  const std::uint32_t old_capacity = d.lane_capacity;
  for (std::uint32_t i = 0; i < old_capacity; ++i) {
    if (old[i] == nullptr || (old[i] != gone && !is_lost(*old[i]))) continue;
    list_abandoned(d, *std::exchange(old[i], nullptr));
    --d.lane_count;
  }
  const std::uint32_t capacity = std::bit_ceil(4 * (d.lane_count + 2));
  auto** lanes = static_cast<Qp**>(std::calloc(capacity, sizeof(Qp*)));
  if (lanes == nullptr) return false;
  d.lanes = lanes;
  d.lane_capacity = capacity;
  for (std::uint32_t i = 0; i < old_capacity; ++i)
    if (old[i] != nullptr) insert(d, *old[i]);
  std::free(old);
  return true;
}

/// Room for one more. Who sends to ever new ones has no more lanes than some four times those that
/// lead somewhere.
bool grow(LaneBook& d) noexcept { return 2 * d.lane_count < d.lane_capacity || sort_out(d); }

/// The lane of ours that the destination has made for `lane`, if it has: its number, or 0.
std::uint32_t find_other_half(const Peer& peer, const QpRecord& endpoint, const Qp& lane) noexcept {
  std::uint32_t link = __atomic_load_n(&endpoint.lane, __ATOMIC_ACQUIRE);
  const std::uint32_t capacity = peer.segment.qp_capacity();
  for (std::uint32_t steps = 0; link != 0 && steps < most_lanes(capacity); ++steps) {
    if (link > capacity) return 0;
    const QpRecord& record = peer.segment.qps()[link - 1];
    if (peek(record.dest_qpn) == lane.own->qpn && peek(record.speaks_for) == lane.lane.target &&
        record.accepts.load(std::memory_order_acquire) != 0)
      return peek(record.qpn);
    link = __atomic_load_n(&record.lane, __ATOMIC_ACQUIRE);
  }
  return 0;
}

void knock(Peer& peer, Qp& lane) noexcept {
  const std::uint64_t now = now_ns();
  if (lane.lane.asked_ns != 0 && now - lane.lane.asked_ns < kKnockNs) return;
  lane.lane.asked_ns = now;
  peer.segment.doorbells().service.ring(Node::index_in(peer, lane.lane.target));
  peer.wake_service();
}

}  // namespace

void list_leaving(Qp& lane) noexcept {
  LockGuard<SpinLock> guard(leaving_lock);
  lane.lane.next = first_leaving;
  poke(lane.own->lane, link_to(first_leaving));
  first_leaving = &lane;
  Node::get().segment().head().lane.store(link_to(&lane), std::memory_order_release);
}

Qp* find_lane(Qp& from, std::uint32_t qpn) noexcept {
  LaneBook& d = *from.book;
  if (d.last != nullptr && d.last->lane.target == qpn) return d.last;
  if (d.lane_capacity == 0) return nullptr;
  for (std::uint32_t i = place_of(d, qpn); d.lanes[i] != nullptr;
       i = (i + 1) & (d.lane_capacity - 1))
    if (d.lanes[i]->lane.target == qpn) return d.last = d.lanes[i];
  return nullptr;
}

Qp* open_lane(Qp& from, std::uint32_t qpn) noexcept {
  LaneBook& d = *from.book;
  if (!grow(d)) return nullptr;
  Qp* lane = make_lane(from, nullptr);
  if (lane == nullptr) return nullptr;
  lane->kind = &kLeavingLane;
  lane->lane.target = qpn;
  lane->mode.store(IBV_QPS_RTS, std::memory_order_relaxed);
  // Until its other half is known it leads to the queue pair itself: that is the knock.
  poke(lane->own->dest_qpn, qpn);
  list_leaving(*lane);
  insert(d, *lane);
  ++d.lane_count;
  return d.last = lane;
}

Wait reach_destination(Qp& lane) noexcept {
  if (lane.link.remote != nullptr)
    return attach(lane) == Wait::kNothing ? Wait::kNothing : Wait::kReceive;
  Node& node = Node::get();
  const std::uint32_t target = lane.lane.target;
  Peer* peer = hold_living(target);
  if (peer == nullptr) {
    node.want_peer(target);
    if (node.is_meeting(target)) return Wait::kPeer;
    peer = hold_living(target);  // it may have been met just now
    if (peer == nullptr) return Wait::kReceive;
  }
  Wait wait = Wait::kReceive;
  if (const QpRecord* endpoint = find_destination(*peer, lane); endpoint != nullptr) {
    wait = Wait::kPeer;
    if (const std::uint32_t qpn = find_other_half(*peer, *endpoint, lane); qpn != 0) {
      poke(lane.own->dest_qpn, qpn);
      wait = attach(lane);
      if (wait == Wait::kNothing) lane.lane.endpoint = endpoint;
    } else {
      knock(*peer, lane);
    }
  }
  node.release_peer(*peer);
  return wait;
}

void abandon_lane(Qp& from, Qp& lane) noexcept { (void)sort_out(*from.book, &lane); }

void abandon_lost_lanes(Qp& from) noexcept {
  // Not waited for: whoever has it may want the mutex that is held here. What stays is sorted out
  // when room for one more is made.
  bool taken;
  const SendLock lock(from, taken, SendLock::As::kGuest);
  if (taken && from.book->lane_count != 0) (void)sort_out(*from.book);
}

/// What is left of a message in the middle of which its sender was reset never comes.
static void abort_stream(Qp& lane) noexcept {
  if (!lane.sq.progress.streaming) return;
  Slot& slot = *lane.sq.progress.slot;
  const std::uint32_t lap = header::lap(slot.header.load(std::memory_order_relaxed));
  slot.header.store(header::make(lap, SlotKind::kFault, header::kSolicited, 0, 0),
                    std::memory_order_release);
  ring_peer(lane, true);
}

void close_leaving(Qp& from) noexcept {
  LaneBook& d = *from.book;
  Qp** lanes;
  std::uint32_t capacity;
  {
    SendLock lock(from);
    lanes = d.lanes;
    capacity = d.lane_capacity;
    d.lanes = nullptr;
    d.lane_capacity = d.lane_count = 0;
    d.last = nullptr;
  }
  LockGuard<Mutex> guard(live.mutex);
  for (std::uint32_t i = 0; i < capacity; ++i)
    if (lanes[i] != nullptr) {
      abort_stream(*lanes[i]);
      park(*lanes[i]);
    }
  std::free(lanes);
}

void forget_leaving(Qp& lane) noexcept {
  LockGuard<SpinLock> guard(leaving_lock);
  Qp* before = nullptr;
  Qp* at = first_leaving;
  for (; at != nullptr && at != &lane; at = at->lane.next) before = at;
  if (at == nullptr) return;
  const std::uint32_t next = link_to(lane.lane.next);
  if (before == nullptr) {
    first_leaving = lane.lane.next;
    Node::get().segment().head().lane.store(next, std::memory_order_release);
  } else {
    before->lane.next = lane.lane.next;
    __atomic_store_n(&before->own->lane, next, __ATOMIC_RELEASE);
  }
}

void forget_all_leaving() noexcept {
  LockGuard<SpinLock> guard(leaving_lock);
  first_leaving = nullptr;
}

void forget_lanes_of_parent() noexcept {
  ::new (&leaving_lock) SpinLock;
  first_leaving = nullptr;
}

}  // namespace verbatim::shm
