// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/receive.hpp"

#include <cerrno>
#include <cstdlib>

#include "providers/shm/datagram.hpp"
#include "providers/shm/fabric/node.hpp"
#include "providers/shm/lane.hpp"
#include "providers/shm/live.hpp"
#include "providers/shm/null_memory.hpp"
#include "providers/shm/reach.hpp"
#include "providers/shm/receive_fast.hpp"
#include "providers/shm/shared_receive.hpp"
#include "providers/shm/windows.hpp"
#include "runtime/base/log.hpp"
#include "runtime/sync/membarrier.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// A flush waits this long for a sender in the middle of a message to finish it.
constexpr std::uint64_t kFlushPatienceNs = 100'000'000;

const Slot& next_in_ring(const Qp& qp, std::uint64_t index) noexcept {
  return qp.rx_ring[index & ((std::uint64_t{1} << qp.rx_log) - 1)];
}
std::uint32_t lap_in_ring(const Qp& qp, std::uint64_t index) noexcept {
  return (static_cast<std::uint32_t>(index >> qp.rx_log) + 1) & 0xffff;
}

/// The posted receive that a message goes to.
struct Receive {
  std::uint64_t wr_id;
  const ReceiveSge* sges;
  std::uint32_t num_sge;
};

Receive view(const TakenReceive& taken) noexcept {
  return {taken.wr_id, taken.sges, taken.num_sge};
}

HeldReceive* held_for(Qp& qp, std::uint64_t index) noexcept {
  HeldReceive& held = qp.held[index & (qp.held_capacity - 1)];
  return held.index == index ? &held : nullptr;
}

/// Finds the receive of message `index`, in `scratch` if it was taken from the shared queue just
/// now. False: none is posted.
bool receive_for(Qp& qp, std::uint64_t index, TakenReceive& scratch, Receive& out) noexcept {
  if (qp.srq == nullptr) {
    if (index == qp.rq_tail.load(std::memory_order_acquire)) return false;
    const std::uint64_t at = qp.rq.at(index);
    out = {qp.rq.wr_ids[at], qp.rq.sges_of(index), qp.rq.num_sge[at]};
    return true;
  }
  if (const HeldReceive* held = held_for(qp, index); held != nullptr) {
    out = view(held->receive);
    return true;
  }
  if (!take_receive(qp, scratch)) return false;
  out = view(scratch);
  return true;
}

/// The message is not whole yet: a receive that was taken for it stays with it.
void hold(Qp& qp, std::uint64_t index, const TakenReceive& taken) noexcept {
  if (qp.srq == nullptr || held_for(qp, index) != nullptr) return;
  qp.held[index & (qp.held_capacity - 1)] = {index, taken};
}

/// Makes room to hold the receives of all messages from the first not completed to `index`.
bool can_hold(Qp& qp, std::uint64_t index) noexcept {
  const std::uint64_t head = qp.rq_head.load(std::memory_order_relaxed);
  if (qp.srq == nullptr || index - head < qp.held_capacity) return true;
  const std::uint32_t capacity = 2 * qp.held_capacity;
  HeldReceive* more = make_held(capacity);
  if (more == nullptr) return false;
  for (std::uint64_t i = head; i != head + qp.held_capacity; ++i)
    if (const HeldReceive* held = held_for(qp, i); held != nullptr)
      more[i & (capacity - 1)] = *held;
  std::free(qp.held);
  qp.held = more;
  qp.held_capacity = capacity;
  return index - head < capacity;
}

/// The message is done with.
void finish(Qp& qp, std::uint64_t index) noexcept {
  if (qp.srq != nullptr) {
    if (HeldReceive* held = held_for(qp, index); held != nullptr) held->index = HeldReceive::kNone;
    qp.rq_tail.store(index + 1, std::memory_order_relaxed);  // never a receive of its own
  }
  finish_receive(qp, index);
}

