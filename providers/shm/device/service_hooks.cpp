// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/device/service_hooks.hpp"
#include "providers/shm/queues/qp_kind.hpp"

#include <time.h>

#include "providers/shm/control/xrc_target.hpp"
#include "providers/shm/device/device.hpp"
#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/poll/poll_fast.hpp"
#include "providers/shm/queues/announced.hpp"
#include "providers/shm/queues/arrived.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/comp_channel.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/meet.hpp"
#include "providers/shm/queues/message_ring.hpp"
#include "providers/shm/queues/moderation.hpp"
#include "providers/shm/queues/polled_rings.hpp"
#include "providers/shm/queues/qp_event.hpp"
#include "providers/shm/queues/qp_life.hpp"
#include "providers/shm/queues/qp_state.hpp"
#include "providers/shm/receive/receive.hpp"
#include "providers/shm/transfer/request_service.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/transfer/service_requests.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// One sweep looks at so many QPs, so that its cost does not grow with their number.
constexpr std::uint32_t kSweepQps = 512;
std::uint32_t sweep_from = 0;  // service thread only

/// Of the QPs whose index is `bit` modulo the doorbell's size. Bytes taken from stream rings.
std::uint64_t serve_once(std::uint32_t bit) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  const std::uint32_t capacity = Process::get().segment().head().qp_capacity;
  std::uint64_t taken = 0;
  for (std::uint32_t i = bit; i < capacity && i < kMaxQps; i += DoorbellBlock::kBits) {
    if (live.qps[i] == nullptr) continue;
    Qp& qp = *live.qps[i];
    serve_request_of(qp);
    taken += pull_messages(qp);
    // The process that it asked to connect has accepted it.
    if (qp.endpoints != nullptr && qp.is_pending.load(std::memory_order_acquire))
      progress_pending(*qp.send_cq, SendLock::As::kGuest);
  }
  return taken;
}

/// Between two holds of live.mutex: who is woken to take it needs some time until he does.
void let_others_in() noexcept {
  const timespec pause{.tv_sec = 0, .tv_nsec = 20'000};
  ::nanosleep(&pause, nullptr);
}

/// A peer rang: it has a request, or a stream ring that the application does not take from. While
/// bytes flow this looks again at once, so that the peer's copy and ours overlap. True: it is the
/// turn of others, and there may be more.
bool serve(std::uint32_t bit) noexcept {
  constexpr std::uint64_t kPatienceNs = 20'000;
  constexpr std::uint64_t kTurnNs = 1'000'000;
  const std::uint64_t start = now_ns();
  std::uint64_t last = start;
  if (serve_once(bit) == 0) {
    if (were_endpoints_left()) let_others_in();
    return false;
  }
  for (std::uint64_t now = start; now - last < kPatienceNs; now = now_ns()) {
    if (serve_once(bit) != 0) last = now;
    if (now - start > kTurnNs) return true;
    cpu_pause();
  }
  return false;
}

/// Moves waiting sends on. True when some are left.
bool progress_all() noexcept {
  LockGuard<Mutex> guard(live.mutex);
  bool waiting = false;
  for (std::uint32_t i = 0; i < live.cq_end; ++i) {
    Cq* cq = live.cqs[i];
    if (cq == nullptr || !cq->has_pending()) continue;
    progress_pending(*cq, SendLock::As::kGuest);
    waiting |= cq->has_pending();
  }
  return waiting;
}

/// The same for as long as streams flow: a tick for each stream ring would be slow. True when some
/// are left.
bool progress_streams() noexcept {
  constexpr std::uint64_t kPatienceNs = 20'000;
  constexpr std::uint64_t kTurnNs = 1'000'000;
  const std::uint64_t start = now_ns();
  std::uint64_t moved = live.streamed.load(std::memory_order_relaxed);
  if (!progress_all()) return false;
  if (live.streamed.load(std::memory_order_relaxed) == moved) return true;
  std::uint64_t last = start;
  for (std::uint64_t now = start; now - last < kPatienceNs && now - start < kTurnNs;
       now = now_ns()) {
    moved = live.streamed.load(std::memory_order_relaxed);
    if (!progress_all()) return false;
    if (live.streamed.load(std::memory_order_relaxed) != moved) last = now;
    cpu_pause();
  }
  return true;
}

/// Receives whose flush has waited long enough for the sender are announced to who sleeps. True
/// when some have yet to wait.
bool announce_flushes() noexcept {
  const std::uint64_t now = now_ns();
  const std::uint64_t due = live.next_flush.load(std::memory_order_seq_cst);
  if (due == 0 || now < due) return due != 0;
  live.next_flush.store(0, std::memory_order_seq_cst);
  std::uint64_t next = 0;
  LockGuard<Mutex> guard(live.mutex);
  for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live) {
    if (qp->mode.load(std::memory_order_acquire) != IBV_QPS_ERR) continue;
    {
      LockGuard<BiasedLock> lock(qp->recv_cq->lock);
      if (qp->in.flush_after == 0) continue;
      if (qp->in.flush_after > now) {
        if (next == 0 || qp->in.flush_after < next) next = qp->in.flush_after;
        continue;
      }
    }
    announce(*qp);
  }
  std::uint64_t none = 0;
  if (next != 0)
    (void)live.next_flush.compare_exchange_strong(none, next, std::memory_order_seq_cst);
  return live.next_flush.load(std::memory_order_seq_cst) != 0;
}

