// SPDX-License-Identifier: BSD-2-Clause
//
// The receiving halves of endpoints: who is accepted, and until when.
#include <cstring>
#include <utility>

#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/endpoints/endpoint_share.hpp"
#include "providers/shm/fabric/process.hpp"
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

/// An incoming endpoint that nothing knows any more. live.mutex is held.
void give_back(Qp& endpoint) noexcept {
  unwatch_locked(endpoint);
  if (endpoint.ep.record_owner != nullptr) Process::get().release_peer(*endpoint.ep.record_owner);
  give_answers_back(endpoint);
  park(endpoint);
}

/// One process may say hello as several, but not as us.
bool are_same_process(const Peer& one, const Peer& other) noexcept {
  return &one == &other || (one.pid != 0 && one.pid == other.pid && !one.self && !other.self);
}

/// The endpoints that processes have, as it concerns one of them that asks for more.
struct Shares {
  explicit Shares(const Peer& peer) noexcept {
    for (const Peer* one = Process::get().first_peer(); one != nullptr; one = one->next) {
      of_all += one->endpoints;
      if (are_same_process(*one, peer)) of_process += one->endpoints;
    }
  }
  bool leave_another() const noexcept {
    return may_have_another_endpoint(of_process, of_all, Process::get().free_qpn_count() + of_all);
  }

  std::uint32_t of_process = 0, of_all = 0;
};

/// Who has been accepted to one of ours, of one process that asks to connect: a look at all
/// endpoints, made once, when the first one asks.
class Accepted {
 public:
  Accepted(const Qp& to, const Peer& peer) noexcept : to_(to), peer_(peer) {}

  /// Whether the queue pair at this place of the process has been. (By places: it may have as many
  /// endpoints as it has numbers, and each must not cost a look at all of them.)
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
    for (const Qp* endpoint = to_.endpoints->incoming; endpoint != nullptr;
         endpoint = endpoint->ep.next) {
      // Whatever somebody else says of his numbers.
      if (endpoint->met.load(std::memory_order_relaxed) != &peer_) continue;
      const std::uint32_t index = Process::index_in(peer_, load_relaxed(endpoint->own->dest_qpn));
      if (index < kMaxQps) add(index);
    }
  }

  const Qp& to_;
  const Peer& peer_;
  bool is_filled_ = false;
  std::uint64_t places_[kMaxQps / 64];
};

/// So many are accepted under one hold of live.mutex, which others want too: an endpoint takes some
/// 25 us to make, and a process may ask to connect with thousands. The next turn looks at all of
/// them anew.
constexpr std::uint32_t kAcceptedAtOnce = 64;
/// Some were left for the next turn. Service thread only.
constinit bool some_are_left = false;

/// Makes our half of the endpoint whose sender is `qpn`, if it may come. Whether it has.
bool accept_endpoint(Qp& to, std::uint32_t qpn, Peer& from, const QpRecord& sender) noexcept {
  XrcTarget target;
  if (to.kind->find_target != nullptr && !to.kind->find_target(to, from, sender, target))
    return false;
  Qp* endpoint = make_endpoint(to, to.srq);
  store_relaxed(to.own->lacks, endpoint == nullptr);
  if (endpoint == nullptr) {
    static constinit LogOnce once;
    if (once.first())
      log_warn("shm: no memory or numbers for those who send to 0x%06x: they are not heard",
               to.own->qpn);
    if (target.owner != nullptr) Process::get().release_peer(*target.owner);
    return false;
  }
  if (target.record != nullptr) {
    endpoint->ep.record = target.record;
    endpoint->ep.record_owner = target.owner;
    endpoint->plain.qp_num = target.qpn;
    // The target's rights are asked for with each request: see xrc_queue.hpp.
    store_relaxed(endpoint->own->access, ~0u);
    watch_locked(*endpoint);
  }
  // Who asks to connect is who is meant, whoever else says that the number is his.
  if (!Process::get().hold_too(from)) {
    give_back(*endpoint);
    return false;
  }
  endpoint->met.store(&from, std::memory_order_release);
  store_relaxed(endpoint->own->dest_qpn, qpn);
  endpoint->in.session = next_session();
  if (add_member(*to.recv_cq, *endpoint) != 0) {
    give_back(*endpoint);
    return false;
  }
  enlist_locked(*endpoint);
  ++from.endpoints;
  LockGuard<BiasedLock> guard(to.recv_cq->lock);
  endpoint->ep.next = to.endpoints->incoming;
  store_relaxed(endpoint->own->endpoint_link, link_to(endpoint->ep.next));
  to.endpoints->incoming = endpoint;
  if (to.mode.load(std::memory_order_acquire) == IBV_QPS_ERR) return true;
  endpoint->mode.store(IBV_QPS_RTR, std::memory_order_release);
  endpoint->own->accepts.store(endpoint->in.session, std::memory_order_release);
  // Publishes the endpoint; pairs with the load in find_other_half().
  __atomic_store_n(&to.own->endpoint_link, link_to(endpoint), __ATOMIC_RELEASE);
  return true;
}

