// SPDX-License-Identifier: BSD-2-Clause
//
// What comes is performed once, in order, and answered, also when it comes again (IBTA 9.7.4, 9.7.5).
#include <cstring>
#include <utility>

#include "runtime/verbs/software/atomics.hpp"
#include "runtime/verbs/software/operations.hpp"
#include "runtime/verbs/software/routing_header.hpp"
#include "tests/support/packet/objects.hpp"

namespace verbatim::packet {

void answer(const Qp& qp, const Packet& to, Kind kind, std::uint32_t psn, std::uint32_t code = 0,
            Bytes&& bytes = {}) {
  Packet packet;
  packet.kind = kind;
  packet.to = to.from;
  packet.from = qp.plain.qp_num;
  packet.psn = psn & kPsnMask;
  packet.code = code;
  packet.bytes = std::move(bytes);
  send(std::move(packet));
}

/// Tells the requester why, and ends the queue pair. Always false, which callers hand on.
bool refuse(Qp& qp, const Packet& packet, ibv_wc_status status, ibv_event_type type) {
  answer(qp, packet, Kind::kRefused, packet.psn, static_cast<std::uint32_t>(status));
  events_of(qp).raise(qp, type);
  enter_error(qp);
  return false;
}

Receive take_receive(Qp& qp) {
  ReceiveQueue& queue = qp.from();
  const Receive receive = queue.receive(queue.taken++);
  if (qp.srq != nullptr) tell_if_low_locked(*qp.srq);
  return receive;
}

void tell_of(Qp& qp, const Receive& receive, const Packet& packet, std::uint32_t headroom) {
  ibv_wc wc = completion(qp, receive.wr_id, IBV_WC_RECV, IBV_WC_SUCCESS);
  wc.byte_len = static_cast<std::uint32_t>(packet.bytes.size()) + headroom;
  if (packet.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    wc.byte_len = static_cast<std::uint32_t>(packet.length);
  }
  if (packet.opcode == IBV_WR_SEND_WITH_IMM || packet.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = packet.immediate;
  }
  if (headroom != 0) {
    if (packet.path.is_global != 0) wc.wc_flags |= IBV_WC_GRH;
    wc.src_qp = packet.from;
    wc.slid = 1;
    wc.sl = packet.path.sl;
  }
  store(*qp.receive_cq, {wc, &qp, 0, false, (packet.flags & IBV_SEND_SOLICITED) != 0});
}

/// The bytes of ours that a request names; none, if it names none. False: it was refused.
bool find_named(Qp& qp, const Packet& packet, std::uint64_t bytes, unsigned char*& at) {
  at = nullptr;
  const KeyUse use{packet.rkey, remote_access_for(packet.opcode, 0), packet.address, bytes};
  if (use.need == 0 || bytes == 0) return true;
  if (is_atomic(packet.opcode) && packet.address % 8 != 0)
    return refuse(qp, packet, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  const auto admits = [&](const KeyMeaning& key) {
    return holder::is_open_to(key.pd, qp.pd, qp.plain.qp_num);
  };
  KeyMeaning meaning;
  std::uint64_t offset = 0;
  if ((qp.attributes.qp_access_flags & use.need) == 0 ||
      authorize(world().keys.view(), use, admits, meaning, offset) != KeyFault::kNone)
    return refuse(qp, packet, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  at = reinterpret_cast<unsigned char*>(meaning.address + offset);
  return true;
}

/// Performs a request. False: it was refused, or finds no receive.
bool perform(Qp& qp, const Packet& packet, Bytes& answered) {
  const bool takes_receive = !returns_bytes(packet.opcode) && packet.opcode != IBV_WR_RDMA_WRITE;
  unsigned char* at;
  if (!find_named(qp, packet, packet.length, at)) return false;
  if (packet.opcode == IBV_WR_RDMA_READ) answered.assign(at, at + packet.length);
  if (is_atomic(packet.opcode)) {
    const std::uint64_t old =
        perform_atomic(reinterpret_cast<std::uint64_t*>(at),
                       packet.opcode == IBV_WR_ATOMIC_CMP_AND_SWP, packet.compare_add, packet.swap);
    answered.resize(sizeof old);
    std::memcpy(answered.data(), &old, sizeof old);
    qp.atomics[packet.psn] = answered;
    // More cannot come again than a send queue holds.
    qp.atomics.erase((packet.psn - kLimits.max_wr) & kPsnMask);
  }
  if (takes_receive && qp.from().waiting() == 0)
    return answer(qp, packet, Kind::kNotReady, packet.psn, qp.attributes.min_rnr_timer), false;
  if (at != nullptr && !returns_bytes(packet.opcode))
    std::memcpy(at, packet.bytes.data(), packet.length);
  if (!takes_receive) return true;
  const Receive receive = take_receive(qp);
  if (is_any_send(packet.opcode)) {
    const ibv_wc_status status = scatter(qp.pd, receive.sges, receive.num_sge, packet.bytes);
    if (status != IBV_WC_SUCCESS) {
      complete(qp, receive, status);
      return status == IBV_WC_LOC_LEN_ERR
                 ? refuse(qp, packet, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR)
                 : refuse(qp, packet, IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
    }
  }
  tell_of(qp, receive, packet, 0);
  return true;
}

/// Performs a request that is new. One that was performed before is only answered again, but a READ
/// reads again. False as of perform().
bool perform_or_repeat(Qp& qp, const Packet& packet, bool is_new, Bytes& answered) {
  if (is_new || packet.opcode == IBV_WR_RDMA_READ) return perform(qp, packet, answered);
  if (is_atomic(packet.opcode)) answered = qp.atomics[packet.psn];
  return true;
}

void respond(Qp& qp, const Packet& packet) {
  if (packet.from != qp.attributes.dest_qp_num) return;
  if (qp.state() == IBV_QPS_RTR && packet.psn == qp.expected && !std::exchange(qp.was_heard, true))
    events_of(qp).raise(qp, IBV_EVENT_COMM_EST);
  const std::int32_t ahead = distance(packet.psn, qp.expected);
  if (ahead > 0) {
    if (!std::exchange(qp.has_complained, true)) answer(qp, packet, Kind::kOutOfOrder, qp.expected);
    return;
  }
  Bytes answered;
  // What came behind a request that found no receive comes again with it.
  if (ahead == 0) qp.has_complained = true;
  if (!perform_or_repeat(qp, packet, ahead == 0, answered)) return;
  if (ahead == 0) {
    qp.has_complained = false;
    qp.expected = (qp.expected + 1) & kPsnMask;
  }
  if (returns_bytes(packet.opcode))
    answer(qp, packet, Kind::kAnswer, packet.psn, 0, std::move(answered));
  else
    answer(qp, packet, Kind::kAck, ahead == 0 ? packet.psn : qp.expected - 1);
}

void take_datagram(Qp& qp, Packet& packet) {
  if (packet.rkey != qp.attributes.qkey || qp.from().waiting() == 0) return;
  const Receive receive = take_receive(qp);
  unsigned char header[sizeof(ibv_grh)];
  DatagramPath path{.source = own_gid(), .destination = packet.path.grh.dgid};
  path.payload = static_cast<std::uint32_t>(packet.bytes.size());
  write_routing_header(path, header);
  Bytes whole(header, header + sizeof header);
  whole.insert(whole.end(), packet.bytes.begin(), packet.bytes.end());
  if (const ibv_wc_status status = scatter(qp.pd, receive.sges, receive.num_sge, whole);
      status != IBV_WC_SUCCESS)
    return complete(qp, receive, status), enter_error(qp);
  tell_of(qp, receive, packet, sizeof header);
}

}  // namespace verbatim::packet
