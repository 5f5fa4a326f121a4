// SPDX-License-Identifier: BSD-2-Clause
//
// Requests in their order, until they are acknowledged or answered: go-back-N (IBTA 9.7.3, 9.7.5.2.8).
#include <utility>

#include "runtime/time/clock.hpp"
#include "runtime/verbs/software/operations.hpp"
#include "tests/support/packet/objects.hpp"

namespace verbatim::packet {

void send(Packet&& packet) {
  std::vector<Packet> train;
  train.push_back(std::move(packet));
  world().link.send(std::move(train));
}

std::uint64_t deadline(const Qp& qp) {
  const std::uint64_t span = ack_timeout_ns(qp.attributes.timeout);
  return span == kForEver ? kForEver : now_ns() + span;
}

/// A request's packet, into the train. False: its own bytes are missing.
bool put(const Qp& qp, std::uint32_t i, std::vector<Packet>& train) {
  const Send& send = qp.sends.at(i);
  Packet packet{send, {}};
  const bool is_sound =
      returns_bytes(send.opcode) ||
      gather(qp.pd, qp.sends.sges_of(i), send.num_sge, send.is_inline, packet.bytes);
  if (is_sound) train.push_back(std::move(packet));
  return is_sound;
}

void send_again(Qp& qp) {
  qp.rests = false;
  std::vector<Packet> train;
  for (std::uint32_t i = qp.head; i != qp.tail; ++i) {
    const Send& send = qp.sends.at(i);
    if (!send.was_sent || send.is_answered || put(qp, i, train)) continue;
    if (i == qp.head) return fail(qp, IBV_WC_LOC_PROT_ERR);
    break;
  }
  qp.repeat_at = train.empty() ? kForEver : deadline(qp);
  world().link.send(std::move(train));
}

/// Datagrams have happened when they are on their way.
void transmit_datagrams(Qp& qp) {
  std::vector<Packet> train;
  while (qp.state() == IBV_QPS_RTS && qp.head != qp.tail) {
    if (put(qp, qp.head, train))
      complete(qp, qp.sends.at(qp.head++), IBV_WC_SUCCESS);
    else
      fail(qp, IBV_WC_LOC_PROT_ERR);
  }
  world().link.send(std::move(train));
}

void transmit(Qp& qp) {
  std::vector<Packet> train;
  bool awaits_answer = false;
  if (qp.plain.qp_type == IBV_QPT_UD) return transmit_datagrams(qp);
  for (std::uint32_t i = qp.head; i != qp.tail && qp.state() == IBV_QPS_RTS; ++i) {
    Send& send = qp.sends.at(i);
    if (!send.was_sent) {
      if (awaits_answer && (send.flags & IBV_SEND_FENCE) != 0) break;
      send.psn = qp.next_psn;
      if (!put(qp, i, train)) {
        if (i == qp.head) return fail(qp, IBV_WC_LOC_PROT_ERR);
        break;
      }
      qp.next_psn = (qp.next_psn + 1) & kPsnMask;
      send.was_sent = true;
    }
    awaits_answer = awaits_answer || (returns_bytes(send.opcode) && !send.is_answered);
  }
  if (train.empty()) return;
  if (qp.repeat_at == kForEver) qp.repeat_at = deadline(qp);
  world().link.send(std::move(train));
}

/// Everything up to `psn` has been performed; what has an answer needs that, too.
void acknowledge(Qp& qp, std::uint32_t psn) {
  bool moved = false;
  while (qp.awaits_answer()) {
    const Send& oldest = qp.sends.at(qp.head);
    if (distance(oldest.psn, psn) > 0 && !oldest.is_answered) break;
    if (returns_bytes(oldest.opcode) && !oldest.is_answered) return send_again(qp);
    complete(qp, oldest, IBV_WC_SUCCESS);
    ++qp.head;
    moved = true;
  }
  if (!moved) return;
  transmit(qp);
  qp.tries = qp.not_ready = 0;
  qp.rests = false;
  const bool waits = qp.awaits_answer();
  qp.repeat_at = waits ? deadline(qp) : kForEver;
  if (!waits && qp.state() == IBV_QPS_SQD && std::exchange(qp.drains, false))
    events_of(qp).raise(qp, IBV_EVENT_SQ_DRAINED);
}

void hear(Qp& qp, Packet& packet) {
  if (qp.state() != IBV_QPS_RTS && qp.state() != IBV_QPS_SQD) return;
  const auto is_asked = [&](std::uint32_t i) {
    return i != qp.tail && qp.sends.at(i).was_sent && qp.sends.at(i).psn == packet.psn;
  };
  std::uint32_t asked = qp.head;
  while (asked != qp.tail && !is_asked(asked)) ++asked;
  if (packet.kind == Kind::kAck) return acknowledge(qp, packet.psn);
  if (asked == qp.tail) return;  // of an earlier try
  if (packet.kind == Kind::kAnswer) {
    Send& send = qp.sends.at(asked);
    if (send.is_answered) return;
    send.is_answered =
        scatter(qp.pd, qp.sends.sges_of(asked), send.num_sge, packet.bytes) == IBV_WC_SUCCESS;
    if (send.is_answered) return acknowledge(qp, packet.psn);
  }
  acknowledge(qp, (packet.psn - 1) & kPsnMask);
  // An older one without its answer comes again, and this one with it.
  if (!is_asked(qp.head)) return;
  if (packet.kind == Kind::kAnswer) return fail(qp, IBV_WC_LOC_PROT_ERR);
  if (packet.kind == Kind::kRefused) return fail(qp, static_cast<ibv_wc_status>(packet.code));
  if (packet.kind == Kind::kOutOfOrder) return send_again(qp);
  if (qp.attributes.rnr_retry != 7 && ++qp.not_ready > qp.attributes.rnr_retry)
    return fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
  qp.tries = 0;
  qp.rests = true;
  qp.repeat_at = now_ns() + rnr_timer_ns(packet.code);
}

void repeat_late(std::uint64_t now) {
  for (const auto& [number, qp] : world().queue_pairs) {
    if (now < qp->repeat_at) continue;
    // A wait that the responder asked for is no try (IBTA 9.7.5.2.8).
    if (!qp->rests && ++qp->tries > qp->attributes.retry_cnt)
      fail(*qp, IBV_WC_RETRY_EXC_ERR);
    else
      send_again(*qp);
  }
}

}  // namespace verbatim::packet
