// SPDX-License-Identifier: BSD-2-Clause
//
// Requests in their order, until they are acknowledged or answered: go-back-N (IBTA 9.7.3, 9.7.5.2.8).
#include <algorithm>
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

void send_again(Qp& qp) {
  qp.rests = false;
  std::vector<Packet> train;
  for (const Send& send : qp.sends)
    if (send.was_sent && !send.is_answered) train.push_back(send.packet);
  qp.repeat_at = train.empty() ? kForEver : deadline(qp);
  world().link.send(std::move(train));
}

/// Datagrams have happened when they are on their way.
void transmit_datagrams(Qp& qp) {
  while (qp.state() == IBV_QPS_RTS && !qp.sends.empty()) {
    Send& oldest = qp.sends.front();
    if (!oldest.is_inline && !gather(qp.pd, oldest.pieces, false, oldest.packet.bytes))
      return fail(qp, IBV_WC_LOC_PROT_ERR);
    complete(qp, oldest, IBV_WC_SUCCESS);
    send(std::move(oldest.packet));
    qp.sends.pop_front();
  }
}

void transmit(Qp& qp) {
  std::vector<Packet> train;
  bool awaits_answer = false;
  if (qp.plain.qp_type == IBV_QPT_UD) return transmit_datagrams(qp);
  for (Send& send : qp.sends) {
    if (qp.state() != IBV_QPS_RTS) break;
    Packet& packet = send.packet;
    if (!send.was_sent) {
      if (awaits_answer && (packet.flags & IBV_SEND_FENCE) != 0) break;
      const bool is_sound = returns_bytes(packet.opcode) || send.is_inline ||
                            gather(qp.pd, send.pieces, false, packet.bytes);
      if (!is_sound) {
        packet.bytes.clear();
        if (&send == &qp.sends.front()) return fail(qp, IBV_WC_LOC_PROT_ERR);
        break;
      }
      packet.psn = qp.next_psn;
      qp.next_psn = (qp.next_psn + 1) & kPsnMask;
      send.was_sent = true;
      train.push_back(packet);
    }
    awaits_answer = awaits_answer || (returns_bytes(packet.opcode) && !send.is_answered);
  }
  if (train.empty()) return;
  if (qp.repeat_at == kForEver) qp.repeat_at = deadline(qp);
  world().link.send(std::move(train));
}

/// Everything up to `psn` has been performed; what has an answer needs that, too.
void acknowledge(Qp& qp, std::uint32_t psn) {
  bool moved = false;
  while (!qp.sends.empty() && qp.sends.front().was_sent &&
         (distance(qp.sends.front().packet.psn, psn) <= 0 || qp.sends.front().is_answered)) {
    const Send& oldest = qp.sends.front();
    if (returns_bytes(oldest.packet.opcode) && !oldest.is_answered) return send_again(qp);
    complete(qp, oldest, IBV_WC_SUCCESS);
    qp.sends.pop_front();
    moved = true;
  }
  if (!moved) return;
  transmit(qp);
  qp.tries = qp.not_ready = 0;
  qp.rests = false;
  const bool waits = !qp.sends.empty() && qp.sends.front().was_sent;
  qp.repeat_at = waits ? deadline(qp) : kForEver;
  if (!waits && qp.state() == IBV_QPS_SQD && std::exchange(qp.drains, false))
    raise(qp, IBV_EVENT_SQ_DRAINED);
}

void hear(Qp& qp, Packet& packet) {
  if (qp.state() != IBV_QPS_RTS && qp.state() != IBV_QPS_SQD) return;
  const auto is_asked = [&](const Send& send) {
    return send.was_sent && send.packet.psn == packet.psn;
  };
  const auto asked = std::find_if(qp.sends.begin(), qp.sends.end(), is_asked);
  switch (packet.kind) {
    case Kind::kAnswer:
      if (asked == qp.sends.end() || asked->is_answered) return;
      if (scatter(qp.pd, asked->pieces.data(), asked->pieces.size(), packet.bytes) !=
          IBV_WC_SUCCESS) {
        acknowledge(qp, (packet.psn - 1) & kPsnMask);
        // An older one without its answer comes again, and this one with it.
        if (qp.sends.empty() || !is_asked(qp.sends.front())) return;
        return fail(qp, IBV_WC_LOC_PROT_ERR);
      }
      asked->is_answered = true;
      return acknowledge(qp, packet.psn);
    case Kind::kAck:
      return acknowledge(qp, packet.psn);
    default:
      break;
  }
  if (asked == qp.sends.end()) return;  // of an earlier try
  acknowledge(qp, (packet.psn - 1) & kPsnMask);
  if (qp.sends.empty() || !is_asked(qp.sends.front())) return;
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
