// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/lane.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "providers/shm/fabric/node.hpp"
#include "providers/shm/live.hpp"
#include "providers/shm/receive.hpp"
#include "providers/shm/region_fast.hpp"
#include "providers/shm/send_fast.hpp"
#include "providers/shm/send_wait.hpp"
#include "providers/shm/xrc_queue.hpp"
#include "runtime/base/log.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// Knocks come no faster than this: the destination's service thread may wait for a core.
constexpr std::uint64_t kKnockNs = 1'000'000;
/// So many lanes may lead to one queue pair.
constexpr std::uint32_t kMaxArriving = 16384;

/// Guards this process's list of lanes, whose head is in the segment's header.
constinit SpinLock leaving_lock;
Qp* first_leaving = nullptr;

std::uint32_t link_to(const Qp* lane) noexcept { return lane == nullptr ? 0 : lane->index + 1; }

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
  const bool is_it = is_xrc_lane(lane) ? peek(record.type) == QpRecord::kXrcQueue &&
                                             shares_domain(record, *lane.lane.face->remote)
                                       : peek(record.type) == IBV_QPT_UD;
  return is_it ? &record : nullptr;
}

/// Its queue pair, or its process, is gone for good; or it never led anywhere, nor is about to.
bool is_lost(const Qp& lane) noexcept {
  if (is_xrc_lane(lane)) return false;  // what is gone there fails a request: see xrc_send.cpp
  if (lane.remote != nullptr)
    return is_dead(lane) ||
           lane.remote->accepts.load(std::memory_order_acquire) != lane.remote_session;
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
  for (std::uint32_t steps = 0; link != 0 && steps < kMaxArriving; ++steps) {
    if (link > peer.segment.qp_capacity()) return 0;
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

/// An arriving lane that nothing knows any more. live.mutex is held.
void give_back(Qp& lane) noexcept {
  unwatch_locked(lane);
  if (lane.lane.endpoint_owner != nullptr) Node::get().release_peer(*lane.lane.endpoint_owner);
  if (lane.service_bounce != 0) Node::get().segment().release(lane.service_bounce, kBounceBytes);
  park(lane);
}

/// Which of a peer's queue pairs have been admitted to one of ours, by their places there: a peer
/// may have as many lanes as it has numbers, and each must not cost a look at all of them.
class Admitted {
 public:
  /// True: it was not admitted before, and counts as such from here on.
  bool add(const Qp& to, const Peer& peer, std::uint32_t index) noexcept {
    if (!is_filled_) fill(to, peer);
    const std::uint64_t bit = std::uint64_t{1} << (index % 64);
    if ((places_[index / 64] & bit) != 0) return false;
    places_[index / 64] |= bit;
    return true;
  }

 private:
  void fill(const Qp& to, const Peer& peer) noexcept {
    is_filled_ = true;
    std::memset(places_, 0, sizeof places_);
    for (const Qp* lane = to.book->arriving; lane != nullptr; lane = lane->lane.next) {
      const std::uint32_t index = Node::index_in(peer, peek(lane->own->dest_qpn));
      if (index < kMaxQps) places_[index / 64] |= std::uint64_t{1} << (index % 64);
    }
  }

  std::uint64_t places_[kMaxQps / 64];
  bool is_filled_ = false;
};

/// Makes our half of the lane whose sender is `qpn`, if it may come.
void admit(Qp& to, std::uint32_t qpn, const Peer& from, const QpRecord& sender) noexcept {
  XrcTarget target;
  if (to.xrc == XrcRole::kQueue && !find_target(to, from, sender, target)) return;
  Qp* lane = make_lane(to, to.srq);
  if (lane == nullptr) {
    static constinit LogOnce once;
    if (once.first())
      log_warn("shm: no memory or numbers for those who send to 0x%06x: they are not heard",
               to.own->qpn);
    if (target.owner != nullptr) Node::get().release_peer(*target.owner);
    return;
  }
  if (target.record != nullptr) {
    lane->lane.endpoint = target.record;
    lane->lane.endpoint_owner = target.owner;
    lane->plain.qp_num = target.qpn;
    // The target's rights are asked for with each request: see xrc_queue.hpp.
    poke(lane->own->access, ~0u);
    watch_locked(*lane);
  }
  poke(lane->own->dest_qpn, qpn);
  lane->session = next_session();
  if (add_member(*to.recv_cq, *lane) != 0) {
    give_back(*lane);
    return;
  }
  enlist_locked(*lane);
  LockGuard<BiasedLock> guard(to.recv_cq->lock);
  lane->lane.next = to.book->arriving;
  poke(lane->own->lane, link_to(lane->lane.next));
  to.book->arriving = lane;
  if (to.mode.load(std::memory_order_acquire) == IBV_QPS_ERR) return;
  lane->mode.store(IBV_QPS_RTR, std::memory_order_release);
  (void)meet_peer(*lane);
  lane->own->accepts.store(lane->session, std::memory_order_release);
  // Publishes the lane; pairs with the load in find_other_half().
  __atomic_store_n(&to.own->lane, link_to(lane), __ATOMIC_RELEASE);
}

/// The lanes of one process that knock at `to`.
void admit_from(Qp& to, const Peer& peer) noexcept {
  std::uint32_t link = peer.segment.live_head().lane.load(std::memory_order_acquire);
  std::uint32_t admitted = 0;
  Admitted before;
  for (std::uint32_t steps = 0; link != 0 && steps < kMaxQps; ++steps) {
    if (link > peer.segment.qp_capacity()) return;
    const QpRecord& record = peer.segment.qps()[link - 1];
    const std::uint32_t qpn = peek(record.qpn);
    if (peek(record.dest_qpn) == to.own->qpn && peek(record.speaks_for) != 0 &&
        Node::index_in(peer, qpn) == link - 1 && before.add(to, peer, link - 1) &&
        ++admitted < kMaxArriving)
      admit(to, qpn, peer, record);
    link = __atomic_load_n(&record.lane, __ATOMIC_ACQUIRE);
  }
}

/// Takes an arriving lane out of everything that knows it. live.mutex is held.
void end_arriving(Qp& lane) noexcept {
  lane.own->accepts.store(0, std::memory_order_seq_cst);
  delist_locked(lane);
  remove_member(*lane.recv_cq, lane);
  {
    LockGuard<BiasedLock> guard(lane.recv_cq->lock);
    detach_receiver(lane);
  }
  poke(lane.own->dest_qpn, 0);
  give_back(lane);
}

/// Its sender is gone, and has left nothing.
bool is_over(Qp& lane) noexcept {
  LockGuard<BiasedLock> guard(lane.recv_cq->lock);
  const Peer* peer = meet_peer(lane);
  if (peer == nullptr || attach_receiver(lane)) {
    // What a reliable one has brought is taken, if only when there is a receive for it.
    if (peer == nullptr || (is_xrc_lane(lane) ? holds_message(lane) : has_message(lane)))
      return false;
    return !peer->alive.load(std::memory_order_acquire) ||
           lane.rx_remote->tx_session.load(std::memory_order_acquire) != lane.rx_session;
  }
  // It has knocked and not sent yet, or the number has a new owner.
  const std::uint32_t qpn = peek(lane.own->dest_qpn);
  const std::uint32_t index = Node::index_in(*peer, qpn);
  if (!peer->alive.load(std::memory_order_acquire) || index >= peer->segment.qp_capacity())
    return true;
  const QpRecord& record = peer->segment.qps()[index];
  const std::uint32_t leads_to = peek(record.dest_qpn);
  return peek(record.qpn) != qpn || (leads_to != lane.own->qpn && leads_to != lane.plain.qp_num);
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
  if (lane.remote != nullptr)
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
      if (attach(lane) == Wait::kNothing) {
        lane.lane.endpoint = endpoint;
        wait = Wait::kNothing;
      }
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
  if (!lane.progress.streaming) return;
  Slot& slot = *lane.progress.slot;
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

void admit_lanes(Qp& to) noexcept {
  const std::uint32_t mode = to.mode.load(std::memory_order_acquire);
  if (mode < IBV_QPS_RTR || mode == IBV_QPS_ERR) return;
  reap_lanes(to);  // who knocks may have the number of one who is gone
  for (const Peer* peer = Node::get().first_peer(); peer != nullptr; peer = peer->next)
    if (peer->alive.load(std::memory_order_acquire)) admit_from(to, *peer);
}

void close_arriving(Qp& to) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  __atomic_store_n(&to.own->lane, 0u, __ATOMIC_RELEASE);
  while (Qp* lane = to.book->arriving) {
    {
      LockGuard<BiasedLock> lock(to.recv_cq->lock);
      to.book->arriving = lane->lane.next;
    }
    end_arriving(*lane);
  }
}

void stop_accepting(Qp& to) noexcept {
  LockGuard<BiasedLock> guard(to.recv_cq->lock);
  for (Qp* lane = to.book->arriving; lane != nullptr; lane = lane->lane.next)
    lane->own->accepts.store(0, std::memory_order_seq_cst);
}

void reap_lanes(Qp& to) noexcept {
  Qp** link = &to.book->arriving;
  Qp* before = nullptr;
  while (Qp* lane = *link) {
    if (!is_over(*lane)) {
      before = lane;
      link = &lane->lane.next;
      continue;
    }
    {
      LockGuard<BiasedLock> guard(to.recv_cq->lock);
      *link = lane->lane.next;
    }
    std::uint32_t& shown = before == nullptr ? to.own->lane : before->own->lane;
    __atomic_store_n(&shown, link_to(*link), __ATOMIC_RELEASE);
    end_arriving(*lane);
  }
}

}  // namespace verbatim::shm