/// The receive as ranges of our memory. A status other than SUCCESS: it cannot take `bytes`.
ibv_wc_status receive_ranges(const Qp& qp, const Receive& receive, std::uint64_t bytes,
                             LocalRange* out) noexcept {
  const std::uint32_t pd = qp.srq != nullptr ? qp.srq->keys.pd : qp.pd_number;
  std::uint64_t room = 0;
  for (std::uint32_t i = 0; i < receive.num_sge; ++i) {
    const ReceiveSge& sge = receive.sges[i];
    room += sge.length;
    out[i] = {nullptr, sge.length};
    if (sge.length == 0) continue;
    Region region;
    std::uint64_t offset;
    if (!find_region(qp.own_regions, qp.own_region_capacity, sge.lkey, region))
      return IBV_WC_LOC_PROT_ERR;
    if (is_null_memory(region, pd)) continue;
    if (region.pd != pd || (region.access & IBV_ACCESS_LOCAL_WRITE) == 0 ||
        !region.contains(sge.address, sge.length, offset))
      return IBV_WC_LOC_PROT_ERR;
    out[i].at = reinterpret_cast<unsigned char*>(region.address + offset);
  }
  return bytes > room ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

/// Bytes that it takes.
std::uint64_t room_of(const Receive& receive) noexcept {
  std::uint64_t room = 0;
  for (std::uint32_t i = 0; i < receive.num_sge; ++i) room += receive.sges[i].length;
  return room;
}

/// Ends the receive in an error, and the QP with it once the CQ's lock is free.
Taken fail_receive(Qp& qp, std::uint64_t index, const Receive& receive, ibv_wc_status status,
                   ibv_wc& wc) noexcept {
  fill_receive(wc, qp, receive.wr_id, 0, 0);
  wc.status = status;
  finish(qp, index);
  // Who is in the middle of it learns why, once it sees that we accept no more.
  if (status == IBV_WC_LOC_PROT_ERR) poke(qp.own->refused, 1u);
  // What its sender sent behind it is not taken any more: this matches no session.
  qp.rx_session = ~std::uint64_t{0};
  qp.broken = true;
  qp.lied = qp.lied || status == IBV_WC_LOC_QP_OP_ERR;
  qp.recv_cq->has_broken = true;
  return Taken::kCompletion;
}

/// Window bytes [position, position + bytes) to message bytes from `from` on.
bool take_from_window(const Qp& qp, const LocalRange* ranges, std::uint32_t count,
                      std::uint64_t from, std::uint64_t position, std::uint64_t bytes) noexcept {
  const std::uint64_t w = qp.rx_remote->window.load(std::memory_order_acquire);
  const std::uint32_t log = window::log(w);
  if (w == 0 || log > 40) return false;
  const std::uint64_t size = std::uint64_t{1} << log;
  const auto* base = qp.rx_peer->segment.at<unsigned char>(window::offset(w), size);
  if (base == nullptr || bytes > size) return false;
  const std::uint64_t start = position & (size - 1);
  const std::uint64_t first = bytes < size - start ? bytes : size - start;
  scatter(ranges, count, from, base + start, first);
  if (first < bytes) scatter(ranges, count, from + first, base, bytes - first);
  return true;
}

constexpr std::uint64_t align_up(std::uint64_t n) { return (n + 63) & ~std::uint64_t{63}; }

void publish_stream_consumed(Qp& qp, std::uint64_t position) noexcept {
  qp.own->stream_consumed.store(position, std::memory_order_release);
}

enum class Pull {
  kWhole,  ///< the message is where it belongs
  kPart,   ///< so is what has come of it, or as much as was to be pulled
  kBroken  ///< the peer speaks of bytes that it does not have
};

/// Copies out at most `most` bytes, in pieces, of a message that flows through the window.
Pull pull_stream(Qp& qp, const Slot& slot, std::uint64_t length, std::uint64_t start,
                 const LocalRange* ranges, std::uint32_t count, std::uint64_t most) noexcept {
  constexpr std::uint64_t kPiece = 32u << 10;
  const std::uint64_t stop = most < ~qp.stream_taken ? qp.stream_taken + most : ~std::uint64_t{0};
  for (;;) {
    // Pairs with the stores in stream_on(); the word for "the rest is placed" first, since what it
    // cuts off was never produced.
    std::uint64_t end = __atomic_load_n(&slot.large.placed_from, __ATOMIC_ACQUIRE);
    if (end > length) end = length;
    const std::uint64_t produced = qp.rx_remote->stream_produced.load(std::memory_order_acquire);
    if (qp.stream_taken >= end) break;
    std::uint64_t n = produced - start - qp.stream_taken;
    if (produced - start < qp.stream_taken) n = 0;
    if (n > end - qp.stream_taken) n = end - qp.stream_taken;
    if (n > kPiece) n = kPiece;
    if (n == 0 || qp.stream_taken >= stop) return Pull::kPart;
    if (!take_from_window(qp, ranges, count, qp.stream_taken, start + qp.stream_taken, n))
      return Pull::kBroken;
    qp.stream_taken += n;
    publish_stream_consumed(qp, start + qp.stream_taken);
  }
  publish_stream_consumed(qp, align_up(start + qp.stream_taken));
  qp.stream_taken = 0;
  return Pull::kWhole;
}

/// Copies out a message that lies whole in the window.
Pull pull_window(Qp& qp, std::uint64_t length, std::uint64_t start, const LocalRange* ranges,
                 std::uint32_t count) noexcept {
  if (!take_from_window(qp, ranges, count, qp.headroom, start, length)) return Pull::kBroken;
  publish_stream_consumed(qp, align_up(start + length));
  return Pull::kWhole;
}

/// The sender may be in the middle of something that we had accepted before our error; also when it
/// has met us and our service thread is still busy meeting it.
bool sender_is_busy(Qp& qp) noexcept {
  if (qp.session == 0 || peek(qp.own->dest_qpn) == qp.own->qpn) return false;
  if (qp.rx_remote == nullptr) {
    Node& node = Node::get();
    const std::uint32_t dest_qpn = peek(qp.own->dest_qpn);
    if (node.find_peer(dest_qpn) != nullptr) return false;
    node.want_peer(dest_qpn);
    if (!node.is_meeting(dest_qpn)) return false;
  } else {
    if (!qp.rx_peer->alive.load(std::memory_order_acquire)) return false;
    if ((qp.rx_remote->active.load(std::memory_order_acquire) & QpRecord::kUnfenced) != 0 &&
        qp.fenced_for != qp.session) {
      fence_or_outwait_registered_threads();
      qp.fenced_for = qp.session;
    }
    if ((qp.rx_remote->active.load(std::memory_order_acquire) & 1) == 0) return false;
  }
  const std::uint64_t now = now_ns();
  if (qp.flush_after == 0) {
    qp.flush_after = now + kFlushPatienceNs;
    // Who sleeps on the CQ is told when the time is over: nobody else will.
    std::uint64_t none = 0;
    (void)live.next_flush.compare_exchange_strong(none, qp.flush_after, std::memory_order_seq_cst);
    Node::get().want_tick(true);
  }
  return now < qp.flush_after;
}

/// A message that lies whole in its slot, for a shared receive of one SGE. kNotYet: take the
/// general way.
Taken take_shared_small(Qp& qp, const Slot& slot, std::uint64_t h, ibv_wc& wc) noexcept {
  Srq& srq = *qp.srq;
  const std::uint64_t index = qp.rq_head.load(std::memory_order_relaxed);
  const std::uint32_t bytes = header::inline_length(h);
  if (bytes > Slot::kInlineBytes || held_for(qp, index) != nullptr) return Taken::kNotYet;
  const std::uint64_t needed = bytes + qp.headroom;
  LocalRange to;
  std::uint64_t wr_id;
  {
    LockGuard<BiasedLock> guard(srq.lock);
    const std::uint64_t taken = srq.own->taken.load(std::memory_order_relaxed);
    const std::uint64_t at = srq.store.at(taken);
    if (taken == srq.posted || srq.limit != 0 || srq.store.num_sge[at] != 1) return Taken::kNotYet;
    const ReceiveSge sge = *srq.store.sges_of(taken);
    Region region;
    std::uint64_t offset;
    if (needed > sge.length ||
        !find_region(qp.own_regions, qp.own_region_capacity, sge.lkey, region) ||
        region.pd != srq.keys.pd || (region.access & IBV_ACCESS_LOCAL_WRITE) == 0 ||
        !region.contains(sge.address, sge.length, offset))
      return Taken::kNotYet;
    to = {reinterpret_cast<unsigned char*>(region.address + offset), sge.length};
    wr_id = srq.store.wr_ids[at];
    use_up_locked(srq, qp, taken);
  }
  copy_small(to.at + qp.headroom, slot.data, bytes);
  fill_receive(wc, qp, wr_id, bytes, h);
  if (qp.lane.face != nullptr) describe_datagram(qp, &to, 1, h, wc);
  finish(qp, index);
  return Taken::kCompletion;
}

}  // namespace

