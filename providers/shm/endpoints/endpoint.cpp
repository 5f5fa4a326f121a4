// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/endpoints/endpoint.hpp"

#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "providers/shm/endpoints/endpoint_share.hpp"
#include "providers/shm/fabric/process.hpp"
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

/// Connect requests come no faster than this: the destination's service thread may wait for a core.
constexpr std::uint64_t kConnectRequestNs = 1'000'000;

/// An outgoing endpoint is listed until it goes.
constinit const QpKind kOutgoingEndpoint{.retire = forget_outgoing};

/// Guards this process's list of endpoints, whose head is in the segment's header.
constinit SpinLock outgoing_lock;
Qp* first_outgoing = nullptr;

std::uint32_t place_of(const EndpointTable& d, std::uint32_t qpn) noexcept {
  return (qpn * 0x9e3779b1u) & (d.capacity - 1);
}

void insert(EndpointTable& d, Qp& endpoint) noexcept {
  std::uint32_t i = place_of(d, endpoint.link.destination_qpn);
  while (d.slots[i] != nullptr) i = (i + 1) & (d.capacity - 1);
  d.slots[i] = &endpoint;
}

Peer* hold_living(std::uint32_t qpn) noexcept {
  Peer* peer = Process::get().hold_peer(qpn);
  if (peer == nullptr || peer->alive.load(std::memory_order_acquire)) return peer;
  Process::get().release_peer(*peer);
  return nullptr;
}

/// The queue pair, or XRC queue, that `endpoint` is to lead to; nullptr: that process has none of
/// this number that receives what comes over an endpoint of its kind.
const QpRecord* find_destination(const Peer& peer, const Qp& endpoint) noexcept {
  const std::uint32_t index = Process::index_in(peer, endpoint.link.destination_qpn);
  if (index >= peer.segment.qp_capacity()) return nullptr;
  const QpRecord& record = peer.segment.qps()[index];
  if (load_relaxed(record.qpn) != endpoint.link.destination_qpn ||
      load_relaxed(record.speaks_for) != 0 || record.accepts.load(std::memory_order_acquire) == 0)
    return nullptr;
  const Qp& parent = *endpoint.ep.parent;
  return parent.kind->is_destination(parent, record) ? &record : nullptr;
}

/// Its queue pair, or its process, is gone for good; or it never led anywhere, nor is about to.
bool is_lost(const Qp& endpoint) noexcept {
  // What is gone there fails a request: see xrc_send.cpp.
  if (is_xrc_endpoint(endpoint)) return false;
  if (endpoint.link.remote != nullptr)
    return is_dead(endpoint) || endpoint.link.remote->accepts.load(std::memory_order_acquire) !=
                                    endpoint.link.remote_session;
  Peer* const peer = hold_living(endpoint.link.destination_qpn);
  if (peer == nullptr) return !Process::get().is_connecting(endpoint.link.destination_qpn);
  const bool leads_there = find_destination(*peer, endpoint) != nullptr;
  Process::get().release_peer(*peer);
  return !leads_there;
}

/// Nobody who has the send lock finds it any more.
void list_abandoned(Qp& endpoint) noexcept {
  Qp& from = *endpoint.ep.parent;
  if (from.last_endpoint == &endpoint) from.last_endpoint = nullptr;
  Qp* first = live.abandoned.load(std::memory_order_relaxed);
  do {
    endpoint.next_live = first;
    // Pairs with park_abandoned().
  } while (!live.abandoned.compare_exchange_weak(first, &endpoint, std::memory_order_release,
                                                 std::memory_order_relaxed));
}