void tick() noexcept {
  const bool sends = progress_streams();
  const bool flushes = announce_flushes();
  if (sends || flushes) return;
  LockGuard<Mutex> guard(live.mutex);
  Process::get().want_tick(false);
  // Somebody may have begun to wait between the look and the word.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t i = 0; i < live.cq_end; ++i)
    if (live.cqs[i] != nullptr && live.cqs[i]->has_pending()) Process::get().want_tick(true);
  if (live.next_flush.load(std::memory_order_seq_cst) != 0) Process::get().want_tick(true);
}

/// A peer found the CQ armed. That may be long ago: what it announced may be taken, and the CQ
/// armed anew for another message.
void wake_cq(std::uint32_t number) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  Cq* cq = number < kMaxCqs ? live.cqs[number] : nullptr;
  if (cq == nullptr) return;
  LockGuard<BiasedLock> lock(cq->lock);
  const std::uint32_t armed = armed_for_locked(*cq);
  if (armed == CqRecord::kIdle) return;
  if (const Qp* const qp = find_untold_whole(*cq, armed == CqRecord::kArmedSolicited);
      qp != nullptr)
    tell_of_locked(*cq, *qp);
}

/// Does what a lost hint stood for: serves a request, rings for a message that nobody has rung for.
void look_again(Qp& qp) noexcept {
  serve_request_of(qp);
  serve_requests(qp);
  // A polled ring needs no hints, but for its flushes. Not asking for the lock leaves it to the
  // thread that polls.
  const bool failed = qp.mode.load(std::memory_order_acquire) == IBV_QPS_ERR;
  if (!failed && qp.own->attention.load(std::memory_order_relaxed) == kPolled) return;
  Cq& cq = *qp.recv_cq;
  LockGuard<BiasedLock> lock(cq.lock);
  if ((!failed && qp.in.hot_index != Responder::kNotHot) || !has_message(qp)) return;
  cq.doorbells->ring(qp.own->cq_bit);
  tell_of_locked(cq, qp);
}

bool trim(Qp& qp) noexcept {
  const bool has_ring = !trim_ring(qp);
  const bool has_stream_ring = !trim_stream_ring(qp);
  return !has_ring && !has_stream_ring;
}

