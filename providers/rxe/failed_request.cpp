// SPDX-License-Identifier: BSD-2-Clause
//
// A slot keeps what was in it until it is used again. The driver writes into a send element how it
// ended, and nothing of the kind into a receive: of receives with one wr_id, only what they have in
// common is known. What lies in the rings is the kernel's word too, so its numbers are bounded.
#include "providers/rxe/failed_request.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "providers/rxe/objects.hpp"
#include "providers/rxe/request_fast.hpp"

namespace verbatim::rxe {
namespace {

using uverbs::SeenRequest;

template <class Element>
void read_list(const Queue& queue, const Element& element, SeenRequest& out) noexcept {
  const std::uint32_t count = std::min(element.dma.num_sge, sges_in<Element>(queue.element_size()));
  const auto* const tail = reinterpret_cast<const unsigned char*>(&element) + sizeof element;
  out.bytes = element.dma.length;
  for (std::uint32_t i = 0; i < count; ++i) {
    rxe_sge sge;
    std::memcpy(&sge, tail + i * sizeof sge, sizeof sge);
    out.add(sge.addr, sge.length, sge.lkey);
  }
}

bool is_known(std::uint32_t opcode) noexcept {
  return opcode <= IBV_WR_SEND_WITH_INV || opcode == IBV_WR_FLUSH || opcode == IBV_WR_ATOMIC_WRITE;
}

/// The address of a placement is the one that was asked for last: a repeated request has another
/// one (tests/support/quirks.hpp), which the driver counts no further.
void read_send(const Qp& qp, const SendElement& element, SeenRequest& out) noexcept {
  const std::uint32_t opcode = element.wr.opcode;
  out.found = true;
  out.opcode = is_known(opcode) ? static_cast<std::int32_t>(opcode) : -1;
  if (qp.plain.qp_type == IBV_QPT_UD) {
    out.datagram_qpn = element.wr.wr.ud.remote_qpn;
  } else if (is_atomic(opcode)) {
    out.remote_key = element.wr.wr.atomic.rkey;
    out.remote_address = element.wr.wr.atomic.remote_addr;
  } else if (opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_LOCAL_INV) {
    out.remote_key = element.wr.ex.invalidate_rkey;
  } else if (opcode == IBV_WR_FLUSH) {
    const FlushWords words = flush_of(element);
    out.remote_key = words.rkey;
    out.remote_address = element.iova;
    out.flush_type = words.type;
  } else if (opcode == IBV_WR_ATOMIC_WRITE) {
    out.remote_key = element.wr.wr.rdma.rkey;
    out.remote_address = element.iova;
  } else if (opcode == IBV_WR_BIND_MW) {
    out.remote_key = element.wr.wr.mw.rkey;
    out.remote_address = element.wr.wr.mw.addr;
    out.window_region = element.wr.wr.mw.mr_lkey;
    out.window_access = element.wr.wr.mw.access;
  } else if (opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM) {
    out.remote_key = element.wr.wr.rdma.rkey;
    out.remote_address = element.wr.wr.rdma.remote_addr;
  }
  read_list(qp.send_ring, element, out);
  if (opcode == IBV_WR_BIND_MW) out.bytes = element.wr.wr.mw.length;
  if ((element.wr.send_flags & IBV_SEND_INLINE) != 0) out.sge_count = 0;
}

/// Whether the send queue shows a request that ended so.
bool find_send(Qp& qp, const ibv_wc& wc, SeenRequest& out) noexcept {
  // Its holder may be this very thread, between ibv_wr_start and ibv_wr_complete.
  if (!qp.send_lock.try_lock()) return false;
  // What the driver took last is looked at first: after an error of datagrams it goes on.
  const std::uint32_t taken =
      std::atomic_ref(qp.send_ring.ring()->consumer_index).load(std::memory_order_acquire);
  for (std::uint32_t i = 0; !out.found && i <= qp.send_ring.mask(); ++i) {
    const auto& element = *static_cast<const SendElement*>(qp.send_ring.element(taken - 1 - i));
    if (element.wr.wr_id == wc.wr_id && element.status == static_cast<unsigned>(wc.status))
      read_send(qp, element, out);
  }
  qp.send_lock.unlock();
  return out.found;
}

bool is_same_list(const SeenRequest& a, const SeenRequest& b) noexcept {
  return a.bytes == b.bytes && a.sge_count == b.sge_count &&
         std::memcmp(a.sges, b.sges, a.sge_count * sizeof(ibv_sge)) == 0;
}

void find_receive_locked(const Queue& queue, std::uint64_t wr_id, SeenRequest& out) noexcept {
  for (std::uint32_t i = 0; i <= queue.mask(); ++i) {
    const auto& element = *static_cast<const ReceiveElement*>(queue.element(i));
    if (element.wr_id != wr_id) continue;
    SeenRequest one;
    read_list(queue, element, one);
    if (out.found && !is_same_list(out, one)) {
      out = {};
      return;
    }
    one.found = true;
    out = one;
  }
}

void find_receive(Qp& qp, std::uint64_t wr_id, SeenRequest& out) noexcept {
  if (qp.plain.srq != nullptr) {
    Srq& srq = static_cast<Srq&>(verbatim::Srq::from(qp.plain.srq));
    const LockGuard guard(srq.lock);
    find_receive_locked(srq.ring, wr_id, out);
  } else if (qp.receive_ring.mapped()) {
    const LockGuard guard(qp.receive_lock);
    find_receive_locked(qp.receive_ring, wr_id, out);
  }
}

/// What the requester is told by the responder, or by its silence.
bool is_of_sends(ibv_wc_status status) noexcept {
  return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_OP_ERR ||
         status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
         status == IBV_WC_MW_BIND_ERR;
}

/// The driver does not say of which queue a completion in error is.
void find_request(uverbs::Qp& base, const ibv_cq& cq, const ibv_wc& wc, SeenRequest& out) noexcept {
  Qp& qp = static_cast<Qp&>(base);
  if (&cq == qp.plain.send_cq && find_send(qp, wc, out)) {
    out.side = SeenRequest::Side::kSend;
    return;
  }
  if (&cq != qp.plain.recv_cq || is_of_sends(wc.status)) {
    out.side = SeenRequest::Side::kSend;
    return;
  }
  find_receive(qp, wc.wr_id, out);
  if (out.found || &cq != qp.plain.send_cq) out.side = SeenRequest::Side::kReceive;
}

}  // namespace

constinit const uverbs::FailureEyes failure_eyes{find_request, uverbs::ask_for_ends, nullptr};

}  // namespace verbatim::rxe
