// SPDX-License-Identifier: BSD-2-Clause
//
// An element keeps what was in it until it is used again. The driver does not write into it how it
// ended, so of several with one wr_id only what they have in common is known. What lies in the
// queues is the kernel's word too, so its numbers are bounded.
#include "providers/siw/failed_request.hpp"

#include <algorithm>
#include <cstring>

#include "providers/siw/objects.hpp"
#include "providers/uverbs/connection.hpp"

namespace verbatim::siw {
namespace {

using uverbs::SeenRequest;

template <class Element>
void read_list(const Element& element, SeenRequest& out) noexcept {
  const std::uint32_t count = std::min<std::uint32_t>(element.num_sge, kMostSges);
  for (std::uint32_t i = 0; i < count; ++i) {
    out.bytes += element.sge[i].length;
    out.add(element.sge[i].laddr, element.sge[i].length, element.sge[i].lkey);
  }
}

std::int32_t opcode_of(unsigned opcode) noexcept {
  switch (opcode) {
    case SIW_OP_WRITE:
      return IBV_WR_RDMA_WRITE;
    case SIW_OP_READ:
      return IBV_WR_RDMA_READ;
    case SIW_OP_SEND:
      return IBV_WR_SEND;
    case SIW_OP_SEND_REMOTE_INV:
      return IBV_WR_SEND_WITH_INV;
    default:
      return -1;
  }
}

SeenRequest read(const siw_sqe& element) noexcept {
  SeenRequest one;
  one.opcode = opcode_of(element.opcode);
  one.remote_key = element.rkey;
  one.remote_address = element.raddr;
  read_list(element, one);
  // The flag that tells of bytes in the element is gone when the kernel has taken it; what stands
  // in the place of their piece is no memory.
  if (element.sge[0].laddr == 0 && element.sge[0].lkey == 0) one.sge_count = 0;
  return one;
}

SeenRequest read(const siw_rqe& element) noexcept {
  SeenRequest one;
  read_list(element, one);
  return one;
}

bool is_same(const SeenRequest& a, const SeenRequest& b) noexcept {
  return a.opcode == b.opcode && a.remote_key == b.remote_key &&
         a.remote_address == b.remote_address && a.bytes == b.bytes && a.sge_count == b.sge_count &&
         std::memcmp(a.sges, b.sges, a.sge_count * sizeof(ibv_sge)) == 0;
}

template <class Element>
void find_locked(const WorkRing<Element>& ring, std::uint64_t wr_id, SeenRequest& out) noexcept {
  bool ambiguous = false;
  const SeenRequest::Side side = out.side;
  ring.show([&](const Element& element) {
    if (element.id != wr_id) return;
    const SeenRequest one = read(element);
    ambiguous |= out.found && !is_same(out, one);
    out = one;
    out.found = true;
  });
  if (ambiguous) out = {};
  out.side = side;
}

/// The driver's completions say of which queue they are, in error too.
void find_request(uverbs::Qp& base, const ibv_cq&, const ibv_wc& wc, SeenRequest& out) noexcept {
  Qp& qp = static_cast<Qp&>(base);
  if (wc.opcode != IBV_WC_RECV) {
    out.side = SeenRequest::Side::kSend;
    // Its holder may be this very thread, between ibv_wr_start and ibv_wr_complete.
    if (!qp.send_lock.try_lock()) return;
    find_locked(qp.send_ring, wc.wr_id, out);
    qp.send_lock.unlock();
    return;
  }
  out.side = SeenRequest::Side::kReceive;
  if (qp.plain.srq != nullptr) {
    Srq& srq = static_cast<Srq&>(verbatim::Srq::from(qp.plain.srq));
    const LockGuard guard(srq.lock);
    find_locked(srq.ring, wc.wr_id, out);
  } else if (qp.receive_ring.mapped()) {
    const LockGuard guard(qp.receive_lock);
    find_locked(qp.receive_ring, wc.wr_id, out);
  }
}

/// No queue pair of iWARP has a number at its other end; where that is the connection manager
/// knows.
void see_ends(uverbs::Qp& base, Failure& out) noexcept {
  Qp& qp = static_cast<Qp&>(base);
  // Nothing but success leaves a connection alive.
  const bool failed = qp.failed.load(std::memory_order_relaxed) || out.status != IBV_WC_SUCCESS;
  out.own_state = failed ? IBV_QPS_ERR : state_of(qp);
}

}  // namespace

constinit const uverbs::FailureEyes failure_eyes{find_request, see_ends, uverbs::see_peer};

}  // namespace verbatim::siw
