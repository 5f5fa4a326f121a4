// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/receive/receive.hpp"

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/queues/arrival.hpp"
#include "providers/shm/queues/arrived.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/failures.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/queues/ud_role.hpp"
#include "providers/shm/receive/receive_fast.hpp"
#include "providers/shm/receive/receive_place.hpp"
#include "providers/shm/receive/receive_shared_fast.hpp"
#include "providers/shm/receive/receive_stream.hpp"
#include "providers/shm/windows/windows.hpp"
#include "runtime/base/log.hpp"
#include "runtime/sync/membarrier.hpp"

namespace verbatim::shm {
namespace {

/// Of the whole message.
std::uint64_t length_in(const Slot& slot, std::uint64_t h) noexcept {
  return header::kind(h) == SlotKind::kInline ? header::inline_length(h)
                                              : load_relaxed(slot.large.length);
}

/// Ends the receive in an error, and the QP with it once the CQ's lock is free.
Taken fail_receive(Qp& qp, std::uint64_t index, const Receive& receive, std::uint64_t length,
                   ibv_wc_status status, ibv_wc& wc) noexcept {
  note_failed_receive(qp, receive, length, status);
  fill_receive(wc, qp, receive.wr_id, 0, 0);
  wc.status = status;
  qp.own->errors.fetch_add(1, std::memory_order_relaxed);
  ++qp.in.failed_receives;
  finish_message(qp, index, 1);
  // Who is in the middle of it learns why, once it sees that we accept no more.
  if (status == IBV_WC_LOC_PROT_ERR) store_relaxed(qp.own->refused, 1u);
  // What its sender sent behind it is not taken any more: this is no honest one's session.
  qp.in.remote_session = ~std::uint64_t{0};
  qp.in.broken = true;
  qp.in.lied = qp.in.lied || status == IBV_WC_LOC_QP_OP_ERR;
  qp.recv_cq->marks |= Cq::kBroken;
  return Taken::kCompletion;
}

/// Makes the completion of a message of an endpoint that of the two ends which the application
/// knows. False: the receive has no memory for it.
bool describe_arrival(const Qp& endpoint, const LocalRange* room, std::uint32_t count,
                      const Slot& slot, std::uint64_t h, ibv_wc& wc) noexcept {
  // Before the others' words; XRC has no place for it, whatever its peer says.
  if (endpoint.headroom != 0 &&
      !endpoint.ep.parent->kind->show_path(endpoint, room, count, slot, h, wc))
    return false;
  wc.byte_len += endpoint.headroom;
  wc.src_qp = endpoint.in.source;
  wc.slid = endpoint.in.slid;
  return true;
}

/// No message of this sender is taken any more: an endpoint of datagrams ends, and nothing else.
/// `lied`: an honest one never comes to this.
void mute(Qp& endpoint, bool lied) noexcept {
  endpoint.in.remote_session = ~std::uint64_t{0};  // no honest sender's
  endpoint.in.is_muted = endpoint.in.broken = true;
  endpoint.in.lied = endpoint.in.lied || lied;
  endpoint.recv_cq->marks |= Cq::kBroken;
}

/// A receive that was taken for a datagram which proved to be none: it comes without a byte, as
/// its sender might have sent one, and flushes with the others where the queue pair has failed.
void fill_empty(ibv_wc& wc, const Qp& endpoint, std::uint64_t wr_id) noexcept {
  fill_receive(wc, endpoint, wr_id, endpoint.headroom, 0);
  wc.src_qp = endpoint.in.source;
  wc.slid = endpoint.in.slid;
  if (endpoint.ep.parent->mode.load(std::memory_order_acquire) == IBV_QPS_ERR)
    wc.status = IBV_WC_WR_FLUSH_ERR;
}

Taken take_empty(Qp& endpoint, std::uint64_t index, const Receive& receive, ibv_wc& wc) noexcept {
  fill_empty(wc, endpoint, receive.wr_id);
  finish_message(endpoint, index, 1);
  mute(endpoint, true);
  return Taken::kCompletion;
}

}  // namespace

Taken take_shared(Qp& qp, const Slot& slot, std::uint64_t h, ibv_wc& wc) noexcept {
  unsigned char* to;
  std::uint64_t wr_id;
  const unsigned char* from = slot.data;
  std::uint32_t bytes = header::inline_length(h);
  std::uint32_t lines = 1;
  bool whole = is_whole(qp, h);
  if (const std::uint64_t length = load_relaxed(slot.large.length);
      !whole && is_whole_long(qp, h, length)) {
    from += Slot::kLongAt;
    bytes = static_cast<std::uint32_t>(length);
    lines = lines_of(bytes);
    whole = true;
  }
  bool posted = false;
  if (whole) [[likely]] {
    LockGuard<BiasedLock> guard(qp.srq->lock);
    posted = use_up_for_small(*qp.srq, qp, bytes + qp.headroom, to, wr_id);
  }
  if (!posted) [[unlikely]]
    return take_slowly(qp, slot, h, wc);
  prefetch_arriving(qp.in.ring, (std::uint64_t{1} << qp.in.log) - 1, qp.in.line);
  finish_whole(qp, from, bytes, lines, h, to, wr_id, wc);
  return Taken::kCompletion;
}

namespace {

/// Keeps the pack in `slot`, the line of the next message. False: it is none.
bool open_next_pack(Qp& qp, const Slot& slot, std::uint64_t h) noexcept {
  if (!open_pack(qp.in.pack, qp.in.head.load(std::memory_order_relaxed), slot, h)) return false;
  qp.in.has_opened = true;
  ++qp.in.line;
  return true;
}

/// A message that was kept in a pack, with all that can be amiss.
Taken take_kept_slowly(Qp& qp, ibv_wc& wc) noexcept {
  Slot alone{};
  qp.in.pack.show(qp.in.head.load(std::memory_order_relaxed), alone);
  return take_slowly(qp, alone, qp.in.pack.header(), wc);
}

}  // namespace

Taken take_slowly(Qp& qp, const Slot& slot, std::uint64_t h, ibv_wc& wc) noexcept {
  if (qp.in.remote->tx_session.load(std::memory_order_acquire) != qp.in.remote_session)
    return Taken::kNothing;
  const std::uint64_t index = qp.in.head.load(std::memory_order_relaxed);
  SlotKind kind = header::kind(h);
  if (kind == SlotKind::kMoved) {
    std::uint64_t next;
    if (find_next_message(qp, next) != &slot) return Taken::kMoved;
  }
  if (kind == SlotKind::kPack && has_packs(qp) &&
      (qp.in.pack.has(index) || open_next_pack(qp, slot, h))) {
    if (take_run(qp, 1, &wc) == 1) return Taken::kCompletion;
    // As a message alone, with all that can be amiss; its sender may also have gone just now.
    return take_kept_slowly(qp, wc);
  }
  // One copy of the peer's words; they are judged and used from here.
  std::uint64_t length = length_in(slot, h);
  const std::uint64_t start = load_relaxed(slot.large.offset);
  std::uint32_t lines = 1;
  if (kind == SlotKind::kLines) {
    if (stands_side_by_side(qp, length)) {
      lines = lines_of(static_cast<std::uint32_t>(length));
    } else {
      kind = SlotKind::kMoved;  // as what leads nowhere
      length = 0;
    }
  }
  const bool is_datagram = qp.headroom != 0;
  const Verdict verdict =
      is_datagram ? qp.ep.parent->kind->judge(qp, index, kind, h, length, start) : Verdict::kSound;
  if (verdict != Verdict::kSound && held_for(qp, index) == nullptr) {
    mute(qp, verdict == Verdict::kLie);
    return Taken::kNothing;
  }
  TakenReceive scratch;
  Receive receive;
  if (!receive_for(qp, index, scratch, receive)) {
    if (qp.srq != nullptr) return Taken::kStarved;
    // No receive was posted for it: only a faulty sender does this. Nothing can be completed.
    qp.in.broken = qp.in.lied = true;
    qp.recv_cq->marks |= Cq::kBroken;
    return Taken::kNothing;
  }
  if (verdict != Verdict::kSound) return take_empty(qp, index, receive, wc);
  if (kind == SlotKind::kFault) {
    return fail_receive(qp, index, receive, start,
                        length == IBV_WC_LOC_LEN_ERR    ? IBV_WC_LOC_LEN_ERR
                        : length == IBV_WC_LOC_PROT_ERR ? IBV_WC_LOC_PROT_ERR
                        : is_xrc_endpoint(qp)           ? IBV_WC_WR_FLUSH_ERR  // see abort_stream()
                                                        : IBV_WC_LOC_QP_OP_ERR,
                        wc);
  }
  if (header::invalidates(h)) {
    switch (end_window(qp, index, header::immediate(h), EndedBy::kPoll)) {
      case Ended::kEnded:
        break;
      case Ended::kNotYet:
        hold(qp, index, scratch);
        return Taken::kNotYet;
      case Ended::kWrong:  // its owner was faster
        return fail_receive(qp, index, receive, length, IBV_WC_REM_INV_REQ_ERR, wc);
    }
  }
  LocalRange ranges[kMaxSge];
  std::uint32_t count = 0;  // of those that were looked up: a lie about the rest moves nothing
  if (length > kMaxMessage) return fail_receive(qp, index, receive, length, IBV_WC_LOC_LEN_ERR, wc);
  const bool of_write = (header::flags(h) & header::kWriteImmediate) != 0;
  if (kind == SlotKind::kPlaced && !of_write) {
    // It came whole while its keys were sound; what has become of them since does not matter.
    if (length + qp.headroom > bytes_of(receive.sges, receive.num_sge))
      return fail_receive(qp, index, receive, length, IBV_WC_LOC_LEN_ERR, wc);
  } else if (!of_write && length + qp.headroom != 0) {
    const ibv_wc_status status = receive_ranges(qp, receive, length + qp.headroom, ranges);
    if (status != IBV_WC_SUCCESS) return fail_receive(qp, index, receive, length, status, wc);
    count = receive.num_sge;
  }
  switch (kind) {
    case SlotKind::kInline:
      if (length > Slot::kInlineBytes)
        return fail_receive(qp, index, receive, length, IBV_WC_LOC_QP_OP_ERR, wc);
      if (!scatter(ranges, count, qp.headroom, slot.data, length))
        return fail_receive(qp, index, receive, length, IBV_WC_LOC_PROT_ERR, wc);
      break;
    case SlotKind::kLines:
      if (!scatter(ranges, count, qp.headroom, slot.data + Slot::kLongAt, length))
        return fail_receive(qp, index, receive, length, IBV_WC_LOC_PROT_ERR, wc);
      break;
    case SlotKind::kWhole:
    case SlotKind::kStream: {
      if (index < qp.in.pulled.index) break;
      const Pull pull = kind == SlotKind::kWhole
                            ? pull_whole(qp, length, start, ranges, count)
                            : pull_stream(qp, slot, length, start, ranges, count, length);
      if (pull == Pull::kPart) {
        hold(qp, index, scratch);
        return Taken::kNotYet;
      }
      if (pull == Pull::kMissing)
        return fail_receive(qp, index, receive, length, IBV_WC_LOC_PROT_ERR, wc);
      if (pull == Pull::kBroken && is_datagram) return take_empty(qp, index, receive, wc);
      if (pull == Pull::kBroken)
        return fail_receive(qp, index, receive, length, IBV_WC_LOC_QP_OP_ERR, wc);
      break;
    }
    case SlotKind::kPlaced:
      break;
    default:
      return fail_receive(qp, index, receive, length, IBV_WC_LOC_QP_OP_ERR, wc);
  }
  fill_receive(wc, qp, receive.wr_id, static_cast<std::uint32_t>(length), h);
  if (qp.ep.parent != nullptr && !describe_arrival(qp, ranges, count, slot, h, wc))
    return fail_receive(qp, index, receive, length, IBV_WC_LOC_PROT_ERR, wc);
  count_received(qp, length);
  if (header::invalidates(h)) {
    wc.wc_flags |= IBV_WC_WITH_INV;
    wc.invalidated_rkey = header::immediate(h);
  }
  finish_message(qp, index, lines);
  return Taken::kCompletion;
}

namespace {

/// The message at the head will never be whole: the shared receive that was taken for it flushes.
bool flush_unfinished(Qp& qp, ibv_wc& wc) noexcept {
  const std::uint64_t index = qp.in.head.load(std::memory_order_relaxed);
  if (qp.srq == nullptr || held_for(qp, index) == nullptr) return false;
  fill_receive(wc, qp, held_for(qp, index)->receive.wr_id, 0, 0);
  wc.status = IBV_WC_WR_FLUSH_ERR;
  ++qp.in.failed_receives;
  finish_message(qp, index, 1);
  return true;
}

/// What an endpoint holds that is not heard any more.
int empty_held(Qp& endpoint, int room, ibv_wc* wc, bool& more) noexcept {
  int got = 0;
  for (std::uint32_t i = 0; i < endpoint.in.held_capacity && endpoint.in.held_count != 0; ++i) {
    HeldReceive& held = endpoint.in.held[i];
    if (held.index == HeldReceive::kNone) continue;
    if (got == room) {
      more = true;
      break;
    }
    fill_empty(wc[got++], endpoint, held.receive.wr_id);
    held.index = HeldReceive::kNone;
    --endpoint.in.held_count;
  }
  return got;
}

/// The posted receives of a UD queue pair in the error state.
int flush_datagrams(Qp& qp, int room, ibv_wc* wc, bool& more) noexcept {
  int got = 0;
  TakenReceive taken;
  if (qp.datagrams->inbox == nullptr) return 0;
  for (; got < room && take_receive(qp, taken); ++got) {
    fill_receive(wc[got], qp, taken.wr_id, 0, 0);
    wc[got].status = IBV_WC_WR_FLUSH_ERR;
    qp.own->errors.fetch_add(1, std::memory_order_relaxed);
  }
  more = got == room;
  return got;
}

/// Of a queue pair that has failed. Whoever posts one after this has said that there is none looks
/// at the state behind it, and announces it.
bool has_receive_to_flush(const Qp& qp) noexcept {
  const std::uint64_t head = qp.in.head.load(std::memory_order_relaxed);
  if (head != qp.rq.tail.load(std::memory_order_acquire)) return true;
  if (qp.srq != nullptr) return false;  // it has none of its own
  // Pairs with announce_if_failed().
  Process::get().fence_everyone();
  return head != qp.rq.tail.load(std::memory_order_acquire);
}

}  // namespace

int take_first(Qp& qp, int room, ibv_wc* wc, bool& more) noexcept {
  std::uint64_t h;
  more = false;
  if (room > 0 && qp.in.ring != nullptr && !qp.in.is_muted &&
      qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR && !qp.in.has_kept()) {
    // As find_next_message(), of a ring that its sender has not left.
    const Slot& slot = qp.in.ring[qp.in.line & ((std::uint64_t{1} << qp.in.log) - 1)];
    h = slot.header.load(std::memory_order_acquire);
    if (header::lap(h) != header::lap_of(qp.in.line, qp.in.log)) return 0;
    if (header::kind(h) != SlotKind::kMoved && take_message(qp, slot, h, *wc) == Taken::kCompletion)
      return 1;
  }
  return take_all(qp, room, wc, more);
}

int take_all(Qp& qp, int room, ibv_wc* wc, bool& more) noexcept {
  int got = 0;
  more = false;
  if (attach_receiver(qp)) {
    for (;;) {
      std::uint64_t h;
      const Slot* const slot = find_next_message(qp, h);
      if (slot == nullptr) break;
      if (got == room) {
        more = true;
        return got;
      }
      // Asked before the look: a sender that is not at it now will find the session closed, so what
      // the look does not find whole stays unfinished for ever.
      const bool closed = qp.mode.load(std::memory_order_acquire) == IBV_QPS_ERR &&
                          qp.own->accepts.load(std::memory_order_seq_cst) == 0 &&
                          !sender_is_busy(qp);
      const bool is_kept = qp.in.pack.has(qp.in.head.load(std::memory_order_relaxed));
      const Taken taken = !is_kept                         ? take_message(qp, *slot, h, wc[got])
                          : take_run(qp, 1, &wc[got]) == 1 ? Taken::kCompletion
                                                           : take_kept_slowly(qp, wc[got]);
      if (taken == Taken::kNotYet) {
        if (closed) {
          if (flush_unfinished(qp, wc[got])) ++got;
          // Nothing is taken from there any more: its receive flushes with the others.
          qp.in.ring = nullptr;
          qp.in.remote_session = ~std::uint64_t{0};
          break;
        }
        more = true;
        return got;
      }
      if (taken == Taken::kMoved) {  // just now: its sender is at it
        more = true;
        return got;
      }
      if (taken == Taken::kStarved) break;
      if (taken == Taken::kNothing) {
        qp.in.ring = nullptr;
        break;
      }
      ++got;
    }
  }
  if (qp.in.is_muted) return got + empty_held(qp, room - got, wc + got, more);
  if (qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR) return got;
  if (qp.datagrams != nullptr) return got + flush_datagrams(qp, room - got, wc + got, more);
  // What had been sent before the error is delivered; the rest of the receives flush.
  while (has_receive_to_flush(qp)) {
    if (got == room || sender_is_busy(qp)) {
      more = true;
      return got;
    }
    if (qp.in.ring == nullptr && attach_receiver(qp))
      return got + take_all(qp, room - got, wc + got, more);
    const std::uint64_t index = qp.in.head.load(std::memory_order_relaxed);
    fill_receive(wc[got], qp, qp.rq.store.wr_ids[qp.rq.store.at(index)], 0, 0);
    wc[got++].status = IBV_WC_WR_FLUSH_ERR;
    qp.own->errors.fetch_add(1, std::memory_order_relaxed);
    ++qp.in.failed_receives;
    finish_receive(qp, index, qp.in.line);
  }
  say_last_receive(qp);
  return got;
}

std::uint64_t pull_messages(Qp& qp) noexcept {
  constexpr std::uint64_t kMost = 64u << 10;
  LockGuard<BiasedLock> guard(qp.recv_cq->lock);
  const std::uint32_t mode = qp.mode.load(std::memory_order_acquire);
  if (mode < IBV_QPS_RTR || mode == IBV_QPS_ERR ||
      (qp.srq == nullptr && qp.rq.store.sges == nullptr) || qp.in.broken || !attach_receiver(qp) ||
      qp.in.remote->tx_session.load(std::memory_order_acquire) != qp.in.remote_session)
    return 0;
  // Odd, with a full fence, before any key is looked up: as for a peer's requests.
  live.service_active.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t copied = 0;
  // Also leaves a ring that its sender has left.
  std::uint64_t h;
  (void)find_next_message(qp, h);
  const std::uint64_t head = qp.in.head.load(std::memory_order_relaxed);
  if (qp.in.pulled.index <= head) qp.in.pulled = next_arrival(qp);
  // What a sender writes ever anew has an end.
  const std::uint64_t end = qp.in.pulled.line + (std::uint64_t{1} << kMostRingLog);
  while (copied < kMost && qp.in.pulled.line < end) {
    Arrival at = qp.in.pulled;
    const std::uint64_t index = at.index;
    const Slot* const found = find_arrival(qp, at, h);
    if (found == nullptr) break;
    const Slot& slot = *found;
    const SlotKind kind = header::kind(h);
    const auto pass = [&] {
      pass_arrival(qp, at, slot, h);
      qp.in.pulled = at;
    };
    if (kind == SlotKind::kPack && has_packs(qp) && messages_in(h) != 0) {
      pass();
      continue;
    }
    const std::uint64_t length = length_in(slot, h);
    const std::uint64_t start = load_relaxed(slot.large.offset);
    // What is wrong with it is for the poll to say.
    if (qp.headroom != 0 &&
        qp.ep.parent->kind->judge(qp, index, kind, h, length, start) != Verdict::kSound)
      break;
    if (header::invalidates(h) &&
        end_window(qp, index, header::immediate(h), EndedBy::kServiceThread) != Ended::kEnded)
      break;
    if (kind == SlotKind::kWhole || kind == SlotKind::kStream) {
      TakenReceive scratch;
      Receive receive;
      LocalRange ranges[kMaxSge];
      if (!can_hold(qp, index) || !receive_for(qp, index, scratch, receive)) break;
      hold(qp, index, scratch);
      if (length > kMaxMessage ||
          receive_ranges(qp, receive, length + qp.headroom, ranges) != IBV_WC_SUCCESS)
        break;
      const std::uint64_t before = qp.in.stream_taken;
      const Pull pull = kind == SlotKind::kWhole
                            ? pull_whole(qp, length, start, ranges, receive.num_sge)
                            : pull_stream(qp, slot, length, start, ranges, receive.num_sge, kMost);
      if (pull == Pull::kBroken || pull == Pull::kMissing) break;
      if (pull == Pull::kPart) {
        copied += qp.in.stream_taken - before;
        break;
      }
      copied += kind == SlotKind::kWhole ? length : length - before;
    } else if (kind != SlotKind::kInline && kind != SlotKind::kLines && kind != SlotKind::kPlaced) {
      break;
    }
    pass();
  }
  live.service_active.fetch_add(1, std::memory_order_release);
  return copied;
}

}  // namespace verbatim::shm