Taken take_slowly(Qp& qp, const Slot& slot, std::uint64_t h, ibv_wc& wc) noexcept {
  if (qp.rx_remote->tx_session.load(std::memory_order_acquire) != qp.rx_session)
    return Taken::kNothing;
  if (qp.srq != nullptr && header::kind(h) == SlotKind::kInline) {
    const Taken taken = take_shared_small(qp, slot, h, wc);
    if (taken != Taken::kNotYet) return taken;
  }
  const std::uint64_t index = qp.rq_head.load(std::memory_order_relaxed);
  TakenReceive scratch;
  Receive receive;
  if (!receive_for(qp, index, scratch, receive)) {
    if (qp.srq != nullptr) return Taken::kStarved;
    // No receive was posted for it: only a faulty sender does this. Nothing can be completed.
    qp.broken = qp.lied = true;
    qp.recv_cq->has_broken = true;
    return Taken::kNothing;
  }
  const SlotKind kind = header::kind(h);
  // One copy of the peer's words; they are judged and used from here.
  const std::uint64_t length =
      kind == SlotKind::kInline ? header::inline_length(h) : peek(slot.large.length);
  const std::uint64_t start = peek(slot.large.offset);
  if (kind == SlotKind::kFault) {
    return fail_receive(qp, index, receive,
                        length == IBV_WC_LOC_LEN_ERR    ? IBV_WC_LOC_LEN_ERR
                        : length == IBV_WC_LOC_PROT_ERR ? IBV_WC_LOC_PROT_ERR
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
        return fail_receive(qp, index, receive, IBV_WC_REM_INV_REQ_ERR, wc);
    }
  }
  LocalRange ranges[kMaxSge];
  std::uint32_t count = 0;  // of those that were looked up: a lie about the rest moves nothing
  if (length > kMaxMessage) return fail_receive(qp, index, receive, IBV_WC_LOC_LEN_ERR, wc);
  const bool of_write = (header::flags(h) & header::kWriteImmediate) != 0;
  if (kind == SlotKind::kPlaced && !of_write) {
    // It came whole while its keys were sound; what has become of them since does not matter.
    if (length > room_of(receive)) return fail_receive(qp, index, receive, IBV_WC_LOC_LEN_ERR, wc);
  } else if (!of_write && length + qp.headroom != 0) {
    const ibv_wc_status status = receive_ranges(qp, receive, length + qp.headroom, ranges);
    if (status != IBV_WC_SUCCESS) return fail_receive(qp, index, receive, status, wc);
    count = receive.num_sge;
  }
  switch (kind) {
    case SlotKind::kInline:
      if (length > Slot::kInlineBytes)
        return fail_receive(qp, index, receive, IBV_WC_LOC_QP_OP_ERR, wc);
      scatter(ranges, count, qp.headroom, slot.data, length);
      break;
    case SlotKind::kWindow:
    case SlotKind::kStream: {
      if (index < qp.pulled) break;
      const Pull pull = kind == SlotKind::kWindow
                            ? pull_window(qp, length, start, ranges, count)
                            : pull_stream(qp, slot, length, start, ranges, count, length);
      if (pull == Pull::kPart) {
        hold(qp, index, scratch);
        return Taken::kNotYet;
      }
      if (pull == Pull::kBroken) return fail_receive(qp, index, receive, IBV_WC_LOC_QP_OP_ERR, wc);
      break;
    }
    case SlotKind::kPlaced:
      break;
    default:
      return fail_receive(qp, index, receive, IBV_WC_LOC_QP_OP_ERR, wc);
  }
  fill_receive(wc, qp, receive.wr_id, static_cast<std::uint32_t>(length), h);
  if (qp.lane.face != nullptr) describe_datagram(qp, ranges, count, h, wc);
  if (header::invalidates(h)) {
    wc.wc_flags |= IBV_WC_WITH_INV;
    wc.invalidated_rkey = header::immediate(h);
  }
  finish(qp, index);
  return Taken::kCompletion;
}

