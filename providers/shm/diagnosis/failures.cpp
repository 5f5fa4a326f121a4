// SPDX-License-Identifier: BSD-2-Clause
//
// The second judgement: which of the things that end in this status it was. Records may have
// changed since the first one; then the reason is "changed meanwhile", never a wrong one that looks
// right.
#include "providers/shm/queues/failures.hpp"

#include "providers/shm/diagnosis/xrc_failures.hpp"
#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/null_memory.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/transfer/send_wait.hpp"
#include "providers/shm/windows/authorize.hpp"
#include "providers/shm/windows/windows.hpp"
#include "runtime/base/scope_exit.hpp"
#include "runtime/memory/address_space.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/verbs/explain.hpp"
#include "runtime/verbs/software/operations.hpp"

namespace verbatim::shm {
namespace {

/// Of what names memory at the other side; a refused key that is only to be invalidated is told of as
/// one that was written by.
std::uint32_t need_of(std::uint32_t opcode, std::uint64_t flush_type) noexcept {
  const std::uint32_t need = remote_access_for(opcode, flush_type);
  return need != 0 ? need : unsigned{IBV_ACCESS_REMOTE_WRITE};
}

/// What is wrong with `facts.key` for what is asked in `facts`; false: nothing.
template <class Admits>
bool judge_key(const RegionView& table, KeyFacts& facts, Admits admits) noexcept {
  Region region;
  std::uint64_t offset;
  facts.fault = authorize(table, {facts.key, facts.need, facts.asked_at, facts.asked_bytes}, admits,
                          region, offset);
  if (facts.fault != KeyFault::kUnknown) {
    facts.held = region.access;
    facts.first = region.iova;
    facts.bytes = region.length;
  }
  return facts.fault != KeyFault::kNone;
}

/// The first SGE of a list that is not good for `need`, in a table of our own or the peer's.
template <class Sge>
KeyFacts judge_sges(const RegionView& table, std::uint32_t pd, std::uint32_t need, const Sge* sges,
                    std::uint32_t count) noexcept {
  KeyFacts facts;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint64_t address;
    if constexpr (requires { sges[i].addr; })
      address = load_relaxed(sges[i].addr);
    else
      address = load_relaxed(sges[i].address);
    facts = {};
    facts.sge = static_cast<std::int16_t>(i);
    facts.key = load_relaxed(sges[i].lkey);
    facts.need = need;
    facts.asked_at = address;
    facts.asked_bytes = load_relaxed(sges[i].length);
    if (facts.asked_bytes == 0) continue;
    if (judge_key(table, facts, [pd](const Region& region) {
          return is_of_domain(region, pd) || is_null_memory(region, pd);
        }))
      return facts;
  }
  return facts;
}

/// The same of our own, whose keys may be sound where there is no memory.
template <class Sge>
KeyFacts judge_own_sges(const Qp& qp, std::uint32_t pd, std::uint32_t need, const Sge* sges,
                        std::uint32_t count) noexcept {
  const RegionView table = own_regions(qp);
  KeyFacts facts;
  for (std::uint32_t i = 0; i < count; ++i) {
    facts = judge_sges(table, pd, need, sges + i, 1);
    facts.sge = static_cast<std::int16_t>(i);
    if (facts.fault != KeyFault::kNone) return facts;
    Region region;
    if (facts.asked_bytes == 0 || !table.find(facts.key, region) || is_null_memory(region, pd))
      continue;
    const std::uint64_t place = region.address - region.iova;
    const MissingByte missing = find_missing(facts.asked_at + place, facts.asked_bytes,
                                             (need & IBV_ACCESS_LOCAL_WRITE) != 0);
    if (missing.lack == Lack::kNothing) continue;
    facts.fault = KeyFault::kNoMemory;
    facts.missing = missing;
    break;
  }
  return facts;
}

const QpRecord* record_of(const Peer& peer, std::uint32_t qpn) noexcept {
  const std::uint32_t index = Process::index_in(peer, qpn);
  return index < peer.segment.qp_capacity() ? &peer.segment.qps()[index] : nullptr;
}

/// It does not answer: for want of memory, or nobody knows why.
Cause judge_silence(const QpRecord& record) noexcept {
  return load_relaxed(record.lacks) != 0 ? Cause::kPeerLacks : Cause::kPeerSilent;
}

/// Why a peer whose process is known does not answer.
Cause judge_record(const Qp& qp, const Peer& peer, Failure& failure) noexcept {
  if (!peer.alive.load(std::memory_order_acquire)) return Cause::kPeerDead;
  const QpRecord* record = record_of(peer, failure.remote_qpn);
  if (record == nullptr || load_relaxed(record->qpn) != failure.remote_qpn)
    return Cause::kPeerDestroyed;
  failure.peer_state = load_relaxed(record->state);
  failure.peer_dest = load_relaxed(record->dest_qpn);
  failure.peer_psn = load_relaxed(record->rq_psn);
  failure.own_psn = qp.own->sq_psn;
  if (failure.peer_state == IBV_QPS_ERR) return Cause::kPeerFailed;
  if (failure.peer_state < IBV_QPS_RTR) return Cause::kPeerNotReady;
  if (failure.peer_dest != qp.own->qpn) return Cause::kPeerElsewhere;
  if (qp.link.remote != nullptr) return judge_silence(*record);
  if (failure.peer_psn != failure.own_psn) return Cause::kPeerPsn;
  const std::uint32_t type =
      qp.xrc == XrcRole::kInitiator ? std::uint32_t{IBV_QPT_XRC_RECV} : load_relaxed(qp.own->type);
  if (load_relaxed(record->type) != type) return Cause::kPeerOtherType;
  if (record->lines_taken.load(std::memory_order_acquire) != 0) return Cause::kPeerUsed;
  return judge_silence(*record);
}

/// Names the process at the other end; its state too if that is asked.
void judge_peer(Qp& qp, Failure& failure, bool judges) noexcept {
  failure.remote_qpn = load_relaxed(qp.own->dest_qpn);
  if (failure.remote_qpn == 0 && !judges) return;
  Peer* peer = qp.met.load(std::memory_order_acquire);
  Peer* const held = peer == nullptr ? Process::get().hold_peer(failure.remote_qpn) : nullptr;
  if (peer == nullptr) peer = held;
  const ScopeExit let_go([held] {
    if (held != nullptr) Process::get().release_peer(*held);
  });
  if (peer != nullptr) failure.remote = name_of(*peer);
  if (!judges) return;
  failure.cause = peer == nullptr ? Cause::kPeerUnknown : judge_record(qp, *peer, failure);
  failure.timer_code = qp.attributes.timeout;
  failure.timer_ns = failure.timer_code == 0 ? 0 : ack_timeout_ns(failure.timer_code);
  failure.tries = qp.attributes.retry_cnt;
}

void judge_local(const Qp& qp, const PendingSend& send, Failure& failure) noexcept {
  const bool reads = returns_bytes(send.opcode);
  const ibv_sge* sges = qp.sq.store.sges_of(qp.sq.head);
  failure.cause = Cause::kLocalKey;
  failure.key = judge_own_sges(qp, qp.pd_number, reads ? unsigned{IBV_ACCESS_LOCAL_WRITE} : 0u,
                               sges, send.num_sge);
}

/// Of what a target was refused for: the keys of a queue's domain, as its process shows them.
void judge_memory_of_queue(std::uint32_t srqn, Failure& failure) noexcept {
  Peer* const owner = Process::get().hold_peer(srqn);
  if (owner == nullptr) return;
  const QpRecord* const queue = record_of(*owner, srqn);
  if (queue != nullptr && load_relaxed(queue->qpn) == srqn) {
    failure.cause = Cause::kRemoteKey;
    const std::uint32_t pd = load_relaxed(queue->pd);
    if (!judge_key({owner->segment.regions(), owner->segment.region_capacity()}, failure.key,
                   [pd](const Region& region) { return is_of_domain(region, pd); }))
      failure.key.fault = KeyFault::kNoMemory;
  }
  Process::get().release_peer(*owner);
}

void judge_length(const Qp& qp, const PendingSend& send, Failure& failure) noexcept {
  failure.length = send.length;
  const bool too_short = is_atomic(send.opcode) && send.length < 8;
  failure.cause = too_short ? Cause::kRequestTooShort : Cause::kRequestTooLong;
  failure.room = too_short ? 8 : qp.datagrams != nullptr ? kMaxDatagram : kMaxMessage;
}

/// What a request names of the peer's memory.
KeyFacts remote_key(const PendingSend& send) noexcept {
  KeyFacts facts;
  facts.key = send.opcode == IBV_WR_SEND_WITH_INV ? send.immediate : send.rkey;
  facts.asked_at = send.remote_address;
  facts.asked_bytes = remote_bytes(send);
  facts.need = need_of(send.opcode, send.swap);
  return facts;
}

void judge_remote(const Qp& qp, const PendingSend& send, Failure& failure) noexcept {
  failure.cause = Cause::kRemoteKey;
  failure.key = remote_key(send);
  if (send.opcode == IBV_WR_SEND_WITH_INV)
    failure.key.fault = KeyFault::kNotEnded;
  else if (!judge_key(regions_of_peer(qp), failure.key, OpenToRequests{qp}))
    failure.key.fault = KeyFault::kNoMemory;
}

/// `rights`: the responder's, which of XRC is not where the memory is.
void judge_request(const Qp& qp, const PendingSend& send, std::uint32_t rights,
                   Failure& failure) noexcept {
  if (is_any_send(send.opcode)) {
    failure.cause = Cause::kMessageTooLong;
    failure.length = send.length;
    failure.room = qp.failures.refused_room;
    return;
  }
  failure.key = remote_key(send);
  failure.key.held = rights;
  failure.cause = (failure.key.held & failure.key.need) != failure.key.need ? Cause::kAccessFlags
                                                                            : Cause::kMisaligned;
}

/// The receive that the message used up, or would have.
void judge_peers_receive(const Qp& qp, const PendingSend& send, Failure& failure) noexcept {
  if (load_relaxed(qp.link.remote->refused) != 0 || !is_any_send(send.opcode)) {
    failure.cause = Cause::kReceiveGone;
    return;
  }
  failure.cause = Cause::kReceiveKey;
  failure.key.fault = KeyFault::kHidden;
  const ReceiveSge* const sges = qp.link.receive_sges;
  if (qp.shared.record != nullptr || sges == nullptr || qp.out.sent == 0) return;
  const std::uint32_t max_sge = qp.link.remote_max_sge;
  // The fault was published in its slot.
  KeyFacts facts =
      judge_sges(regions_of_peer(qp), qp.link.remote_pd, IBV_ACCESS_LOCAL_WRITE,
                 sges + ((qp.out.sent - 1) & qp.link.remote_rq_mask) * max_sge, max_sge);
  if (facts.fault == KeyFault::kNone) facts.fault = KeyFault::kNoMemory;
  failure.key = facts;
}

bool is_at_home(ibv_wc_status status) noexcept {
  return is_local_error(status) || status == IBV_WC_WR_FLUSH_ERR;
}

/// The connection that has met what the request met: of XRC the endpoint to its queue. nullptr:
/// none was made.
const Qp* way_of(Qp& qp, const PendingSend& send) noexcept {
  const Qp* const way = qp.xrc == XrcRole::kInitiator ? find_endpoint(qp, send.srqn) : &qp;
  return way != nullptr && way->link.remote != nullptr ? way : nullptr;
}

void judge_send(Qp& qp, const PendingSend& send, Failure& failure) noexcept {
  if (qp.link.remote == nullptr && !is_at_home(failure.status)) return;
  const Qp* const way = way_of(qp, send);
  const std::uint32_t rights = qp.link.remote == nullptr ? 0 : load_relaxed(qp.link.remote->access);
  const std::uint32_t need = send.opcode == IBV_WR_FLUSH ? 0 : remote_key(send).need;
  const bool may = (rights & need) == need;
  if (way == nullptr && !is_at_home(failure.status) && (is_any_send(send.opcode) || may)) {
    failure.cause = judge_queue(qp, send.srqn);
    return;
  }
  switch (failure.status) {
    case IBV_WC_LOC_PROT_ERR:
      return judge_local(qp, send, failure);
    case IBV_WC_LOC_LEN_ERR:
      return judge_length(qp, send, failure);
    case IBV_WC_LOC_QP_OP_ERR:
      failure.cause = send.is_foreign ? Cause::kForeignAddress : Cause::kNoRoom;
      return;
    case IBV_WC_MW_BIND_ERR:
      failure.cause = qp.sq.progress.wait == Wait::kQuiet ? Cause::kWindowInUse : Cause::kWindow;
      judge_window(qp, send, failure);
      return;
    case IBV_WC_REM_ACCESS_ERR:
      return judge_remote(*way, send, failure);
    case IBV_WC_REM_INV_REQ_ERR:
      return judge_request(way == nullptr ? qp : *way, send, rights, failure);
    case IBV_WC_REM_OP_ERR:
      return judge_peers_receive(*way, send, failure);
    case IBV_WC_RNR_RETRY_EXC_ERR:
      failure.cause = Cause::kNoReceive;
      failure.tries = qp.out.rnr_retry;
      failure.timer_code = load_relaxed(qp.link.remote->min_rnr_timer) & 31u;
      failure.timer_ns = rnr_timer_ns(failure.timer_code);
      return;
    default:
      return;
  }
}

}  // namespace

