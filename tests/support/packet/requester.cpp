// SPDX-License-Identifier: BSD-2-Clause
//
// Requests in their order, until they are acknowledged or answered: go-back-N (IBTA 9.7.3, 9.7.5.2.8).
// Each is one packet, so its number says its PSN. An answer counts only for the oldest request: what
// was answered out of turn is asked for again.
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

std::uint32_t psn_of(const Qp& qp, std::uint32_t request) {
  return (qp.attributes.sq_psn + request) & kPsnMask;
}

/// A request's packet, into the train. False: its own bytes are missing.
bool put(const Qp& qp, std::uint32_t i, std::vector<Packet>& train) {
  const Send& send = qp.sends.at(i);
  Packet packet{send, {}};
  packet.psn = psn_of(qp, i);
  const bool is_sound =
      returns_bytes(send.opcode) ||
      gather(qp.pd, qp.sends.sges_of(i), send.num_sge, send.is_inline, packet.bytes);
  if (is_sound) train.push_back(std::move(packet));
  return is_sound;
}

void send_again(Qp& qp) {
  std::vector<Packet> train;
  std::uint32_t i = qp.head;
  while (i != qp.sent && put(qp, i, train)) ++i;
  if (i == qp.head && i != qp.sent) return fail(qp, IBV_WC_LOC_PROT_ERR);
  qp.rests = false;
  qp.repeat_at = train.empty() ? kForEver : deadline(qp);
  world().link.send(std::move(train));
}

bool awaits_bytes(const Qp& qp) {
  for (std::uint32_t i = qp.head; i != qp.sent; ++i)
    if (returns_bytes(qp.sends.at(i).opcode)) return true;
  return false;
}

void transmit(Qp& qp) {
  std::vector<Packet> train;
  while (qp.sent != qp.tail && qp.state() == IBV_QPS_RTS) {
    if ((qp.sends.at(qp.sent).flags & IBV_SEND_FENCE) != 0 && awaits_bytes(qp)) break;
    if (put(qp, qp.sent, train)) {
      ++qp.sent;
      // Datagrams have happened when they are on their way.
      if (qp.plain.qp_type == IBV_QPT_UD) complete_oldest(qp, IBV_WC_SUCCESS);
    } else if (qp.head == qp.sent) {
      fail(qp, IBV_WC_LOC_PROT_ERR);
    } else {
      break;
    }
  }
  if (train.empty()) return;
  if (qp.repeat_at == kForEver) qp.repeat_at = deadline(qp);
  world().link.send(std::move(train));
}

void move_on(Qp& qp) {
  qp.tries = qp.not_ready = 0;
  qp.rests = false;
  qp.repeat_at = qp.awaits_answer() ? deadline(qp) : kForEver;
  transmit(qp);
  if (!qp.awaits_answer() && qp.state() == IBV_QPS_SQD && qp.drain.end())
    events_of(qp).raise(qp, IBV_EVENT_SQ_DRAINED);
}

/// Everything up to `psn` has been performed. Of what has an answer, that has been lost.
void acknowledge(Qp& qp, std::uint32_t psn) {
  const std::uint32_t before = qp.head;
  while (qp.awaits_answer() && distance(psn_of(qp, qp.head), psn) <= 0) {
    if (returns_bytes(qp.sends.at(qp.head).opcode)) return send_again(qp);
    complete_oldest(qp, IBV_WC_SUCCESS);
  }
  if (qp.head != before) move_on(qp);
}

void take_answer(Qp& qp, const Bytes& bytes) {
  const std::uint32_t count = qp.sends.at(qp.head).num_sge;
  if (scatter(qp.pd, qp.sends.sges_of(qp.head), count, bytes) != IBV_WC_SUCCESS)
    return fail(qp, IBV_WC_LOC_PROT_ERR);
  complete_oldest(qp, IBV_WC_SUCCESS);
  move_on(qp);
}

void wait_for_receive(Qp& qp, std::uint32_t timer) {
  if (qp.attributes.rnr_retry != 7 && ++qp.not_ready > qp.attributes.rnr_retry)
    return fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
  qp.tries = 0;
  qp.rests = true;
  qp.repeat_at = now_ns() + rnr_timer_ns(timer);
}

void hear(Qp& qp, const Packet& packet) {
  if (qp.state() != IBV_QPS_RTS && qp.state() != IBV_QPS_SQD) return;
  if (packet.kind == Kind::kAck) return acknowledge(qp, packet.psn);
  if (distance(packet.psn, psn_of(qp, qp.sent)) >= 0) return;
  acknowledge(qp, packet.psn - 1);
  // Not the oldest: it was, or is asked for again when an older one is.
  if (!qp.awaits_answer() || packet.psn != psn_of(qp, qp.head)) return;
  if (packet.kind == Kind::kAnswer) return take_answer(qp, packet.bytes);
  if (packet.kind == Kind::kRefused) return fail(qp, static_cast<ibv_wc_status>(packet.code));
  if (packet.kind == Kind::kOutOfOrder) return send_again(qp);
  wait_for_receive(qp, packet.code);
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