namespace {

/// The posted receives of a UD queue pair in the error state.
int flush_datagrams(Qp& qp, int room, ibv_wc* wc, bool& more) noexcept {
  int got = 0;
  TakenReceive taken;
  if (qp.datagrams->inbox == nullptr) return 0;
  for (; got < room && take_receive(qp, taken); ++got) {
    fill_receive(wc[got], qp, taken.wr_id, 0, 0);
    wc[got].status = IBV_WC_WR_FLUSH_ERR;
  }
  more = got == room;
  return got;
}

}  // namespace

int take_all(Qp& qp, int room, ibv_wc* wc, bool& more) noexcept {
  int got = 0;
  more = false;
  if (attach_receiver(qp)) {
    for (;;) {
      const std::uint64_t index = qp.rq_head.load(std::memory_order_relaxed);
      const Slot& slot = next_in_ring(qp, index);
      const std::uint64_t h = slot.header.load(std::memory_order_acquire);
      if (header::lap(h) != lap_in_ring(qp, index)) break;
      if (got == room) {
        more = true;
        return got;
      }
      // Asked before the look: a sender that is not at it now will find the session closed, so what
      // the look does not find whole stays unfinished for ever.
      const bool closed = qp.mode.load(std::memory_order_acquire) == IBV_QPS_ERR &&
                          qp.own->accepts.load(std::memory_order_seq_cst) == 0 &&
                          !sender_is_busy(qp);
      const Taken taken = take_message(qp, slot, h, wc[got]);
      if (taken == Taken::kNotYet) {
        if (closed) break;
        more = true;
        return got;
      }
      if (taken == Taken::kStarved) break;
      if (taken == Taken::kNothing) {
        qp.rx_ring = nullptr;
        break;
      }
      ++got;
    }
  }
  if (qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR) return got;
  if (qp.datagrams != nullptr) return got + flush_datagrams(qp, room - got, wc + got, more);
  // What had been sent before the error is delivered; the rest of the receives flush.
  while (qp.rq_head.load(std::memory_order_relaxed) != qp.rq_tail.load(std::memory_order_acquire)) {
    if (got == room || sender_is_busy(qp)) {
      more = true;
      return got;
    }
    if (qp.rx_ring == nullptr && attach_receiver(qp))
      return got + take_all(qp, room - got, wc + got, more);
    const std::uint64_t index = qp.rq_head.load(std::memory_order_relaxed);
    fill_receive(wc[got], qp, qp.rq.wr_ids[qp.rq.at(index)], 0, 0);
    wc[got++].status = IBV_WC_WR_FLUSH_ERR;
    finish_receive(qp, index);
  }
  say_last_receive(qp);
  return got;
}