/// Of a datagram: who has the number, or the group. On another host, nobody that is known.
static void name_addressee(Failure& failure, const PendingSend& send) noexcept {
  if (send.to_group) {
    failure.place.kind = RemotePlace::Kind::kGid;
    failure.place.gid.global = {send.remote_address, send.swap};
  } else if (!send.is_lost) {
    failure.remote_qpn = send.rkey;
    name_owner(failure);
  }
}

void note_failed_send(Qp& qp, ibv_wc_status status) noexcept {
  if (knows_failure(qp, false)) return;
  Failure failure;
  failure.status = status;
  const bool by_peer = status == IBV_WC_RETRY_EXC_ERR;
  judge_peer(qp, failure, by_peer);
  if (qp.queued() != 0) {
    const PendingSend& send = qp.sq.store.at(qp.sq.head);
    failure.has_request = true;
    failure.wr_id = send.wr_id;
    failure.opcode = send.opcode;
    if (const std::uint64_t since = qp.sq.progress.waiting_since; since != 0)
      failure.waited_ns = now_ns() - since;
    if (qp.xrc == XrcRole::kInitiator) name_queue(failure, send.srqn);
    if (qp.datagrams != nullptr) name_addressee(failure, send);
    if (!by_peer) judge_send(qp, send, failure);
    // The connection is well: it is the queue's end that is not.
    if (by_peer && failure.srqn != 0 && failure.cause == Cause::kPeerSilent)
      failure.cause = judge_queue(qp, send.srqn);
  }
  remember(qp, failure);
}

