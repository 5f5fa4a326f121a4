// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/attach.hpp"

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/meet.hpp"
#include "providers/shm/queues/message_ring.hpp"
#include "providers/shm/queues/qp_event.hpp"
#include "providers/shm/queues/send_lock.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {
namespace {

constexpr std::uint32_t kMostReceivesLog = 16;

const QpRecord* find_record(Qp& qp, Peer*& peer) noexcept {
  peer = find_connected_peer(qp);
  return peer == nullptr ? nullptr : record_in(*peer, qp);
}

/// What a half of this type is connected to.
std::uint32_t counterpart(std::uint32_t type) noexcept {
  switch (type) {
    case IBV_QPT_XRC_SEND:
      return IBV_QPT_XRC_RECV;
    case IBV_QPT_XRC_RECV:
      return IBV_QPT_XRC_SEND;
    default:
      return type;
  }
}

}  // namespace

bool find_receives(Qp& qp) noexcept {
  // Publishes the places; pairs with the store in post_recv_slowly().
  const std::uint64_t at = qp.link.remote->rq_credits.load(std::memory_order_acquire);
  if (at == 0 || extent::log(at) > kMostReceivesLog) return false;
  const std::uint64_t places = std::uint64_t{1} << extent::log(at);
  const std::uint64_t sges_at = extent::offset(at) + places * sizeof(std::uint64_t);
  const std::uint32_t max_sge = load_relaxed(qp.link.remote->rq_max_sge);
  const PeerSegment& segment = qp.link.peer->segment;
  const auto* const credits =
      segment.at<std::atomic<std::uint64_t>>(extent::offset(at), places * sizeof(std::uint64_t));
  if (credits == nullptr || credits == qp.link.credits) return false;
  qp.link.credits = credits;
  qp.link.remote_rq_log = extent::log(at);
  qp.link.remote_rq_mask = places - 1;
  qp.link.receive_sges =
      max_sge == 0 || max_sge > kMaxSge
          ? nullptr
          : segment.at<ReceiveSge>(sges_at, places * max_sge * sizeof(ReceiveSge));
  qp.link.remote_max_sge = max_sge;
  return true;
}

void meet_again(Qp& qp, const Peer& peer) noexcept {
  // An incoming endpoint is of whoever asked to connect, for good.
  if (qp.ep.parent != nullptr && qp.link.destination_qpn == 0) return;
  if (qp.watch_index == Qp::kNotWatched) return;
  SendLock sending(qp);
  if (find_connected_peer(qp) != &peer) {
    LockGuard<BiasedLock> receiving(qp.recv_cq->lock);
    if (qp.link.remote != nullptr || qp.in.remote != nullptr) return;
    live.active[qp.watch_index] = nullptr;
    qp.link.peer = nullptr;
    forget_peer(qp);
    (void)find_connected_peer(qp);
  }
  // Of one that was in RTS before: those which come later leave it room.
  if (qp.mode.load(std::memory_order_relaxed) == IBV_QPS_RTS) (void)reserve_ring(qp);
}

