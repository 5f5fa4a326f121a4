// SPDX-License-Identifier: BSD-2-Clause
//
// The receiving halves of lanes: who is let in, and until when.
#include <cstring>
#include <utility>

#include "providers/shm/fabric/node.hpp"
#include "providers/shm/lanes/lane.hpp"
#include "providers/shm/lanes/lane_share.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/arrived.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/cq_members.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/queues/qp_life.hpp"
#include "providers/shm/queues/qp_make.hpp"
#include "providers/shm/transfer/request_service.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {
namespace {

/// An arriving lane that nothing knows any more. live.mutex is held.
void give_back(Qp& lane) noexcept {
  unwatch_locked(lane);
  if (lane.lane.endpoint_owner != nullptr) Node::get().release_peer(*lane.lane.endpoint_owner);
  give_answers_back(lane);
  park(lane);
}

/// One process may say hello as several, but not as us.
bool are_same_process(const Peer& one, const Peer& other) noexcept {
  return &one == &other || (one.pid != 0 && one.pid == other.pid && !one.self && !other.self);
}

/// The lanes that processes have, as it concerns one of them that asks for more.
struct Shares {
  explicit Shares(const Peer& peer) noexcept {
    for (const Peer* one = Node::get().first_peer(); one != nullptr; one = one->next) {
      of_all += one->lanes;
      if (are_same_process(*one, peer)) of_process += one->lanes;
    }
  }
  bool leave_another() const noexcept {
    return may_have_another_lane(of_process, of_all, Node::get().free_qpn_count() + of_all);
  }

  std::uint32_t of_process = 0, of_all = 0;
};

/// Who has been admitted to one of ours, of one process that knocks there: a look at all lanes,
/// made once, when the first one asks.
class Admitted {
 public:
  Admitted(const Qp& to, const Peer& peer) noexcept : to_(to), peer_(peer) {}

  /// Whether the queue pair at this place of the process has been. (By places: it may have as many
  /// lanes as it has numbers, and each must not cost a look at all of them.)
  bool has(std::uint32_t index) noexcept {
    if (!is_filled_) fill();
    return (places_[index / 64] >> (index % 64) & 1) != 0;
  }
  void add(std::uint32_t index) noexcept {
    places_[index / 64] |= std::uint64_t{1} << (index % 64);
  }

 private:
  void fill() noexcept {
    is_filled_ = true;
    std::memset(places_, 0, sizeof places_);
    for (const Qp* lane = to_.book->arriving; lane != nullptr; lane = lane->lane.next) {
      // Whatever somebody else says of his numbers.
      if (lane->met.load(std::memory_order_relaxed) != &peer_) continue;
      const std::uint32_t index = Node::index_in(peer_, peek(lane->own->dest_qpn));
      if (index < kMaxQps) add(index);
    }
  }