void note_failed_receive(Qp& qp, const PostedReceive<ReceiveSge>& receive, std::uint64_t length,
                         ibv_wc_status status) noexcept {
  if (status == IBV_WC_WR_FLUSH_ERR) return;
  want_said_locked(qp);
  // An XRC queue has many connections, each of which fails once.
  if (!is_xrc_endpoint(qp) && knows_failure(qp, true)) return;
  Failure failure;
  failure.receives = true;
  failure.has_request = true;
  failure.status = status;
  failure.wr_id = receive.wr_id;
  judge_peer(qp, failure, false);
  if (qp.ep.parent != nullptr && qp.in.remote != nullptr)
    failure.remote_qpn = load_relaxed(qp.in.remote->speaks_for);
  if (is_xrc_endpoint(qp)) {
    failure.srqn = qp.ep.parent->own->qpn;
    failure.over_qpn = qp.plain.qp_num;
  }
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
      failure.cause = Cause::kMessageTooLong;
      failure.length = length;
      for (std::uint32_t i = 0; i < receive.num_sge; ++i) failure.room += receive.sges[i].length;
      failure.room -= failure.room < qp.headroom ? failure.room : qp.headroom;
      break;
    case IBV_WC_LOC_PROT_ERR:
      failure.cause = Cause::kReceiveKey;
      failure.key = judge_own_sges(qp, qp.srq != nullptr ? qp.srq->keys.pd : qp.pd_number,
                                   IBV_ACCESS_LOCAL_WRITE, receive.sges, receive.num_sge);
      break;
    case IBV_WC_LOC_QP_OP_ERR:
      failure.cause = Cause::kPeerBrokeRules;
      break;
    default:
      failure.cause = Cause::kWindow;
      failure.window = WindowFault::kNoLonger;
      break;
  }
  remember(qp, failure);
}