/// Who asked to connect may not poll: his service thread moves on what waits for us.
void tell_accepted(Peer& peer, const QpRecord& sender) noexcept {
  const std::uint32_t index = Process::index_in(peer, load_relaxed(sender.speaks_for));
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
        static_cast<int>(peer.pid), shares.of_process, shares.of_all,
        Process::get().free_qpn_count(), to.own->qpn);
}

/// The endpoints of one process that ask to connect to `to`, as many as there is room for. False:
/// that was not enough room.
bool accept_from(Qp& to, Peer& peer, std::uint32_t& room) noexcept {
  std::uint32_t link = peer.segment.live_head().endpoint_link.load(std::memory_order_acquire);
  Accepted accepted(to, peer);
  for (std::uint32_t steps = 0; link != 0 && steps < kMaxQps; ++steps) {
    if (link > peer.segment.qp_capacity()) return true;
    const std::uint32_t index = link - 1;
    const QpRecord& record = peer.segment.qps()[index];
    const std::uint32_t qpn = load_relaxed(record.qpn);
    if (load_relaxed(record.dest_qpn) == to.own->qpn && load_relaxed(record.speaks_for) != 0 &&
        Process::index_in(peer, qpn) == index && !accepted.has(index)) {
      if (room == 0) return false;
      const Shares shares(peer);
      if (!shares.leave_another()) {
        store_relaxed(to.own->lacks, 1);
        say_refusal(to, peer, shares);
        return true;
      }
      accepted.add(index);
      // Who cannot come costs no room: he would be tried anew at each turn.
      if (accept_endpoint(to, qpn, peer, record)) {
        --room;
        tell_accepted(peer, record);
      }
    }
    link = __atomic_load_n(&record.endpoint_link, __ATOMIC_ACQUIRE);
  }
  return true;
}