Wait attach(Qp& qp) noexcept {
  if (qp.link.remote != nullptr) {
    if (qp.link.remote->accepts.load(std::memory_order_acquire) != qp.link.remote_session)
      return Wait::kPeer;
    if (qp.link.credits == nullptr && qp.shared.record == nullptr) (void)find_receives(qp);
    return Wait::kNothing;
  }
  Peer* peer;
  const QpRecord* record = find_record(qp, peer);
  qp.link.peer = peer;
  if (record == nullptr) {
    if (peer == nullptr) Process::get().want_peer(qp.own->dest_qpn);
    return Wait::kPeer;
  }
  if (!peer->knows_us.load(std::memory_order_acquire)) {
    qp.link.peer = nullptr;  // still being met
    return Wait::kPeer;
  }
  const std::uint64_t session = record->accepts.load(std::memory_order_acquire);
  if (session == 0) return Wait::kPeer;
  if (load_relaxed(record->rq_psn) != qp.own->sq_psn) {
    static constinit LogOnce once;
    if (once.first())
      log_warn(
          "shm: QP 0x%06x sends from PSN 0x%06x, but QP 0x%06x expects 0x%06x: set sq_psn and the "
          "peer's rq_psn to the same number",
          qp.own->qpn, qp.own->sq_psn, qp.own->dest_qpn, load_relaxed(record->rq_psn));
    return Wait::kPeer;
  }
  // Messages of an earlier life of ours were consumed there: it would take ours for their
  // successors.
  if (record->lines_taken.load(std::memory_order_acquire) != 0) return Wait::kPeer;
  if (load_relaxed(record->type) != counterpart(qp.own->type)) return Wait::kPeer;
  const std::uint64_t srq = load_relaxed(record->srq);
  const auto* shared = srq == 0 ? nullptr : peer->segment.at<SrqRecord>(srq, sizeof(SrqRecord));
  if (srq != 0 && shared == nullptr) return Wait::kPeer;

  qp.link.remote_session = session;
  qp.shared = {};
  qp.shared.record = shared;
  qp.set_slow_path(Qp::kToShared, shared != nullptr);
  qp.link.remote_regions = peer->segment.regions();
  qp.link.remote_region_capacity = peer->segment.region_capacity();
  qp.link.remote_pd = load_relaxed(record->pd);
  qp.link.self = peer->self;
  qp.link.ring_always = peer->sender_fence.load(std::memory_order_relaxed);
  if (!make_ring(qp)) return Wait::kMemory;
  qp.link.remote = record;
  // Requests are numbered within the session: an answer to another life's request never matches.
  qp.stream.ask_sequence = session << 32;
  qp.own->asked.store(qp.stream.ask_sequence, std::memory_order_relaxed);
  // Publishes the ring; pairs with the load in attach_receiver().
  qp.own->tx_session.store(session << 32 | ++qp.out.generation, std::memory_order_release);
  // Of what we do to its memory it hears nothing, and a target none of its messages. It sees us, or
  // we that it is in RTR: pairs with the fence in modify_qp().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (load_relaxed(record->state) == IBV_QPS_RTR && qp.ep.parent == nullptr)
    wake_service_of_peer(qp);
  return attach(qp);
}

bool unread(const Qp& qp) noexcept {
  return qp.link.remote != nullptr && qp.link.peer->alive.load(std::memory_order_acquire) &&
         qp.link.remote->accepts.load(std::memory_order_acquire) == qp.link.remote_session &&
         (qp.out.told_fault ||
          qp.link.remote->lines_taken.load(std::memory_order_acquire) < qp.out.ring.next);
}

static void give_memory_back(Qp& qp, OwnSegment& segment) noexcept {
  const QpRecord& own = *qp.own;
  give_ring_back(qp, segment);
  if (const std::uint64_t w = own.stream_ring.load(std::memory_order_relaxed); w != 0)
    segment.release(extent::offset(w), std::size_t{1} << extent::log(w));
  if (qp.stream.bounce != 0) segment.release(qp.stream.bounce, kBounceBytes);
  if (qp.asking.ring != nullptr) {
    segment.release(qp.asking.ring->stream_ring.load(std::memory_order_relaxed),
                    kRequestStreamBytes);
    segment.release(own.requests.load(std::memory_order_relaxed), sizeof(RequestRing));
  }
}

