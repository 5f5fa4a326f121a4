// SPDX-License-Identifier: BSD-2-Clause
//
// Our own keys are judged once more, after the kernel, against what was registered. A region may
// have changed since; then that is said, never a reason that only looks right. Of the peer's keys
// nothing is known but what was asked.
#include "providers/uverbs/failure_judge.hpp"

#include <algorithm>

#include "providers/uverbs/queue_pairs.hpp"
#include "runtime/verbs/software/operations.hpp"

namespace verbatim::uverbs {
namespace {

bool is_of_keys(std::int32_t opcode) noexcept {
  return opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW;
}

std::uint32_t remote_need(const SeenRequest& seen) noexcept {
  const std::uint32_t need = remote_access_for(static_cast<unsigned>(seen.opcode), seen.flush_type);
  return need != 0 ? need : unsigned{IBV_ACCESS_REMOTE_WRITE};
}

/// IBTA 9.4.5, A19: those that move 8 bytes at once move a whole word.
bool needs_alignment(std::int32_t opcode) noexcept {
  return is_atomic(static_cast<unsigned>(opcode)) || opcode == IBV_WR_ATOMIC_WRITE;
}

KeyFault fault_of(const RegionFacts& region, const ibv_pd* pd, const KeyFacts& facts) noexcept {
  if (pd != nullptr && region.pd != pd->handle) return KeyFault::kDomain;
  if ((region.access & facts.need) != facts.need) return KeyFault::kRight;
  const bool inside = facts.asked_at >= region.first && facts.asked_bytes <= region.bytes &&
                      facts.asked_at - region.first <= region.bytes - facts.asked_bytes;
  return inside ? KeyFault::kNone : KeyFault::kBounds;
}

/// The first piece that is not good for `need`; else the last one, of which nothing is wrong now.
/// False: there is no piece.
bool judge_pieces(Qp& qp, const SeenRequest& seen, const ibv_pd* pd, std::uint32_t need,
                  KeyFacts& facts) noexcept {
  RegionTable& regions = context_of(qp).regions;
  std::uint64_t left = seen.bytes;
  bool any = false;
  for (std::uint32_t i = 0; i < seen.sge_count; ++i) {
    const ibv_sge& piece = seen.sges[i];
    const std::uint64_t bytes = std::min<std::uint64_t>(piece.length, left);
    left -= bytes;
    if (bytes == 0) continue;
    any = true;
    facts = {};
    facts.sge = static_cast<std::int16_t>(i);
    facts.key = piece.lkey;
    facts.need = need;
    facts.asked_at = piece.addr;
    facts.asked_bytes = bytes;
    facts.fault = KeyFault::kUnknown;
    RegionFacts region;
    if (!regions.find(piece.lkey, region)) return true;
    facts.held = region.access;
    facts.first = region.first;
    facts.bytes = region.bytes;
    facts.fault = fault_of(region, pd, facts);
    if (facts.fault != KeyFault::kNone) return true;
  }
  return any;
}

/// Statuses that a bad piece can end in; which one a driver takes differs.
bool is_at_home(ibv_wc_status status) noexcept {
  return status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_QP_OP_ERR ||
         status == IBV_WC_LOC_ACCESS_ERR || status == IBV_WC_LOC_EEC_OP_ERR ||
         status == IBV_WC_GENERAL_ERR;
}

/// Only those that are about memory are proof enough when nothing is wrong with it now.
bool is_about_memory(ibv_wc_status status) noexcept {
  return status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_ACCESS_ERR;
}

void judge_pieces_as(Cause cause, Qp& qp, const SeenRequest& seen, const ibv_pd* pd,
                     std::uint32_t need, Failure& failure) noexcept {
  KeyFacts facts;
  if (!judge_pieces(qp, seen, pd, need, facts)) return;
  if (facts.fault == KeyFault::kNone && !is_about_memory(failure.status)) return;
  failure.cause = cause;
  failure.key = facts;
}

void judge_receive(Qp& qp, const SeenRequest& seen, Failure& failure) noexcept {
  if (!seen.found) return;
  if (failure.status == IBV_WC_LOC_LEN_ERR || failure.status == IBV_WC_REM_INV_REQ_ERR) {
    failure.cause = Cause::kMessageUnseen;
    failure.room = seen.bytes;
    return;
  }
  if (!is_at_home(failure.status)) return;
  const ibv_pd* const pd = qp.plain.srq != nullptr ? qp.plain.srq->pd : qp.plain.pd;
  judge_pieces_as(Cause::kReceiveKey, qp, seen, pd, IBV_ACCESS_LOCAL_WRITE, failure);
}

void judge_refused(const SeenRequest& seen, Failure& failure) noexcept {
  if (is_any_send(static_cast<unsigned>(seen.opcode))) {
    failure.cause = Cause::kReceiveUnseen;
    failure.length = seen.bytes;
    failure.key.key = seen.opcode == IBV_WR_SEND_WITH_INV ? seen.remote_key : 0;
    return;
  }
  failure.cause = Cause::kMemoryUnseen;
  failure.key.key = seen.remote_key;
  failure.key.asked_at = seen.remote_address;
  failure.key.asked_bytes = seen.bytes;
  failure.key.need = remote_need(seen);
  if (needs_alignment(seen.opcode) && seen.remote_address % 8 != 0)
    failure.cause = Cause::kMisaligned;
}

/// What is wrong with the region of a bind (IBTA C10-72 to C10-75); of the window nothing is seen.
void judge_bind(Qp& qp, const SeenRequest& seen, Failure& failure) noexcept {
  constexpr unsigned kWriters = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  RegionFacts region;
  if (!context_of(qp).regions.find(seen.window_region, region)) {
    failure.window = WindowFault::kNoRegion;
    return;
  }
  KeyFacts& key = failure.key;
  key.need = seen.window_access;
  key.held = region.access;
  key.asked_at = seen.remote_address;
  key.asked_bytes = seen.bytes;
  key.first = region.first;
  key.bytes = region.bytes;
  if (qp.plain.pd != nullptr && region.pd != qp.plain.pd->handle)
    failure.window = WindowFault::kDomain;
  else if ((region.access & IBV_ACCESS_MW_BIND) == 0)
    failure.window = WindowFault::kUnbindable;
  else if ((region.access & IBV_ACCESS_ZERO_BASED) != 0)
    failure.window = WindowFault::kBasedRegion;
  else if ((key.need & kWriters) != 0 && (region.access & IBV_ACCESS_LOCAL_WRITE) == 0)
    failure.window = WindowFault::kUnwritable;
  else if (key.asked_at < region.first || key.asked_bytes > region.bytes ||
           key.asked_at - region.first > region.bytes - key.asked_bytes)
    failure.window = WindowFault::kBounds;
}

void judge_send(Qp& qp, const SeenRequest& seen, Failure& failure) noexcept {
  if (failure.status == IBV_WC_RETRY_EXC_ERR) failure.cause = Cause::kNoAnswer;
  if (failure.status == IBV_WC_RNR_RETRY_EXC_ERR) failure.cause = Cause::kNotReady;
  if (!seen.found) return;
  failure.opcode = seen.opcode;
  if (seen.datagram_qpn != 0) failure.remote_qpn = seen.datagram_qpn;
  if (is_of_keys(seen.opcode)) {
    if (failure.status == IBV_WC_RETRY_EXC_ERR) return;
    failure.cause = Cause::kWindow;
    failure.key.key = seen.remote_key;
    if (seen.opcode == IBV_WR_LOCAL_INV)
      failure.window = WindowFault::kNotBound;
    else if (seen.bytes != 0)
      judge_bind(qp, seen, failure);
    return;
  }
  if (failure.status == IBV_WC_REM_ACCESS_ERR || failure.status == IBV_WC_REM_INV_REQ_ERR ||
      failure.status == IBV_WC_REM_OP_ERR)
    return judge_refused(seen, failure);
  if (!is_at_home(failure.status)) return;
  const bool fetches = returns_bytes(static_cast<unsigned>(seen.opcode));
  judge_pieces_as(Cause::kLocalKey, qp, seen, qp.plain.pd,
                  fetches ? unsigned{IBV_ACCESS_LOCAL_WRITE} : 0u, failure);
}

}  // namespace

void judge_request(Qp& qp, const SeenRequest& seen, Failure& failure) noexcept {
  if (failure.receives)
    judge_receive(qp, seen, failure);
  else
    judge_send(qp, seen, failure);
}

}  // namespace verbatim::uverbs