/// Abandons those that are lost, and `gone`, and makes a table with room for the others and as many
/// again. False: no memory; then some of the others may be opened anew. The send lock is held.
bool sort_out(EndpointTable& d, const Qp* gone = nullptr) noexcept {
  Qp** const old = d.slots;
  const std::uint32_t old_capacity = d.capacity;
  for (std::uint32_t i = 0; i < old_capacity; ++i) {
    if (old[i] == nullptr || (old[i] != gone && !is_lost(*old[i]))) continue;
    list_abandoned(*std::exchange(old[i], nullptr));
    --d.count;
  }
  const std::uint32_t capacity = std::bit_ceil(4 * (d.count + 2));
  auto** endpoints = static_cast<Qp**>(std::calloc(capacity, sizeof(Qp*)));
  if (endpoints == nullptr) return false;
  d.slots = endpoints;
  d.capacity = capacity;
  for (std::uint32_t i = 0; i < old_capacity; ++i)
    if (old[i] != nullptr) insert(d, *old[i]);
  std::free(old);
  return true;
}

/// Room for one more. Who sends to ever new ones has no more endpoints than some four times those
/// that lead somewhere.
bool grow(EndpointTable& d) noexcept { return 2 * d.count < d.capacity || sort_out(d); }

/// The endpoint of ours that the destination has made for `endpoint`, if it has: its number, or 0.
std::uint32_t find_other_half(const Peer& peer, const QpRecord& destination,
                              const Qp& endpoint) noexcept {
  std::uint32_t link = __atomic_load_n(&destination.endpoint_link, __ATOMIC_ACQUIRE);
  const std::uint32_t capacity = peer.segment.qp_capacity();
  for (std::uint32_t steps = 0; link != 0 && steps < most_endpoints(capacity); ++steps) {
    if (link > capacity) return 0;
    const QpRecord& record = peer.segment.qps()[link - 1];
    if (load_relaxed(record.dest_qpn) == endpoint.own->qpn &&
        load_relaxed(record.speaks_for) == endpoint.link.destination_qpn &&
        record.accepts.load(std::memory_order_acquire) != 0)
      return load_relaxed(record.qpn);
    link = __atomic_load_n(&record.endpoint_link, __ATOMIC_ACQUIRE);
  }
  return 0;
}

void request_connect(Peer& peer, Qp& endpoint) noexcept {
  const std::uint64_t now = now_ns();
  if (endpoint.ep.asked_ns != 0 && now - endpoint.ep.asked_ns < kConnectRequestNs) return;
  endpoint.ep.asked_ns = now;
  peer.segment.doorbells().service.ring(Process::index_in(peer, endpoint.link.destination_qpn));
  peer.wake_service();
}

}  // namespace

void list_outgoing(Qp& endpoint) noexcept {
  LockGuard<SpinLock> guard(outgoing_lock);
  endpoint.ep.next = first_outgoing;
  store_relaxed(endpoint.own->endpoint_link, link_to(first_outgoing));
  first_outgoing = &endpoint;
  Process::get().segment().head().endpoint_link.store(link_to(&endpoint),
                                                      std::memory_order_release);
}

Qp* find_endpoint(Qp& from, std::uint32_t qpn) noexcept {
  if (from.last_endpoint != nullptr && from.last_endpoint->link.destination_qpn == qpn)
    return from.last_endpoint;
  const EndpointTable& d = *from.endpoints;
  if (d.capacity == 0) return nullptr;
  for (std::uint32_t i = place_of(d, qpn); d.slots[i] != nullptr; i = (i + 1) & (d.capacity - 1))
    if (d.slots[i]->link.destination_qpn == qpn) return from.last_endpoint = d.slots[i];
  return nullptr;
}

Qp* open_endpoint(Qp& from, std::uint32_t qpn) noexcept {
  EndpointTable& d = *from.endpoints;
  if (!grow(d)) return nullptr;
  Qp* endpoint = make_endpoint(from, nullptr);
  if (endpoint == nullptr) return nullptr;
  endpoint->kind = &kOutgoingEndpoint;
  endpoint->link.destination_qpn = qpn;
  endpoint->mode.store(IBV_QPS_RTS, std::memory_order_relaxed);
  // Until its other half is known it leads to the queue pair itself: that is the connect request.
  store_relaxed(endpoint->own->dest_qpn, qpn);
  list_outgoing(*endpoint);
  insert(d, *endpoint);
  ++d.count;
  return from.last_endpoint = endpoint;
}

