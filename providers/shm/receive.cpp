// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/receive.hpp"

#include <cerrno>
#include <cstdlib>

#include "providers/shm/fabric/node.hpp"
#include "providers/shm/live.hpp"
#include "providers/shm/reach.hpp"
#include "providers/shm/receive_fast.hpp"
#include "runtime/base/log.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// A flush waits this long for a sender in the middle of a message to finish it.
constexpr std::uint64_t kFlushPatienceNs = 100'000'000;

std::uint64_t mask_of(std::uint32_t log) { return (std::uint64_t{1} << log) - 1; }

/// The receive `index` as ranges of our memory. A status other than SUCCESS: it cannot take
/// `bytes`.
ibv_wc_status receive_ranges(const Qp& qp, std::uint64_t index, std::uint64_t bytes,
                             LocalRange* out, std::uint32_t& count) noexcept {
  const std::uint64_t at = index & mask_of(qp.rq_log);
  const ReceiveSge* sges = qp.own_sges + at * qp.max_recv_sge;
  count = qp.rq_num_sge[at];
  std::uint64_t room = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    room += sges[i].length;
    out[i] = {nullptr, sges[i].length};
    if (sges[i].length == 0) continue;
    Region region;
    std::uint64_t offset;
    if (!find_region(qp.own_regions, qp.own_region_capacity, sges[i].lkey, region) ||
        region.pd != qp.pd_number || (region.access & IBV_ACCESS_LOCAL_WRITE) == 0 ||
        !region.contains(sges[i].address, sges[i].length, offset))
      return IBV_WC_LOC_PROT_ERR;
    out[i].at = reinterpret_cast<unsigned char*>(region.address + offset);
  }
  return bytes > room ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

/// Ends the receive in an error, and the QP with it once the CQ's lock is free.
Taken fail_receive(Qp& qp, std::uint64_t index, ibv_wc_status status, ibv_wc& wc) noexcept {
  fill_receive(wc, qp, qp.rq_wr_ids[index & mask_of(qp.rq_log)], 0, 0);
  wc.status = status;
  finish_receive(qp, index);
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
  if (!take_from_window(qp, ranges, count, 0, start, length)) return Pull::kBroken;
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
  } else if (!qp.rx_peer->alive.load(std::memory_order_acquire) ||
             (qp.rx_remote->active.load(std::memory_order_acquire) & 1) == 0) {
    return false;
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

}  // namespace

Taken take_slowly(Qp& qp, const Slot& slot, std::uint64_t h, ibv_wc& wc) noexcept {
  if (qp.rx_remote->tx_session.load(std::memory_order_acquire) != qp.rx_session)
    return Taken::kNothing;
  const std::uint64_t index = qp.rq_head.load(std::memory_order_relaxed);
  if (index == qp.rq_tail.load(std::memory_order_acquire)) {
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
    return fail_receive(qp, index,
                        length == IBV_WC_LOC_LEN_ERR    ? IBV_WC_LOC_LEN_ERR
                        : length == IBV_WC_LOC_PROT_ERR ? IBV_WC_LOC_PROT_ERR
                                                        : IBV_WC_LOC_QP_OP_ERR,
                        wc);
  }
  LocalRange ranges[kMaxSge];
  std::uint32_t count = 0;
  if (length > kMaxMessage) return fail_receive(qp, index, IBV_WC_LOC_LEN_ERR, wc);
  const bool of_write = (header::flags(h) & header::kWriteImmediate) != 0;
  if (!of_write && length != 0) {
    const ibv_wc_status status = receive_ranges(qp, index, length, ranges, count);
    if (status != IBV_WC_SUCCESS) return fail_receive(qp, index, status, wc);
  }
  switch (kind) {
    case SlotKind::kInline:
      if (length > Slot::kInlineBytes) return fail_receive(qp, index, IBV_WC_LOC_QP_OP_ERR, wc);
      scatter(ranges, count, 0, slot.data, length);
      break;
    case SlotKind::kWindow:
    case SlotKind::kStream: {
      if (index < qp.pulled) break;
      const Pull pull = kind == SlotKind::kWindow
                            ? pull_window(qp, length, start, ranges, count)
                            : pull_stream(qp, slot, length, start, ranges, count, length);
      if (pull == Pull::kPart) return Taken::kNotYet;
      if (pull == Pull::kBroken) return fail_receive(qp, index, IBV_WC_LOC_QP_OP_ERR, wc);
      break;
    }
    case SlotKind::kPlaced:
      break;
    default:
      return fail_receive(qp, index, IBV_WC_LOC_QP_OP_ERR, wc);
  }
  fill_receive(wc, qp, qp.rq_wr_ids[index & mask_of(qp.rq_log)], static_cast<std::uint32_t>(length),
               h);
  finish_receive(qp, index);
  return Taken::kCompletion;
}