  const Qp& to_;
  const Peer& peer_;
  bool is_filled_ = false;
  std::uint64_t places_[kMaxQps / 64];
};

/// So many are let in under one hold of live.mutex, which others want too: a lane takes some 25 us
/// to make, and a process may knock with thousands. The next turn looks at all of them anew.
constexpr std::uint32_t kAdmittedAtOnce = 64;
/// Some were left for the next turn. Service thread only.
constinit bool some_are_left = false;

/// Makes our half of the lane whose sender is `qpn`, if it may come. Whether it has.
bool admit(Qp& to, std::uint32_t qpn, Peer& from, const QpRecord& sender) noexcept {
  XrcTarget target;
  if (to.kind->find_target != nullptr && !to.kind->find_target(to, from, sender, target))
    return false;
  Qp* lane = make_lane(to, to.srq);
  poke(to.own->lacks, lane == nullptr);
  if (lane == nullptr) {
    static constinit LogOnce once;
    if (once.first())
      log_warn("shm: no memory or numbers for those who send to 0x%06x: they are not heard",
               to.own->qpn);
    if (target.owner != nullptr) Node::get().release_peer(*target.owner);
    return false;
  }
  if (target.record != nullptr) {
    lane->lane.endpoint = target.record;
    lane->lane.endpoint_owner = target.owner;
    lane->plain.qp_num = target.qpn;
    // The target's rights are asked for with each request: see xrc_queue.hpp.
    poke(lane->own->access, ~0u);
    watch_locked(*lane);
  }
  // Who knocks is who is meant, whoever else says that the number is his.
  if (!Node::get().hold_too(from)) {
    give_back(*lane);
    return false;
  }
  lane->met.store(&from, std::memory_order_release);
  poke(lane->own->dest_qpn, qpn);
  lane->in.session = next_session();
  if (add_member(*to.recv_cq, *lane) != 0) {
    give_back(*lane);
    return false;
  }
  enlist_locked(*lane);
  ++from.lanes;
  LockGuard<BiasedLock> guard(to.recv_cq->lock);
  lane->lane.next = to.book->arriving;
  poke(lane->own->lane, link_to(lane->lane.next));
  to.book->arriving = lane;
  if (to.mode.load(std::memory_order_acquire) == IBV_QPS_ERR) return true;
  lane->mode.store(IBV_QPS_RTR, std::memory_order_release);
  lane->own->accepts.store(lane->in.session, std::memory_order_release);
  // Publishes the lane; pairs with the load in find_other_half().
  __atomic_store_n(&to.own->lane, link_to(lane), __ATOMIC_RELEASE);
  return true;
}

/// Who knocked may not poll: his service thread moves on what waits for us.
void tell_admitted(Peer& peer, const QpRecord& sender) noexcept {
  const std::uint32_t index = Node::index_in(peer, peek(sender.speaks_for));
  if (index >= peer.segment.qp_capacity()) return;
  peer.segment.doorbells().service.ring(index);
  peer.wake_service();
}

void say_refusal(const Qp& to, const Peer& peer, const Shares& shares) noexcept {
  static constinit LogOnce once;
  if (once.first())
    log_warn(
        "shm: process %d has as many ways as it may have to queue pairs of this one, %u of %u (%u "
        "numbers are left): what its others send, as to 0x%06x, is not heard",
        static_cast<int>(peer.pid), shares.of_process, shares.of_all, Node::get().free_qpn_count(),
        to.own->qpn);
}

/// The lanes of one process that knock at `to`, as many as there is room for. False: that was not
/// enough room.
bool admit_from(Qp& to, Peer& peer, std::uint32_t& room) noexcept {
  std::uint32_t link = peer.segment.live_head().lane.load(std::memory_order_acquire);
  Admitted admitted(to, peer);
  for (std::uint32_t steps = 0; link != 0 && steps < kMaxQps; ++steps) {
    if (link > peer.segment.qp_capacity()) return true;
    const std::uint32_t index = link - 1;
    const QpRecord& record = peer.segment.qps()[index];
    const std::uint32_t qpn = peek(record.qpn);
    if (peek(record.dest_qpn) == to.own->qpn && peek(record.speaks_for) != 0 &&
        Node::index_in(peer, qpn) == index && !admitted.has(index)) {
      if (room == 0) return false;
      const Shares shares(peer);
      if (!shares.leave_another()) {
        poke(to.own->lacks, 1);
        say_refusal(to, peer, shares);
        return true;
      }
      admitted.add(index);
      // Who cannot come costs no room: he would be tried anew at each turn.
      if (admit(to, qpn, peer, record)) {
        --room;
        tell_admitted(peer, record);
      }
    }
    link = __atomic_load_n(&record.lane, __ATOMIC_ACQUIRE);
  }
  return true;
}

/// What tools see of a lane is its queue pair's, also when it is gone: those with no destination
/// they do not count any more. live.mutex and the receive CQ's lock are held.
void carry_counts(Qp& lane) noexcept {
  QpRecord& own = *lane.own;
  QpRecord& face = *lane.lane.face->own;
  poke(own.dest_qpn, 0);
  poke(face.received_bytes, peek(face.received_bytes) + peek(own.received_bytes));
  face.consumed.fetch_add(own.consumed.load(std::memory_order_relaxed), std::memory_order_relaxed);
  face.errors.fetch_add(own.errors.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

/// Takes an arriving lane out of everything that knows it. live.mutex is held.
void end_arriving(Qp& lane) noexcept {
  --lane.met.load(std::memory_order_relaxed)->lanes;
  lane.own->accepts.store(0, std::memory_order_seq_cst);
  delist_locked(lane);
  remove_member(*lane.recv_cq, lane);
  {
    LockGuard<BiasedLock> guard(lane.recv_cq->lock);
    detach_receiver(lane);
    carry_counts(lane);
  }
  give_back(lane);
}

/// Its sender is gone, and has left nothing.
bool is_over(Qp& lane) noexcept {
  LockGuard<BiasedLock> guard(lane.recv_cq->lock);
  if (lane.lane.is_unheard) return !lane.in.broken && lane.in.held_count == 0;
  const Peer& peer = *lane.met.load(std::memory_order_acquire);
  if (attach_receiver(lane)) {
    // What a reliable one has brought is taken, if only when there is a receive for it.
    if (is_xrc_lane(lane) ? holds_message(lane) : has_message(lane)) return false;
    return !peer.alive.load(std::memory_order_acquire) ||
           lane.in.remote->tx_session.load(std::memory_order_acquire) != lane.in.remote_session;
  }
  // It has knocked and not sent yet, or its number has come to mean another.
  if (!peer.alive.load(std::memory_order_acquire)) return true;
  const std::uint32_t qpn = peek(lane.own->dest_qpn);
  const std::uint32_t index = Node::index_in(peer, qpn);
  if (index >= peer.segment.qp_capacity()) return true;
  const QpRecord& record = peer.segment.qps()[index];
  const std::uint32_t leads_to = peek(record.dest_qpn);
  return peek(record.qpn) != qpn ||
         (leads_to != lane.own->qpn && leads_to != lane.lane.face->own->qpn);
}

}  // namespace

void admit_lanes(Qp& to) noexcept {
  const std::uint32_t mode = to.mode.load(std::memory_order_acquire);
  if (mode < IBV_QPS_RTR || mode == IBV_QPS_ERR) return;
  reap_lanes(to);  // who knocks may have the number of one who is gone
  std::uint32_t room = kAdmittedAtOnce;
  for (Peer* peer = Node::get().first_peer(); peer != nullptr; peer = peer->next) {
    if (!peer->alive.load(std::memory_order_acquire) || admit_from(to, *peer, room)) continue;
    some_are_left = true;
    Node::get().segment().doorbells().service.ring(to.index);
    return Node::get().self().wake_service();
  }
}

bool were_lanes_left() noexcept { return std::exchange(some_are_left, false); }

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

void reap_lanes_of_dead() noexcept {
  bool any = false;
  for (const Peer* peer = Node::get().first_peer(); peer != nullptr; peer = peer->next)
    any |= peer->lanes != 0 && !peer->alive.load(std::memory_order_acquire);
  // What is reaped here is taken out of this list, but for whom it led to.
  for (Qp* qp = any ? live.first_qp : nullptr; qp != nullptr; qp = qp->next_live)
    if (qp->book != nullptr && qp->mode.load(std::memory_order_acquire) >= IBV_QPS_RTR)
      reap_lanes(*qp);
}

}  // namespace verbatim::shm
