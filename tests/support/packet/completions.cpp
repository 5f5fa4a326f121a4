// SPDX-License-Identifier: BSD-2-Clause
//
// What is told of requests and receives, and how queue pairs end.
#include <utility>

#include "runtime/verbs/opcodes.hpp"
#include "runtime/verbs/software/operations.hpp"
#include "runtime/verbs/software/soft_comp_channel.hpp"
#include "tests/support/packet/objects.hpp"

namespace verbatim::packet {
void tell(Cq& cq) {
  const auto makes_event = [&cq](const Stored& stored) noexcept {
    return armed::is_met(cq.armed, stored.is_solicited || stored.wc.status != IBV_WC_SUCCESS);
  };
  if (!completions::tell_next(cq, cq.told, makes_event)) return;
  cq.armed = armed::kForNothing;
  static_cast<SoftCompChannel&>(CompChannel::from(cq.plain.channel)).notify(cq);
}

void store(Cq& cq, const Stored& stored) {
  std::uint32_t number;
  if (completions::store(cq, stored, number)) return tell(cq);
  if (!std::exchange(cq.has_overrun, true)) events_of(cq).raise(cq, IBV_EVENT_CQ_ERR);
}

ibv_wc completion(const Qp& qp, std::uint64_t wr_id, ibv_wc_opcode opcode, ibv_wc_status status) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.opcode = opcode;
  wc.status = status;
  wc.qp_num = qp.plain.qp_num;
  return wc;
}

void complete_oldest(Qp& qp, ibv_wc_status status) {
  const std::uint32_t number = qp.head++;
  const Send& send = qp.sends.at(number);
  const bool is_signaled = qp.signal_all || (send.flags & IBV_SEND_SIGNALED) != 0;
  if (status == IBV_WC_SUCCESS && !is_signaled) return;
  ibv_wc wc = completion(qp, send.wr_id, completed_as(send.opcode), status);
  if (returns_bytes(send.opcode)) wc.byte_len = static_cast<std::uint32_t>(send.length);
  store(*qp.send_cq, {wc, &qp, number, true});
}

void complete(Qp& qp, const Receive& receive, ibv_wc_status status) {
  store(*qp.receive_cq, {completion(qp, receive.wr_id, IBV_WC_RECV, status), &qp, 0, false});
}

void forget_completions(Qp& qp) {
  for (Cq* const cq : {qp.send_cq, qp.receive_cq})
    completions::forget(
        *cq, [&](const Stored& stored) { return stored.owner == &qp; },
        [](std::uint32_t, std::uint32_t) {});
}

void flush_sends(Qp& qp) {
  while (qp.head != qp.tail) complete_oldest(qp, qp.first_error.take());
  qp.sent = qp.tail;
}

void flush(Qp& qp) {
  flush_sends(qp);
  for (ReceiveQueue& own = qp.receives; own.waiting() != 0; ++own.taken)
    complete(qp, own.receive(own.taken), IBV_WC_WR_FLUSH_ERR);
  qp.repeat_at = kForEver;
}

void end(Qp& qp) {
  flush(qp);
  if (qp.srq != nullptr) events_of(qp).raise(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void enter_error(Qp& qp) {
  if (qp.state() == IBV_QPS_ERR) return;
  qp.plain.state = IBV_QPS_ERR;
  end(qp);
}

void fail(Qp& qp, ibv_wc_status status) {
  qp.first_error.set(status);
  if (qp.plain.qp_type != IBV_QPT_UD) return enter_error(qp);
  // IBTA 10.3.1.6: a datagram's error ends the send queue alone.
  qp.plain.state = IBV_QPS_SQE;
  flush_sends(qp);
}

}  // namespace verbatim::packet