int take_all(Qp& qp, int room, ibv_wc* wc, bool& more) noexcept {
  int got = 0;
  more = false;
  if (attach_receiver(qp)) {
    for (;;) {
      const std::uint64_t index = qp.rq_head.load(std::memory_order_relaxed);
      const Slot& slot = qp.rx_ring[index & mask_of(qp.rx_log)];
      const std::uint64_t h = slot.header.load(std::memory_order_acquire);
      if (header::lap(h) != ((static_cast<std::uint32_t>(index >> qp.rx_log) + 1) & 0xffff)) break;
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
      if (taken == Taken::kNothing) {
        qp.rx_ring = nullptr;
        break;
      }
      ++got;
    }
  }
  if (qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR) return got;
  // What had been sent before the error is delivered; the rest of the receives flush.
  while (qp.rq_head.load(std::memory_order_relaxed) != qp.rq_tail.load(std::memory_order_acquire)) {
    if (got == room || sender_is_busy(qp)) {
      more = true;
      return got;
    }
    if (qp.rx_ring == nullptr && attach_receiver(qp))
      return got + take_all(qp, room - got, wc + got, more);
    const std::uint64_t index = qp.rq_head.load(std::memory_order_relaxed);
    fill_receive(wc[got], qp, qp.rq_wr_ids[index & mask_of(qp.rq_log)], 0, 0);
    wc[got++].status = IBV_WC_WR_FLUSH_ERR;
    finish_receive(qp, index);
  }
  return got;
}

