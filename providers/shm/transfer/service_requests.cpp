// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/transfer/service_requests.hpp"

#include <cstring>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/failures.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/meet.hpp"
#include "providers/shm/queues/qp_event.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/queues/qp_state.hpp"
#include "providers/shm/receive/receive_place.hpp"
#include "providers/shm/windows/authorize.hpp"
#include "runtime/memory/address_space.hpp"

namespace verbatim::shm {
namespace {

// ---- requester

/// Publishes the request in our record and wakes the peer's service thread.
void ask(Qp& qp, ServiceOp op, std::uint64_t length) noexcept {
  QpRecord& own = *qp.own;
  store_relaxed(own.op, static_cast<std::uint32_t>(op));
  store_relaxed(own.length, length);
  qp.sq.progress.asked = ++qp.stream.ask_sequence;
  qp.sq.progress.asked_bytes = length;
  // Publishes the request; pairs with the load in serve().
  own.asked.store(qp.stream.ask_sequence, std::memory_order_release);
  wake_service_of_peer(qp);
}

/// The answer to the request under way: kService while there is none.
Reach answer(Qp& qp) noexcept {
  // Pairs with the store in serve().
  if (qp.link.remote->answered.load(std::memory_order_acquire) != qp.sq.progress.asked)
    return Reach::kService;
  qp.sq.progress.asked = 0;
  switch (load_relaxed(qp.link.remote->answer_status)) {
    case IBV_WC_SUCCESS:
      return Reach::kDone;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_LOC_PROT_ERR:
      return Reach::kDenied;
    default:
      return Reach::kGone;
  }
}

bool have_bounce(Qp& qp) noexcept {
  if (qp.stream.bounce == 0) qp.stream.bounce = Process::get().segment().allocate(kBounceBytes);
  return qp.stream.bounce != 0;
}

std::uint64_t next_piece(std::uint64_t done, std::uint64_t total) noexcept {
  return total - done < kBounceBytes ? total - done : kBounceBytes;
}

// ---- responder

/// A requester's words, copied once.
struct Request {
  std::uint32_t op, rkey;
  std::uint64_t address, length, compare_add, swap, bounce;
};

/// Copies a peer's bytes into posted receive number `index`, from its byte `from` on.
bool place(const Qp& qp, std::uint64_t index, std::uint64_t from, const unsigned char* bytes,
           std::uint64_t length) noexcept {
  if (from > kMaxMessage) return false;  // the peer's word
  Receive receive;
  {
    // The queue does not grow meanwhile; where the receive stands remains when it does.
    LockGuard<BiasedLock> guard(qp.recv_cq->lock);
    // The count before the store: whoever posts the first receive makes the store, then counts it.
    if (index >= qp.rq.tail.load(std::memory_order_acquire) ||
        index < qp.in.head.load(std::memory_order_relaxed) || qp.rq.store.sges == nullptr)
      return false;
    receive = qp.rq.store.receive(index);
  }
  LocalRange ranges[kMaxSge];
  if (receive_ranges(qp, receive, from + length, ranges) != IBV_WC_SUCCESS) return false;
  return scatter(ranges, receive.num_sge, from, bytes, length);
}

ibv_wc_status perform(const Qp& qp, const Peer& peer, const Request& request) noexcept {
  if (request.length > kBounceBytes || request.op != static_cast<std::uint32_t>(ServiceOp::kPlace))
    return IBV_WC_REM_INV_REQ_ERR;
  const auto* from = peer.segment.at<unsigned char>(request.bounce, request.length);
  return from != nullptr && place(qp, request.address, request.swap, from, request.length)
             ? IBV_WC_SUCCESS
             : IBV_WC_LOC_PROT_ERR;
}

/// The requester met a fault that is ours by the rules: our half ends too, polled or not. `event`
/// is the asynchronous event that says so, unless a receive completion does.
void suffer_fault(Qp& qp, const Peer& peer, const Request& request) noexcept {
  const std::uint64_t event = request.length;
  if (qp.ep.parent != nullptr) return;  // the receive that says so ends the queue pair, when polled
  {
    SendLock lock(qp);
    const std::uint32_t mode = qp.mode.load(std::memory_order_relaxed);
    if (mode < IBV_QPS_RTR || mode == IBV_QPS_ERR) return;
    if (event != kToldInReceive) {
      note_suffered(
          qp, peer,
          {static_cast<std::uint32_t>(request.compare_add & 0xff),
           static_cast<std::uint32_t>(request.compare_add >> 32), request.rkey, request.address,
           request.swap, static_cast<std::uint32_t>(request.compare_add >> 8 & 0xffffff)});
      want_said(qp);
    }
    enter_error(qp);
    flush_sends(qp);
  }
  if (event == IBV_EVENT_QP_ACCESS_ERR)
    raise_qp_event(qp, IBV_EVENT_QP_ACCESS_ERR);
  else if (event != kToldInReceive)
    raise_qp_event(qp, IBV_EVENT_QP_REQ_ERR);
}

void serve(Qp& qp) noexcept {
  const std::uint64_t session = qp.own->accepts.load(std::memory_order_acquire);
  if (session == 0) return;
  const std::uint32_t dest_qpn = load_relaxed(qp.own->dest_qpn);  // a reset clears it beside us
  Peer* peer = Process::get().find_peer(dest_qpn);
  if (peer == nullptr) return;
  const std::uint32_t index = Process::index_in(*peer, dest_qpn);
  if (index >= peer->segment.qp_capacity()) return;
  const QpRecord& record = peer->segment.qps()[index];
  if (load_relaxed(record.dest_qpn) != qp.own->qpn ||
      record.tx_session.load(std::memory_order_acquire) >> 32 != session)
    return;
  // Pairs with the store in ask().
  const std::uint64_t asked = record.asked.load(std::memory_order_acquire);
  if (asked == qp.in.served || asked >> 32 != session || static_cast<std::uint32_t>(asked) == 0)
    return;
  const Request request{load_relaxed(record.op),          load_relaxed(record.rkey),
                        load_relaxed(record.address),     load_relaxed(record.length),
                        load_relaxed(record.compare_add), load_relaxed(record.swap),
                        load_relaxed(record.bounce)};
  qp.in.served = asked;
  if (request.op == static_cast<std::uint32_t>(ServiceOp::kFault)) {
    suffer_fault(qp, *peer, request);
    return;
  }
  // Odd, with a full fence, before any key is looked up: a deregistration either is seen, or sees
  // us.
  live.service_active.fetch_add(1, std::memory_order_seq_cst);
  const ibv_wc_status status = perform(qp, *peer, request);
  live.service_active.fetch_add(1, std::memory_order_release);
  store_relaxed(qp.own->answer_status, status);
  // Publishes the answer; pairs with the load in answer().
  qp.own->answered.store(asked, std::memory_order_release);
}

}  // namespace

unsigned char* target_of_peer(const Qp& qp, std::uint32_t rkey, std::uint64_t iova,
                              std::uint64_t length, std::uint32_t need) noexcept {
  Region region;
  std::uint64_t offset;
  if (authorize(own_regions(qp), {rkey, need, iova, length}, OpenToPeer{qp}, region, offset) !=
      KeyFault::kNone)
    return nullptr;
  const std::uint64_t at = region.address + offset;
  // A peer may name any address of a region on demand.
  if ((region.access & IBV_ACCESS_ON_DEMAND) != 0 &&
      fault_in(at, length, need != IBV_ACCESS_REMOTE_READ) != 0)
    return nullptr;
  return reinterpret_cast<unsigned char*>(at);
}

Reach ask_to_place(Qp& qp, const PendingSend& send, const LocalRange* local,
                   std::uint64_t& done) noexcept {
  if (qp.sq.progress.asked != 0) {
    const std::uint64_t moved = qp.sq.progress.asked_bytes;
    if (const Reach reach = answer(qp); reach != Reach::kDone) return reach;
    done += moved;
    qp.sq.progress.wait = Wait::kNothing;
  }
  if (done == send.length) return Reach::kDone;
  if (!have_bounce(qp)) return Reach::kNoRoom;
  const std::uint64_t piece = next_piece(done, send.length);
  if (!gather(Process::get().segment().at<unsigned char>(qp.stream.bounce), local, send.num_sge,
              done, piece))
    return Reach::kMissing;
  // A streaming message has its slot already: its receive is the one before the next.
  store_relaxed(qp.own->address, qp.sq.progress.streaming ? qp.out.sent - 1 : qp.out.sent);
  store_relaxed(qp.own->swap, done);
  store_relaxed(qp.own->bounce, qp.stream.bounce);
  ask(qp, ServiceOp::kPlace, piece);
  return Reach::kService;
}

void tell_fault(Qp& qp, std::uint32_t event, ibv_wc_status status) noexcept {
  if (qp.link.remote == nullptr) return;
  qp.out.told_fault = true;
  if (qp.queued() != 0) {
    const PendingSend& send = qp.sq.store.at(qp.sq.head);
    store_relaxed(qp.own->rkey, send.opcode == IBV_WR_SEND_WITH_INV ? send.immediate : send.rkey);
    store_relaxed(qp.own->address, send.remote_address);
    store_relaxed(qp.own->swap, remote_bytes(send));
    store_relaxed(qp.own->compare_add, std::uint64_t{status} << 32 | send.srqn << 8 | send.opcode);
  }
  ask(qp, ServiceOp::kFault, event);
  qp.sq.progress.asked = 0;  // needs no answer
}

void serve_request_of(Qp& qp) noexcept {
  if (qp.kind != nullptr && qp.kind->accept != nullptr) {
    qp.kind->accept(qp);
  } else {
    greet_sender(qp);
    serve(qp);
  }
}

}  // namespace verbatim::shm