/// What tools see of an endpoint is its queue pair's, also when it is gone: those with no
/// destination they do not count any more. live.mutex and the receive CQ's lock are held.
void carry_counts(Qp& endpoint) noexcept {
  QpRecord& own = *endpoint.own;
  QpRecord& parent = *endpoint.ep.parent->own;
  store_relaxed(own.dest_qpn, 0);
  store_relaxed(parent.received_bytes,
                load_relaxed(parent.received_bytes) + load_relaxed(own.received_bytes));
  parent.consumed.fetch_add(own.consumed.load(std::memory_order_relaxed),
                            std::memory_order_relaxed);
  parent.errors.fetch_add(own.errors.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

/// Takes an incoming endpoint out of everything that knows it. live.mutex is held.
void end_incoming(Qp& endpoint) noexcept {
  --endpoint.met.load(std::memory_order_relaxed)->endpoints;
  endpoint.own->accepts.store(0, std::memory_order_seq_cst);
  delist_locked(endpoint);
  remove_member(*endpoint.recv_cq, endpoint);
  {
    LockGuard<BiasedLock> guard(endpoint.recv_cq->lock);
    detach_receiver(endpoint);
    carry_counts(endpoint);
  }
  give_back(endpoint);
}

/// Its sender is gone, and has left nothing.
bool is_over(Qp& endpoint) noexcept {
  LockGuard<BiasedLock> guard(endpoint.recv_cq->lock);
  if (endpoint.in.is_muted) return !endpoint.in.broken && endpoint.in.held_count == 0;
  const Peer& peer = *endpoint.met.load(std::memory_order_acquire);
  if (attach_receiver(endpoint)) {
    // What a reliable one has brought is taken, if only when there is a receive for it.
    if (is_xrc_endpoint(endpoint) ? holds_message(endpoint) : has_message(endpoint)) return false;
    return !peer.alive.load(std::memory_order_acquire) ||
           endpoint.in.remote->tx_session.load(std::memory_order_acquire) !=
               endpoint.in.remote_session;
  }
  // It has asked to connect and not sent yet, or its number has come to mean another.
  if (!peer.alive.load(std::memory_order_acquire)) return true;
  const std::uint32_t qpn = load_relaxed(endpoint.own->dest_qpn);
  const std::uint32_t index = Process::index_in(peer, qpn);
  if (index >= peer.segment.qp_capacity()) return true;
  const QpRecord& record = peer.segment.qps()[index];
  const std::uint32_t leads_to = load_relaxed(record.dest_qpn);
  return load_relaxed(record.qpn) != qpn ||
         (leads_to != endpoint.own->qpn && leads_to != endpoint.ep.parent->own->qpn);
}

}  // namespace

void accept_endpoints(Qp& to) noexcept {
  const std::uint32_t mode = to.mode.load(std::memory_order_acquire);
  if (mode < IBV_QPS_RTR || mode == IBV_QPS_ERR) return;
  reap_endpoints(to);  // who asks to connect may have the number of one who is gone
  std::uint32_t room = kAcceptedAtOnce;
  for (Peer* peer = Process::get().first_peer(); peer != nullptr; peer = peer->next) {
    if (!peer->alive.load(std::memory_order_acquire) || accept_from(to, *peer, room)) continue;
    some_are_left = true;
    Process::get().segment().doorbells().service.ring(to.index);
    return Process::get().self().wake_service();
  }
}

bool were_endpoints_left() noexcept { return std::exchange(some_are_left, false); }

void close_incoming(Qp& to) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  __atomic_store_n(&to.own->endpoint_link, 0u, __ATOMIC_RELEASE);
  while (Qp* endpoint = to.endpoints->incoming) {
    {
      LockGuard<BiasedLock> lock(to.recv_cq->lock);
      to.endpoints->incoming = endpoint->ep.next;
    }
    end_incoming(*endpoint);
  }
}

void stop_accepting(Qp& to) noexcept {
  LockGuard<BiasedLock> guard(to.recv_cq->lock);
  for (Qp* endpoint = to.endpoints->incoming; endpoint != nullptr; endpoint = endpoint->ep.next)
    endpoint->own->accepts.store(0, std::memory_order_seq_cst);
}

void reap_endpoints(Qp& to) noexcept {
  Qp** link = &to.endpoints->incoming;
  Qp* before = nullptr;
  while (Qp* endpoint = *link) {
    if (!is_over(*endpoint)) {
      before = endpoint;
      link = &endpoint->ep.next;
      continue;
    }
    {
      LockGuard<BiasedLock> guard(to.recv_cq->lock);
      *link = endpoint->ep.next;
    }
    std::uint32_t& shown = before == nullptr ? to.own->endpoint_link : before->own->endpoint_link;
    __atomic_store_n(&shown, link_to(*link), __ATOMIC_RELEASE);
    end_incoming(*endpoint);
  }
}

void reap_endpoints_of_dead() noexcept {
  bool any = false;
  for (const Peer* peer = Process::get().first_peer(); peer != nullptr; peer = peer->next)
    any |= peer->endpoints != 0 && !peer->alive.load(std::memory_order_acquire);
  // What is reaped here is taken out of this list, but for whom it led to.
  for (Qp* qp = any ? live.first_qp : nullptr; qp != nullptr; qp = qp->next_live)
    if (qp->endpoints != nullptr && qp->mode.load(std::memory_order_acquire) >= IBV_QPS_RTR)
      reap_endpoints(*qp);
}

}  // namespace verbatim::shm