/// What it has had for messages under way, and has no use for, goes back to the segment's heap.
void give_spare_back(Qp& qp) noexcept {
  if (!qp.stream.has_spare.load(std::memory_order_relaxed)) return;
  bool taken;
  const SendLock lock(qp, taken, SendLock::As::kGuest);
  if (!taken) return;
  bool has_more = !trim(qp);
  if (qp.endpoints != nullptr) {
    for (std::uint32_t i = 0; i < qp.endpoints->capacity; ++i)
      if (Qp* const endpoint = qp.endpoints->slots[i]; endpoint != nullptr)
        has_more |= !trim(*endpoint);
  }
  qp.stream.has_spare.store(has_more, std::memory_order_relaxed);
}

/// Repairs hints that a faulty or dying peer lost. And lets rings that have gone silent wait for
/// doorbells, so that a poll does not look at them for ever.
void sweep() noexcept {
  retire_parked();
  end_orphans();
  say_failures();
  LockGuard<Mutex> guard(live.mutex);
  const std::uint32_t end = Process::get().segment().head().qp_capacity;
  std::uint32_t looked = 0;
  Qp* qp = live.first_qp;
  for (std::uint32_t i = 0; i < sweep_from && qp != nullptr; ++i) qp = qp->next_live;
  if (qp == nullptr) {
    sweep_from = 0;
    qp = live.first_qp;
  }
  for (; qp != nullptr && looked < kSweepQps && looked < end; qp = qp->next_live, ++looked) {
    if (qp->own->accepts.load(std::memory_order_relaxed) != 0 ||
        qp->mode.load(std::memory_order_acquire) == IBV_QPS_ERR)
      look_again(*qp);
    give_spare_back(*qp);
    if (qp->xrc == XrcRole::kOpened) watch_target(*qp);
  }
  sweep_from += looked;
  for (std::uint32_t i = 0; i < live.cq_end; ++i) {
    // A ring that is polled alone stays so.
    if (live.cqs[i] == nullptr || live.cqs[i]->hot_count.load(std::memory_order_relaxed) < 2)
      continue;
    LockGuard<BiasedLock> lock(live.cqs[i]->lock);
    cool_silent(*live.cqs[i]);
  }
}

/// The peer's QP was destroyed, or taken out of service, before its process ended: two programs
/// that are through do not end at the same moment. As with a HCA nobody tells the other side then,
/// whose last completions must not drown in flushed receives; what it still sends fails.
bool left_in_order(const QpRecord* record) noexcept {
  return record != nullptr && record->accepts.load(std::memory_order_acquire) == 0;
}

/// Whether the other half is, or was to be, in this process. The send lock is held.
bool concerns(Qp& qp, const Peer& peer, const QpRecord*& record) noexcept {
  LockGuard<BiasedLock> receiving(qp.recv_cq->lock);
  record = qp.in.remote != nullptr ? qp.in.remote : qp.link.remote;
  if (record == nullptr) {
    const std::uint32_t index = Process::index_in(peer, load_relaxed(qp.own->dest_qpn));
    if (index < peer.segment.qp_capacity()) record = &peer.segment.qps()[index];
  }
  if (const Peer* met = find_connected_peer(qp); met != nullptr) return met == &peer;
  // Who dies may be the owner of the number, or may only have said so.
  const std::uint32_t dest_qpn = load_relaxed(qp.own->dest_qpn);
  return qp.own->accepts.load(std::memory_order_relaxed) != 0 && peer.reached_by_name(dest_qpn) &&
         Process::get().find_peer(dest_qpn) == &peer;
}

