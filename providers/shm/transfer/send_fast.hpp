// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_post_send on RC: the whole journey of a small message out.
//
// What runs here: one SGE, the QP in RTS, attached, nothing waiting before us; SEND that fits a
// slot, and RDMA WRITE, READ and atomics on memory that we have mapped. Everything else takes
// post_slowly(), which can do all that is done here too. The work is done when the call returns: a
// SEND lies in the ring against a receive that the peer had posted, a WRITE lies in the peer's
// memory. Its completion is stored at once.
#pragma once

#include <cerrno>

#include "providers/shm/transfer/post_lock.hpp"
#include "providers/shm/transfer/send_moves.hpp"

namespace verbatim::shm {

/// A WRITE up to this size is copied here; a longer one in chunks, so that a deregistration need
/// not wait for all of it.
inline constexpr std::uint64_t kFastWriteBytes = 16u << 10;

inline bool is_send(const ibv_send_wr& wr) noexcept {
  return wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM;
}

/// A posted request's one piece.
struct PostedPiece {
  const Qp& qp;
  const ibv_send_wr& wr;
  const ibv_sge& sge;
  std::uint64_t most_inline;
  std::uint64_t most;
  std::uint32_t flags;  ///< of the header, by its opcode

  [[gnu::always_inline]] bool find(const unsigned char*& from) const noexcept {
    from = reinterpret_cast<const unsigned char*>(sge.addr);
    if ((wr.send_flags & IBV_SEND_INLINE) != 0) return sge.length <= most_inline;
    return sge.length <= most &&
           find_local_bytes(qp.keys(), sge.lkey, sge.addr, sge.length, 0, from);
  }
  [[gnu::always_inline]] std::uint64_t header() const noexcept {
    return send_header(flags, wr.send_flags, wr.imm_data);
  }
};

/// May requests be performed at once? If so, until the send lock is let go or one took the general
/// way.
inline bool is_ready(const Qp& qp) noexcept {
  // The peer's half may have left at any time; our odd active word makes it wait for us from here
  // on.
  return qp.link.fast &&
         qp.link.remote->accepts.load(std::memory_order_acquire) == qp.link.remote_session;
}

/// How a request that was performed at once completes.
struct Performed {
  std::uint16_t opcode;          ///< ibv_wc_opcode
  std::uint32_t returned_bytes;  ///< of a READ, and of an atomic
  std::uint32_t bytes = 0;       ///< of all its pieces
};

/// A READ or an atomic of one piece, from memory that is mapped. False: nothing was done.
[[gnu::noinline]] bool fetch_at_once(Qp& qp, const ibv_send_wr& wr, Performed& as) noexcept;

/// A READ, an atomic, or a SEND to shared receives. REQUIRES: is_ready(qp).
[[gnu::always_inline]] inline bool perform_fast(Qp& qp, const ibv_send_wr& wr,
                                                Performed& as) noexcept {
  if (!is_send(wr)) {
    if (!fetch_at_once(qp, wr, as)) return false;
    as.bytes = wr.sg_list->length;
    return true;
  }
  as = {IBV_WC_SEND, 0};
  return qp.shared.record != nullptr && put_shared_now(qp, qp, wr, 0, 0, as.bytes);
}

/// Takes the lock of a queue that has room for a completion and nobody to tell of it.
[[gnu::always_inline]] inline bool take_quiet(Cq& cq) noexcept {
  if (!take_as_owner(cq)) [[unlikely]]
    return false;
  const std::uint32_t used =
      cq.tail.load(std::memory_order_relaxed) - cq.head.load(std::memory_order_relaxed);
  if (used <= cq.mask && cq.times == nullptr &&
      cq.armed->load(std::memory_order_relaxed) == CqRecord::kIdle) [[likely]]
    return true;
  cq.lock.let_go_as_owner();
  return false;
}

/// What is asked of perform_one().
struct OneRequest {
  std::uint64_t wr_id;
  std::uint64_t address;  ///< of a WRITE
  std::uint32_t rkey;     ///< of a WRITE
  std::uint32_t bytes;
  bool is_write;
};

/// A WRITE of at most 64 B, or a SEND to receives of the peer's own.
template <class Piece>
struct MoveFast {
  Qp& qp;
  const Piece& piece;