std::uint64_t pull_messages(Qp& qp) noexcept {
  constexpr std::uint64_t kMost = 64u << 10;
  LockGuard<BiasedLock> guard(qp.recv_cq->lock);
  const std::uint32_t mode = qp.mode.load(std::memory_order_acquire);
  if ((mode != IBV_QPS_RTR && mode != IBV_QPS_RTS) || qp.own_sges == nullptr || qp.broken ||
      !attach_receiver(qp) ||
      qp.rx_remote->tx_session.load(std::memory_order_acquire) != qp.rx_session)
    return 0;
  // Odd, with a full fence, before any key is looked up: as for a peer's requests.
  live.service_active.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t copied = 0;
  const std::uint64_t head = qp.rq_head.load(std::memory_order_relaxed);
  if (qp.pulled < head) qp.pulled = head;
  while (copied < kMost && qp.pulled != qp.rq_tail.load(std::memory_order_acquire)) {
    const std::uint64_t index = qp.pulled;
    const Slot& slot = qp.rx_ring[index & mask_of(qp.rx_log)];
    const std::uint64_t h = slot.header.load(std::memory_order_acquire);
    if (header::lap(h) != ((static_cast<std::uint32_t>(index >> qp.rx_log) + 1) & 0xffff)) break;
    const SlotKind kind = header::kind(h);
    if (kind == SlotKind::kWindow || kind == SlotKind::kStream) {
      const std::uint64_t length = peek(slot.large.length);
      const std::uint64_t start = peek(slot.large.offset);
      LocalRange ranges[kMaxSge];
      std::uint32_t count = 0;
      // What is wrong with it is for the poll to say.
      if (length > kMaxMessage ||
          receive_ranges(qp, index, length, ranges, count) != IBV_WC_SUCCESS)
        break;
      const std::uint64_t before = qp.stream_taken;
      const Pull pull = kind == SlotKind::kWindow
                            ? pull_window(qp, length, start, ranges, count)
                            : pull_stream(qp, slot, length, start, ranges, count, kMost);
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
    const std::uint64_t h =
        qp.rx_ring[index & mask_of(qp.rx_log)].header.load(std::memory_order_acquire);
    if (header::lap(h) == ((static_cast<std::uint32_t>(index >> qp.rx_log) + 1) & 0xffff))
      return true;
  }
  return qp.mode.load(std::memory_order_acquire) == IBV_QPS_ERR &&
         index != qp.rq_tail.load(std::memory_order_acquire);
}

int post_recv_slowly(Qp& qp, const ibv_recv_wr& wr) noexcept {
  const std::uint32_t mode = qp.mode.load(std::memory_order_acquire);
  if (mode == IBV_QPS_RESET) return EINVAL;
  if (wr.num_sge < 0 || wr.num_sge > qp.max_recv_sge || (wr.num_sge != 0 && wr.sg_list == nullptr))
    return EINVAL;
  const std::uint64_t index = qp.rq_tail.load(std::memory_order_relaxed);
  if (index - qp.rq_head.load(std::memory_order_acquire) >= qp.rq_max) return ENOMEM;
  if (qp.own_credits == nullptr) {
    // The queue's memory comes with the first receive.
    OwnSegment& segment = Node::get().segment();
    const std::size_t entries = std::size_t{1} << qp.rq_log;
    const std::size_t bytes =
        entries * sizeof(std::uint64_t) + entries * qp.max_recv_sge * sizeof(ReceiveSge);
    if (qp.rq_wr_ids == nullptr)
      qp.rq_wr_ids = static_cast<std::uint64_t*>(std::calloc(entries, sizeof(std::uint64_t)));
    if (qp.rq_num_sge == nullptr)
      qp.rq_num_sge = static_cast<std::uint8_t*>(std::calloc(entries, 1));
    const std::uint64_t offset = segment.allocate(bytes);
    if (offset == 0 || qp.rq_wr_ids == nullptr || qp.rq_num_sge == nullptr) {
      if (offset != 0) segment.release(offset, bytes);
      return ENOMEM;
    }
    qp.own_credits = segment.at<std::atomic<std::uint64_t>>(offset);
    qp.own_sges = segment.at<ReceiveSge>(offset + entries * sizeof(std::uint64_t));
    // Publishes the queue; pairs with the load in attach().
    qp.own->rq_credits.store(offset, std::memory_order_release);
  }
  const std::uint64_t at = index & mask_of(qp.rq_log);
  ReceiveSge* sges = qp.own_sges + at * qp.max_recv_sge;
  std::uint64_t bytes = 0;
  bool bad = false;
  for (int i = 0; i < qp.max_recv_sge; ++i) {
    if (i >= wr.num_sge) {
      sges[i] = {0, 0, 0};
      continue;
    }
    const ibv_sge& sge = wr.sg_list[i];
    sges[i] = {sge.addr, sge.length, sge.lkey};
    bytes += sge.length;
    Region region;
    std::uint64_t offset;
    if (sge.length != 0 &&
        (!find_region(qp.own_regions, qp.own_region_capacity, sge.lkey, region) ||
         region.pd != qp.pd_number || (region.access & IBV_ACCESS_LOCAL_WRITE) == 0 ||
         !region.contains(sge.addr, sge.length, offset)))
      bad = true;
  }
  qp.rq_wr_ids[at] = wr.wr_id;
  qp.rq_num_sge[at] = static_cast<std::uint8_t>(wr.num_sge);
  qp.rq_tail.store(index + 1, std::memory_order_release);
  qp.own_credits[at].store(
      Credit::make(
          static_cast<std::uint32_t>(index >> qp.rq_log) + 1,
          static_cast<std::uint32_t>(bytes < Credit::kLengthMask ? bytes : Credit::kLengthMask),
          bad),
      std::memory_order_release);
  if (mode == IBV_QPS_ERR) announce(qp);
  return 0;
}

}  // namespace verbatim::shm