void end_connections(const Peer& peer) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live) {
    // An unreliable connection does not notice.
    if (qp->xrc == XrcRole::kOpened) watch_target(*qp);
    if (qp->datagrams != nullptr) abandon_lost_endpoints(*qp);
    if (qp->mode.load(std::memory_order_acquire) < IBV_QPS_RTR || qp->may_lose) continue;
    SendLock lock(*qp);
    if (qp->mode.load(std::memory_order_acquire) == IBV_QPS_ERR) {
      (void)find_connected_peer(*qp);  // what it had sent before is still to be found
      continue;
    }
    if (is_xrc_endpoint(*qp)) {
      // What it had sent whole is received; the receive of what it had begun flushes.
      if (find_connected_peer(*qp) == &peer) enter_error(*qp);
      continue;
    }
    const QpRecord* record;
    if (!concerns(*qp, peer, record) || (left_in_order(record) && qp->queued() == 0)) continue;
    const bool was_idle = qp->queued() == 0;
    fail_sends(*qp, IBV_WC_RETRY_EXC_ERR);
    // No completion says why its receives are flushed.
    if (was_idle) want_said(*qp);
    raise_qp_event(*qp, IBV_EVENT_QP_FATAL);
  }
}

void dead_stay() noexcept {
  LockGuard<Mutex> guard(live.mutex);
  reap_endpoints_of_dead();
}

void peer_dead(Peer& peer) noexcept {
  end_connections(peer);
  dead_stay();
  retire_parked();  // it takes nothing more, and nothing is sent to it
}

/// The peer may have met us first: what it sent or asked before we knew it found nobody here.
void peer_ready(Peer& peer) noexcept {
  {
    LockGuard<Mutex> guard(live.mutex);
    for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live) {
      if (qp->own->accepts.load(std::memory_order_relaxed) == 0) continue;
      if (qp->kind != nullptr && qp->kind->accept != nullptr) qp->kind->accept(*qp);
      if (Process::get().find_peer(load_relaxed(qp->own->dest_qpn)) != &peer) continue;
      meet_again(*qp, peer);
      look_again(*qp);
    }
  }
  progress_all();
}

void progress_now(Peer&) noexcept { progress_all(); }

/// Whom we know stays; but a port through which nobody new comes is down.
void names_stand(bool stand) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  for (Context* context = live.opened.first; context != nullptr; context = context->next_live) {
    ibv_async_event event{};
    event.event_type = stand ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
    event.element.port_num = kPort;
    context->events.raise(event);
  }
}

/// As an adapter that is in its fatal state: nothing is sent or received, what was asked for is
/// flushed, and each context hears of it. Only of the device: of its parts nothing is said (IBTA
/// 11.6.3.3).
void device_failed() noexcept {
  LockGuard<Mutex> guard(live.mutex);
  for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live) {
    // Those that stand for another's, and the endpoints of datagrams, which end with their queue
    // pair.
    if (qp->xrc == XrcRole::kOpened || qp->xrc == XrcRole::kQueue ||
        (qp->ep.parent != nullptr && !is_xrc_endpoint(*qp)))
      continue;
    SendLock lock(*qp);
    const std::uint32_t mode = qp->mode.load(std::memory_order_acquire);
    if (mode == IBV_QPS_RESET || mode == IBV_QPS_ERR) continue;
    enter_error(*qp);
    flush_sends(*qp);
  }
  for (ShmCompChannel* at = live.comp_channels.first; at != nullptr; at = at->next_live)
    at->doubt_descriptor();
  ibv_async_event event{};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  for (Context* context = live.opened.first; context != nullptr; context = context->next_live) {
    context->events.doubt_descriptor();
    context->events.raise(event);
  }
}

}  // namespace

constinit const ServiceHooks service_hooks = {.request = serve,
                                              .asked = attend_requests,
                                              .cq_wake = wake_cq,
                                              .tick = tick,
                                              .sweep = sweep,
                                              .due = look_at_held,
                                              .peer_ready = peer_ready,
                                              .peer_knows_us = progress_now,
                                              .peer_dead = peer_dead,
                                              .dead_stay = dead_stay,
                                              .arena_ready = progress_now,
                                              .names_stand = names_stand,
                                              .failed = device_failed,
                                              .ends = say_all_failures};

}  // namespace verbatim::shm