void say_last_receive(Qp& qp) noexcept {
  if (qp.srq == nullptr || qp.datagrams != nullptr || qp.lane.face != nullptr ||
      qp.last_receive_said || qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR ||
      has_message(qp) || sender_is_busy(qp))
    return;
  qp.last_receive_said = true;
  raise_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

std::uint64_t pull_messages(Qp& qp) noexcept {
  constexpr std::uint64_t kMost = 64u << 10;
  LockGuard<BiasedLock> guard(qp.recv_cq->lock);
  const std::uint32_t mode = qp.mode.load(std::memory_order_acquire);
  if (mode < IBV_QPS_RTR || mode == IBV_QPS_ERR || (qp.srq == nullptr && qp.rq.sges == nullptr) ||
      qp.broken || !attach_receiver(qp) ||
      qp.rx_remote->tx_session.load(std::memory_order_acquire) != qp.rx_session)
    return 0;
  // Odd, with a full fence, before any key is looked up: as for a peer's requests.
  live.service_active.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t copied = 0;
  const std::uint64_t head = qp.rq_head.load(std::memory_order_relaxed);
  if (qp.pulled < head) qp.pulled = head;
  while (copied < kMost) {
    const std::uint64_t index = qp.pulled;
    const Slot& slot = next_in_ring(qp, index);
    const std::uint64_t h = slot.header.load(std::memory_order_acquire);
    if (header::lap(h) != lap_in_ring(qp, index)) break;
    const SlotKind kind = header::kind(h);
    if (header::invalidates(h) &&
        end_window(qp, index, header::immediate(h), EndedBy::kServiceThread) != Ended::kEnded)
      break;
    if (kind == SlotKind::kWindow || kind == SlotKind::kStream) {
      const std::uint64_t length = peek(slot.large.length);
      const std::uint64_t start = peek(slot.large.offset);
      TakenReceive scratch;
      Receive receive;
      LocalRange ranges[kMaxSge];
      if (!can_hold(qp, index) || !receive_for(qp, index, scratch, receive)) break;
      hold(qp, index, scratch);
      // What is wrong with it is for the poll to say.
      if (length > kMaxMessage ||
          receive_ranges(qp, receive, length + qp.headroom, ranges) != IBV_WC_SUCCESS)
        break;
      const std::uint64_t before = qp.stream_taken;
      const Pull pull = kind == SlotKind::kWindow
                            ? pull_window(qp, length, start, ranges, receive.num_sge)
                            : pull_stream(qp, slot, length, start, ranges, receive.num_sge, kMost);
      if (pull == Pull::kBroken) break;
      if (pull == Pull::kPart) {
        copied += qp.stream_taken - before;
        break;
      }
      copied += kind == SlotKind::kWindow ? length : length - before;
    } else if (kind != SlotKind::kInline && kind != SlotKind::kPlaced) {
      break;
    }
    qp.pulled = index + 1;
  }
  live.service_active.fetch_add(1, std::memory_order_release);
  return copied;
}

bool has_message(Qp& qp) noexcept {
  const std::uint64_t index = qp.rq_head.load(std::memory_order_relaxed);
  if (attach_receiver(qp)) {
    const std::uint64_t h = next_in_ring(qp, index).header.load(std::memory_order_acquire);
    if (header::lap(h) == lap_in_ring(qp, index))
      return qp.srq == nullptr || held_for(qp, index) != nullptr || has_receive(*qp.srq);
  }
  if (qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR) return false;
  if (qp.datagrams != nullptr && qp.datagrams->inbox != nullptr)
    return has_receive(*qp.datagrams->inbox);
  return index != qp.rq_tail.load(std::memory_order_acquire);
}

namespace {

/// UD: a store of its own, but shared by the lanes that lead to it. Else the receives are posted to
/// the queue that the application shares.
int post_to_inbox(Qp& qp, const ibv_recv_wr& wr) noexcept {
  if (qp.datagrams == nullptr || qp.datagrams->inbox == nullptr) return EINVAL;
  ibv_recv_wr one = wr;
  ibv_recv_wr* bad;
  one.next = nullptr;
  const int error = post_shared(*qp.datagrams->inbox, &one, &bad);
  if (error == 0 && qp.mode.load(std::memory_order_acquire) == IBV_QPS_ERR) announce(qp);
  return error;
}

}  // namespace

int post_recv_slowly(Qp& qp, const ibv_recv_wr& wr) noexcept {
  const std::uint32_t mode = qp.mode.load(std::memory_order_acquire);
  if (mode == IBV_QPS_RESET) return EINVAL;
  if (qp.srq != nullptr) return post_to_inbox(qp, wr);
  if (const int error = qp.rq.check(wr); error != 0) return error;
  const std::uint64_t index = qp.rq_tail.load(std::memory_order_relaxed);
  if (index - qp.rq_head.load(std::memory_order_acquire) >= qp.rq.max) return ENOMEM;
  if (qp.rq.credits == nullptr) {
    // The queue's memory comes with the first receive.
    const std::uint64_t offset = qp.rq.make();
    if (offset == 0) return ENOMEM;
    // Publishes the queue; pairs with the load in attach().
    qp.own->rq_credits.store(offset, std::memory_order_release);
  }
  const std::uint64_t credit =
      qp.rq.fill(index, wr, {qp.own_regions, qp.own_region_capacity, qp.pd_number});
  qp.rq_tail.store(index + 1, std::memory_order_release);
  qp.rq.credits[qp.rq.at(index)].store(credit, std::memory_order_release);
  if (mode == IBV_QPS_ERR) announce(qp);
  return 0;
}

HeldReceive* make_held(std::uint32_t capacity) noexcept {
  auto* held = static_cast<HeldReceive*>(std::malloc(capacity * sizeof(HeldReceive)));
  for (std::uint32_t i = 0; held != nullptr && i < capacity; ++i)
    held[i].index = HeldReceive::kNone;
  return held;
}

}  // namespace verbatim::shm