void detach(Qp& qp) noexcept {
  QpRecord& own = *qp.own;
  // First the word that receivers check after each message they find, then the memory.
  own.tx_session.store(0, std::memory_order_seq_cst);
  if (OwnSegment& segment = Process::get().segment(); segment.holds(&own))
    give_memory_back(qp, segment);
  forget_ring(qp);
  own.ring.store(0, std::memory_order_relaxed);
  own.stream_ring.store(0, std::memory_order_relaxed);
  own.stream_produced.store(0, std::memory_order_relaxed);
  own.requests.store(0, std::memory_order_relaxed);
  qp.stream.bounce = 0;
  qp.asking = {};
  qp.link.remote = nullptr;
  qp.link.peer = nullptr;
  forget_peer(qp);
  qp.out.peer_seen_ns = 0;
  qp.link.credits = nullptr;
  qp.link.fast = false;
  qp.direct.write = {};
  qp.link.receive_sges = nullptr;
  qp.direct.receive = {};
  qp.direct.unplaced = 0;
  for (EndedKey& ended : qp.ended) ended = {};
  qp.shared = {};
  qp.out.sent = 0;
  qp.out.known_receives = {};
  qp.out.heard = 0;
  qp.stream.produced = 0;
  qp.stream.consumed_seen = 0;
  qp.stream.receiver_sleeps = false;
  qp.stream.receiver_stuck = false;
  qp.stream.ring_was_full = false;
  qp.stream.copy_choice = {};
  qp.out.told_fault = false;
  qp.sq.progress.clear();
}

namespace {

/// Completions name the two ends that the application knows; of UD the device too (IBTA 11.4.1.2).
void name_sender(Qp& qp, const QpRecord& sender) noexcept {
  const bool is_datagram = qp.headroom != 0;
  qp.in.destination = qp.plain.qp_num;
  qp.in.source = load_relaxed(qp.ep.parent != nullptr ? sender.speaks_for : qp.own->dest_qpn);
  qp.in.slid = is_datagram && !Context::of(qp.plain.context).ethernet
                   ? lid_of_device(load_relaxed(sender.device))
                   : std::uint16_t{0};
}

}  // namespace

void greet_sender(Qp& qp) noexcept {
  if (qp.mode.load(std::memory_order_acquire) != IBV_QPS_RTR) return;
  LockGuard<BiasedLock> guard(qp.recv_cq->lock);
  (void)attach_receiver(qp);
}

bool attach_receiver(Qp& qp) noexcept {
  if (qp.in.ring != nullptr) return true;
  if (qp.in.session == 0) return false;
  Peer* peer;
  const QpRecord* record = find_record(qp, peer);
  if (record == nullptr) return false;
  const std::uint64_t session = record->tx_session.load(std::memory_order_acquire);
  if (session == 0 || session >> 32 != qp.in.session) return false;
  // Within one session of ours there is one life of the sender. Once it was left it stays so: the
  // ring where its first line stood may be gone.
  if (qp.in.remote_session != 0) return false;
  const std::uint64_t place = record->ring.load(std::memory_order_acquire);
  const std::uint32_t log = extent::log(place);
  if (log < kFirstRingLog || log > kMostRingLog) return false;
  const Slot* ring = peer->segment.at<Slot>(extent::offset(place), sizeof(Slot) << log);
  if (ring == nullptr) return false;
  qp.in.log = static_cast<std::uint8_t>(log);
  qp.in.remote_session = session;
  name_sender(qp, *record);
  qp.in.remote = record;
  qp.in.peer = peer;
  qp.in.ring = ring;
  // IBTA 11.6.3.2: who waits for a last word of the connection's making need not.
  const bool connects = qp.plain.qp_type == IBV_QPT_RC || qp.plain.qp_type == IBV_QPT_UC ||
                        qp.xrc == XrcRole::kTarget;
  if (connects && qp.mode.load(std::memory_order_acquire) == IBV_QPS_RTR)
    raise_qp_event(qp, IBV_EVENT_COMM_EST);
  return true;
}

void detach_receiver(Qp& qp) noexcept {
  qp.in.ring = nullptr;
  qp.in.pack.clear();
  qp.in.remote = nullptr;
  qp.in.peer = nullptr;
  qp.in.remote_session = 0;
  qp.in.session = 0;
  qp.in.stream_taken = 0;
  qp.in.ending_message = ~std::uint64_t{0};
  qp.in.ended_messages = 0;
  qp.in.pulled = {};
  qp.in.line = 0;
}

}  // namespace verbatim::shm