Wait reach_destination(Qp& endpoint) noexcept {
  if (endpoint.link.remote != nullptr)
    return attach(endpoint) == Wait::kNothing ? Wait::kNothing : Wait::kReceive;
  Process& process = Process::get();
  const std::uint32_t target = endpoint.link.destination_qpn;
  Peer* peer = hold_living(target);
  if (peer == nullptr) {
    process.want_peer(target);
    if (process.is_connecting(target)) return Wait::kPeer;
    peer = hold_living(target);  // it may have been met just now
    if (peer == nullptr) return Wait::kReceive;
  }
  Wait wait = Wait::kReceive;
  if (const QpRecord* destination = find_destination(*peer, endpoint); destination != nullptr) {
    wait = Wait::kPeer;
    if (const std::uint32_t qpn = find_other_half(*peer, *destination, endpoint); qpn != 0) {
      store_relaxed(endpoint.own->dest_qpn, qpn);
      wait = attach(endpoint);
      if (wait == Wait::kNothing) endpoint.link.destination = destination;
    } else {
      request_connect(*peer, endpoint);
    }
  }
  process.release_peer(*peer);
  return wait;
}

void abandon_endpoint(Qp& from, Qp& endpoint) noexcept {
  (void)sort_out(*from.endpoints, &endpoint);
}

void abandon_lost_endpoints(Qp& from) noexcept {
  // Not waited for: whoever has it may want the mutex that is held here. What stays is sorted out
  // when room for one more is made.
  bool taken;
  const SendLock lock(from, taken, SendLock::As::kGuest);
  if (taken && from.endpoints->count != 0) (void)sort_out(*from.endpoints);
}

/// What is left of a message in the middle of which its sender was reset never comes.
static void abort_stream(Qp& endpoint) noexcept {
  if (!endpoint.sq.progress.streaming) return;
  Slot& slot = *endpoint.sq.progress.slot;
  const std::uint32_t lap = header::lap(slot.header.load(std::memory_order_relaxed));
  slot.header.store(header::make(lap, SlotKind::kFault, header::kSolicited, 0, 0),
                    std::memory_order_release);
  ring_peer(endpoint, true);
}

void close_outgoing(Qp& from) noexcept {
  EndpointTable& d = *from.endpoints;
  Qp** endpoints;
  std::uint32_t capacity;
  {
    SendLock lock(from);
    endpoints = d.slots;
    capacity = d.capacity;
    d.slots = nullptr;
    d.capacity = d.count = 0;
    from.last_endpoint = nullptr;
  }
  LockGuard<Mutex> guard(live.mutex);
  for (std::uint32_t i = 0; i < capacity; ++i)
    if (endpoints[i] != nullptr) {
      abort_stream(*endpoints[i]);
      park(*endpoints[i]);
    }
  std::free(endpoints);
}

void forget_outgoing(Qp& endpoint) noexcept {
  LockGuard<SpinLock> guard(outgoing_lock);
  Qp* before = nullptr;
  Qp* at = first_outgoing;
  for (; at != nullptr && at != &endpoint; at = at->ep.next) before = at;
  if (at == nullptr) return;
  const std::uint32_t next = link_to(endpoint.ep.next);
  if (before == nullptr) {
    first_outgoing = endpoint.ep.next;
    Process::get().segment().head().endpoint_link.store(next, std::memory_order_release);
  } else {
    before->ep.next = endpoint.ep.next;
    __atomic_store_n(&before->own->endpoint_link, next, __ATOMIC_RELEASE);
  }
}

void forget_all_outgoing() noexcept {
  LockGuard<SpinLock> guard(outgoing_lock);
  first_outgoing = nullptr;
}

void forget_endpoints_of_parent() noexcept {
  ::new (&outgoing_lock) SpinLock;
  first_outgoing = nullptr;
}

}  // namespace verbatim::shm