  [[gnu::always_inline]] bool operator()(const OneRequest& request) const noexcept {
    if (request.is_write)
      return request.bytes <= 64 && Writes::is_known(qp, request.rkey) &&
             Writes(qp.direct.write).put(request.address, request.bytes, piece);
    if (request.bytes > Slot::kInlineBytes) return false;
    Sends sends(qp);
    if (!sends.put_one(request.bytes, piece)) return false;
    qp.out.sent = sends.sent;
    qp.out.ring.next = sends.line;
    // Whoever turned it on since has fenced us, and looks at the ring before it sleeps; or sees the
    // bell.
    if (must_ring(qp)) [[unlikely]] {
      ask_for_next_slot(qp);
      ring_peer(qp, (header::flags(piece.header()) & header::kSolicited) != 0);
    } else {
      ask_for_slot(qp, qp.in.head.load(std::memory_order_relaxed));
    }
    return true;
  }
};

/// A single request under the send lock, which it lets go: `move(request)` moves its bytes, with
/// no more than stores. Nothing is called on the way to a peer that polls, so no registers have to
/// be saved for it.
/// False: nothing was done.
template <bool kDomain, bool kSignaled, class Move>
[[gnu::always_inline]] inline bool perform_one(Qp& qp, const OneRequest& request,
                                               const Move& move) noexcept {
  if (!qp.has_place()) [[unlikely]]
    return false;
  if constexpr (!kSignaled) {
    if (!move(request)) [[unlikely]]
      return false;
    qp.take_places(1);
  } else {
    Cq& cq = *qp.send_cq;
    if (!take_quiet(cq)) [[unlikely]]
      return false;
    if (!move(request)) [[unlikely]] {
      cq.lock.let_go_as_owner();
      return false;
    }
    const std::uint32_t tail = cq.tail.load(std::memory_order_relaxed);
    cq.ring[tail & cq.mask] = {
        request.wr_id,
        &qp,
        0,
        qp.take_places(1),
        static_cast<std::uint16_t>(request.is_write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND),
        IBV_WC_SUCCESS,
        true,
        0};
    cq.tail.store(tail + 1, std::memory_order_relaxed);
    cq.lock.let_go_as_owner();
  }
  qp.count_sent(request.bytes);
  PostLock<kDomain>::let_go(qp);
  return true;
}

/// The same of a WRITE of at most 64 B, or of a SEND to a queue pair with receives of its own.
template <bool kDomain, bool kSignaled, class Piece>
[[gnu::always_inline]] inline bool perform_one_fast(Qp& qp, const OneRequest& request,
                                                    const Piece& piece) noexcept {
  if (!is_ready(qp)) [[unlikely]]
    return false;
  // To shared receives: not after the completion's lock has been taken for it.
  if (!request.is_write && qp.link.credits == nullptr) return false;
  return perform_one<kDomain, kSignaled>(qp, request, MoveFast<Piece>{qp, piece});
}

/// The only request of a list, if it completes with a word or without as kSignaled says.
template <bool kDomain, bool kSignaled>
[[gnu::always_inline]] inline bool post_one_fast(Qp& qp, const ibv_send_wr& wr) noexcept {
  const bool is_signaled = (wr.send_flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all;
  if (is_signaled != kSignaled || wr.next != nullptr || wr.num_sge != 1) return false;
  const ibv_sge& sge = *wr.sg_list;
  const bool is_write = wr.opcode == IBV_WR_RDMA_WRITE;
  if (!is_write && wr.opcode != IBV_WR_SEND) return false;
  return perform_one_fast<kDomain, kSignaled>(
      qp, {wr.wr_id, wr.wr.rdma.remote_addr, wr.wr.rdma.rkey, sge.length, is_write},
      PostedPiece{qp, wr, sge, Slot::kInlineBytes, Slot::kInlineBytes, 0});
}

/// A SEND that does not fit a line, to a queue pair with receives of its own, and its completion.
/// False: nothing was done. The send lock is held, and stays so; no completion queue's is.
[[gnu::noinline]] bool perform_long(Qp& qp, const ibv_send_wr& wr) noexcept;

/// The same of the only request of a list; lets the lock go.
template <bool kDomain>
[[gnu::always_inline]] inline bool post_one_long(Qp& qp, const ibv_send_wr& wr) noexcept {
  if (wr.next != nullptr || !is_send(wr) || !perform_long(qp, wr)) return false;
  PostLock<kDomain>::let_go(qp);
  return true;
}

/// May the two, of which the first one is a SEND of one piece, share a slot?
[[gnu::always_inline]] inline bool shares_slot(const ibv_send_wr& wr,
                                               const ibv_send_wr* next) noexcept {
  return next != nullptr && wr.opcode == IBV_WR_SEND && next->opcode == IBV_WR_SEND &&
         ((wr.send_flags | next->send_flags) & IBV_SEND_SOLICITED) == 0 && next->num_sge == 1 &&
         next->sg_list->length == wr.sg_list->length;
}

/// Performs SENDs from `wr` on, as many as are of one piece that fits a line, each with a receive
/// of the peer's own. What ends the run is returned: nullptr, or a request that is none, or that
/// takes the general way. What the run needs is in registers, and little is stored but the
/// messages: while the lines of the ring come from the receiver's core, stores wait, and a core has
/// no room for more than some dozens. REQUIRES: is_ready(qp), qp.credits.
[[gnu::always_inline]] inline ibv_send_wr* run_posted_sends(
    Qp& qp, ibv_send_wr* wr, Counts& counts, CompletionWriter& completions) noexcept {
  Sends sends(qp);
  std::uint32_t room = qp.sq_entries - counts.in_send_queue(qp);
  unsigned any = 0;
  while (wr != nullptr && room != 0) {
    if (!is_send(*wr) || wr->num_sge != 1) break;
    const ibv_send_wr& first = *wr;
    const std::uint32_t bytes = first.sg_list->length;
    const std::uint64_t most = sends.most_in_slot(qp, bytes, shares_slot(first, first.next));
    if (most == 0) break;
    const std::uint32_t count = sends.put_some(
        bytes, most < room ? most : room,
        [&](const unsigned char*& from) {
          return PostedPiece{qp, *wr, *wr->sg_list, Slot::kInlineBytes, Slot::kInlineBytes, 0}.find(
              from);
        },
        [&] {
          const ibv_send_wr& put = *wr;
          any |= put.send_flags;
          if ((put.send_flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all)
            completions.push(
                {put.wr_id, &qp, 0, counts.next(), IBV_WC_SEND, IBV_WC_SUCCESS, true, 0});
          counts.add(bytes);
          wr = put.next;
          return shares_slot(put, wr);
        },
        [&] {
          return send_header(first.opcode == IBV_WR_SEND_WITH_IMM ? header::kImmediate : 0u,
                             first.send_flags, first.imm_data);
        });
    if (count == 0) break;
    room -= count;
  }
  const std::uint64_t sent = sends.sent - qp.out.sent;
  sends.put_back(qp);
  if (sent != 0 && must_ring(qp)) [[unlikely]]
    ring_peer(qp, (any & IBV_SEND_SOLICITED) != 0);
  return wr;
}

/// The same of WRITEs with one key.
[[gnu::always_inline]] inline ibv_send_wr* run_posted_writes(
    Qp& qp, ibv_send_wr* wr, Counts& counts, CompletionWriter& completions) noexcept {
  const std::uint32_t rkey = wr->wr.rdma.rkey;
  if (!Writes::find(qp, rkey)) return wr;
  const Writes writes(qp.direct.write);
  std::uint32_t room = qp.sq_entries - counts.in_send_queue(qp);
  for (; wr != nullptr && room != 0; wr = wr->next, --room) {
    if (wr->opcode != IBV_WR_RDMA_WRITE || wr->wr.rdma.rkey != rkey || wr->num_sge != 1) break;
    const std::uint32_t bytes = wr->sg_list->length;
    if (!writes.put(wr->wr.rdma.remote_addr, bytes,
                    PostedPiece{qp, *wr, *wr->sg_list, qp.max_inline, kFastWriteBytes, 0}))
      break;
    if ((wr->send_flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all)
      completions.push(
          {wr->wr_id, &qp, 0, counts.next(), IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS, true, 0});
    counts.add(bytes);
  }
  return wr;
}

/// Any list. The send lock is held, and stays so.
[[gnu::always_inline]] inline int perform_list_fast(Qp& qp, ibv_send_wr* wr,
                                                    ibv_send_wr** bad_wr) noexcept {
  CompletionWriter completions(*qp.send_cq);
  bool ready = is_ready(qp);
  Counts counts(qp);
  while (wr != nullptr) {
    const bool is_write = wr->opcode == IBV_WR_RDMA_WRITE;
    if (ready && (is_write || (is_send(*wr) && qp.link.credits != nullptr))) {
      ibv_send_wr* const behind = is_write ? run_posted_writes(qp, wr, counts, completions)
                                           : run_posted_sends(qp, wr, counts, completions);
      if (behind != wr) [[likely]] {
        wr = behind;
        continue;
      }
    }
    Performed as;
    if (counts.in_send_queue(qp) < qp.sq_entries && ready && perform_fast(qp, *wr, as)) [[likely]] {
      if ((wr->send_flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all)
        completions.push(
            {wr->wr_id, &qp, as.returned_bytes, counts.next(), as.opcode, IBV_WC_SUCCESS, true, 0});
      counts.add(as.bytes);
      wr = wr->next;
      continue;
    }
    completions.let_go();
    counts.put_back(qp);
    if (ready && perform_long(qp, *wr)) {
      counts = Counts(qp);
      wr = wr->next;
      continue;
    }
    if (const int error = post_slowly_locked(qp, *wr); error != 0) [[unlikely]] {
      *bad_wr = wr;
      return error;
    }
    ready = is_ready(qp);
    counts = Counts(qp);
    wr = wr->next;
  }
  counts.put_back(qp);
  return 0;
}

}  // namespace verbatim::shm