void note_suffered(Qp& qp, const Peer& peer, const AskedFacts& asked) noexcept {
  if (knows_failure(qp, true)) return;
  Failure failure;
  failure.receives = true;
  failure.status =
      asked.status == IBV_WC_REM_INV_REQ_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR;
  failure.remote_qpn = load_relaxed(qp.own->dest_qpn);
  failure.remote = name_of(peer);
  failure.opcode = static_cast<std::int32_t>(asked.opcode & 0xff);
  failure.key.key = asked.rkey;
  failure.key.asked_at = asked.address;
  failure.key.asked_bytes = asked.bytes;
  failure.key.need = need_of(asked.opcode, IBV_FLUSH_GLOBAL);
  if (failure.status == IBV_WC_REM_INV_REQ_ERR) {
    failure.key.held = load_relaxed(qp.own->access);
    failure.cause = (failure.key.held & failure.key.need) != failure.key.need ? Cause::kAccessFlags
                                                                              : Cause::kMisaligned;
  } else if (qp.xrc == XrcRole::kTarget) {
    // The memory is of the queue's process; what is known of it, we may not have met.
    name_queue(failure, asked.srqn);
    judge_memory_of_queue(asked.srqn, failure);
  } else {
    failure.cause = Cause::kRemoteKey;
    if (asked.opcode == IBV_WR_SEND_WITH_INV)
      failure.key.fault = KeyFault::kNotEnded;
    else if (!judge_key(own_regions(qp), failure.key, OpenToPeer{qp}))
      failure.key.fault = KeyFault::kNoMemory;
  }
  remember(qp, failure);
}

void note_ordered(Qp& qp) noexcept {
  Failure failure;
  failure.cause = Cause::kOrdered;
  failure.status = IBV_WC_WR_FLUSH_ERR;
  judge_peer(qp, failure, false);
  remember(qp, failure);
}

}  // namespace verbatim::shm
