// SPDX-License-Identifier: BSD-2-Clause
//
// SEND of any size. The receiver's posted receives stand in its segment: the sender consumes them,
// and so decides itself whether there is one (RNR), whether its keys are sound and the message
// fits. A message to a posted receive therefore completes also when the receiving process sleeps.
//
//   <= 56 B               in the slot
//   <= 1 KiB              in the slot and the lines behind it
//   receive is mapped     copied to its place, the slot says so
//   fits the stream ring  copied to it, the receiver copies it out
//   larger                flows through the stream ring, or goes by CMA, whichever is faster now
//
// What lies in the stream ring is taken by whoever polls the receiver's CQ; when nobody does, its
// service thread is asked to; when that gets no core either, the bytes are copied to their place by
// CMA.
#include <algorithm>
#include <cstring>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/meet.hpp"
#include "providers/shm/transfer/send_fast.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/transfer/service_requests.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// A message from here on makes the stream ring large.
constexpr std::uint64_t kLargeMessage = 4096;
/// Streams advance by so much at a time: small enough that both copies overlap and stay in L2.
constexpr std::uint64_t kPiece = 32u << 10;
/// A full stream ring that nobody took from for so long: the application does not poll.
constexpr std::uint64_t kAskNs = 10'000;
/// And for so long: its service thread waits for a core.
constexpr std::uint64_t kStallNs = 200'000;

constexpr std::uint64_t align_up(std::uint64_t n) { return (n + 63) & ~std::uint64_t{63}; }

std::uint64_t stream_ring_size(const Qp& qp) noexcept {
  const std::uint64_t w = qp.own->stream_ring.load(std::memory_order_relaxed);
  return w == 0 ? 0 : std::uint64_t{1} << extent::log(w);
}

/// How much of the stream ring is free now.
std::uint64_t stream_ring_room(Qp& qp) noexcept {
  const std::uint64_t consumed = qp.link.remote->stream_consumed.load(std::memory_order_acquire);
  // The peer's word: never believe more than was produced, nor a step back.
  if (consumed != qp.stream.consumed_seen &&
      consumed - qp.stream.consumed_seen <= qp.stream.produced - qp.stream.consumed_seen) {
    qp.stream.consumed_seen = consumed;
    qp.stream.receiver_stuck = false;
  }
  return stream_ring_size(qp) - (qp.stream.produced - qp.stream.consumed_seen);
}

/// Makes the stream ring, or makes it large while it is empty and was too small once. It may stay
/// small, or not exist at all, when memory is short: then large messages take the other ways.
void fit_stream_ring(Qp& qp, std::uint64_t bytes) noexcept {
  const bool large = bytes > kLargeMessage || qp.stream.ring_was_full;
  const std::uint32_t log = large ? kLargeStreamLog : kSmallStreamLog;
  const std::uint64_t old = qp.own->stream_ring.load(std::memory_order_relaxed);
  if (old != 0 && (extent::log(old) >= log || stream_ring_room(qp) != stream_ring_size(qp))) return;
  OwnSegment& segment = Process::get().segment();
  const std::uint64_t offset = segment.allocate(std::size_t{1} << log);
  if (offset == 0) return;
  qp.own->stream_ring.store(extent::make(offset, log), std::memory_order_release);
  if (old != 0) segment.release(extent::offset(old), std::size_t{1} << extent::log(old));
  note_spare(qp);
}

/// Copies message bytes [from, from + n) to stream position `at`, around the stream ring's end.
/// False: a part of them is not there.
bool fill_stream_ring(Qp& qp, const PendingSend& send, const LocalRange* local, std::uint64_t from,
                      std::uint64_t n, std::uint64_t at) noexcept {
  const std::uint64_t size = stream_ring_size(qp);
  unsigned char* base = Process::get().segment().at<unsigned char>(
      extent::offset(qp.own->stream_ring.load(std::memory_order_relaxed)));
  const std::uint64_t start = at & (size - 1);
  const std::uint64_t first = n < size - start ? n : size - start;
  return gather(base + start, local, send.num_sge, from, first) &&
         (first == n || gather(base, local, send.num_sge, from + first, n - first));
}

/// The stream ring has no room. True: nobody on the other side will make any.
bool nobody_takes(Qp& qp) noexcept {
  Progress& progress = qp.sq.progress;
  qp.stream.ring_was_full = true;
  if (qp.stream.consumed_seen != progress.consumed_seen || progress.stalled_since == 0) {
    progress.consumed_seen = qp.stream.consumed_seen;
    progress.stalled_since = now_ns();
    progress.asked_to_take = false;
    if (!qp.stream.receiver_sleeps) return false;
  }
  const std::uint64_t waited = now_ns() - progress.stalled_since;
  if (waited > kStallNs) {
    if (qp.shared.record != nullptr) {  // there is no other way: ask once more
      progress.stalled_since = 0;
      return false;
    }
    qp.stream.receiver_stuck = true;
    return true;
  }
  if (!progress.asked_to_take && (waited > kAskNs || qp.stream.receiver_sleeps)) {
    progress.asked_to_take = true;
    qp.stream.receiver_sleeps = true;
    wake_service_of_peer(qp);
  }
  return false;
}

/// What a message of `bytes` takes of the peer's posted receive that it goes to, as ranges of its
/// memory.
[[gnu::noinline]] std::uint32_t receive_ranges(const Qp& qp, std::uint64_t bytes,
                                               RemoteRange* out) noexcept {
  const ReceiveSge* sges = qp.link.receive_sges;
  if (sges == nullptr) return 0;
  const std::uint32_t max_sge = qp.link.remote_max_sge;
  // A streaming message has its slot already: its receive is the one before the next.
  const std::uint64_t index = qp.sq.progress.streaming ? qp.out.sent - 1 : qp.out.sent;
  sges += (index & qp.link.remote_rq_mask) * max_sge;
  for (std::uint32_t i = 0; i < max_sge; ++i) {
    const std::uint64_t used = std::min<std::uint64_t>(bytes, load_relaxed(sges[i].length));
    out[i] = {load_relaxed(sges[i].lkey), load_relaxed(sges[i].address), used};
    bytes -= used;
  }
  return max_sge;
}

std::uint32_t flags_of(const PendingSend& send) noexcept {
  return (send.path() != 0 ? header::kPath : 0u) | (send.is_global ? header::kGlobal : 0u) |
         (send.to_group ? header::kToGroup : 0u) |
         (send.opcode == IBV_WR_SEND_WITH_IMM ? header::kImmediate : 0u) |
         (send.opcode == IBV_WR_SEND_WITH_INV ? header::kInvalidates : 0u) |
         ((send.flags & IBV_SEND_SOLICITED) != 0 ? header::kSolicited : 0u);
}

/// Copies the rest of the message, from byte done on, straight to the receive buffer.
Step place_rest(Qp& qp, SendLock& lock, const PendingSend& send, const LocalRange* local) noexcept {
  Progress& progress = qp.sq.progress;
  RemoteRange ranges[kMaxSge];
  const std::uint32_t count = receive_ranges(qp, send.length, ranges);
  const Transfer transfer{local, send.num_sge,           ranges,
                          count, IBV_ACCESS_LOCAL_WRITE, Direction::kToPeer};
  std::uint64_t done = progress.placed;
  Reach reach = progress.asked != 0 ? Reach::kService : copy(qp, lock, transfer, done, send.length);
  progress.placed = done;
  if (reach == Reach::kService || reach == Reach::kArena)
    reach = ask_to_place(qp, send, local, progress.placed);
  switch (reach) {
    case Reach::kDone:
      return Step::done();
    case Reach::kService:
      return Step::waits(Wait::kService);
    case Reach::kDenied:
      return Step::fails(IBV_WC_REM_OP_ERR, kToldInReceive);
    case Reach::kMissing:
      return Step::fails(IBV_WC_LOC_PROT_ERR);
    case Reach::kNoRoom:
      return Step::waits(Wait::kMemory);
    default:
      return Step::waits(Wait::kPeer);
  }
}

/// The message as one piece that is already placed.
Step place_whole(Qp& qp, SendLock& lock, const PendingSend& send,
                 const LocalRange* local) noexcept {
  qp.sq.progress.placing = true;
  const Step step = place_rest(qp, lock, send, local);
  if (step.kind != Step::Kind::kDone) {
    if (step.tell == kToldInReceive) publish_fault(qp, IBV_WC_LOC_PROT_ERR);
    return step;
  }
  next_slot(qp).large = {send.length, 0, 0};
  publish(qp, SlotKind::kPlaced, flags_of(send), 0, send.immediate);
  return step;
}

/// Whether memory of the peer that cannot be mapped can be written by us now.
bool can_place(const Qp& qp) noexcept {
  return qp.shared.record == nullptr &&
         qp.link.peer->cma.load(std::memory_order_relaxed) == Cma::kWorks;
}

/// The byte of a streaming message from which on it lies in its place.
std::uint64_t placed_from(const Qp& qp, const PendingSend& send) noexcept {
  return std::min(load_relaxed(qp.sq.progress.slot->large.placed_from), send.length);
}

/// The last `bytes` of a streaming message straight to their place, if that can be now.
[[gnu::noinline]] void place_tail(Qp& qp, SendLock& lock, const PendingSend& send,
                                  const LocalRange* local, std::uint64_t bytes) noexcept {
  RemoteRange ranges[kMaxSge];
  const std::uint32_t count = receive_ranges(qp, send.length, ranges);
  const Transfer transfer{local, send.num_sge,           ranges,
                          count, IBV_ACCESS_LOCAL_WRITE, Direction::kToPeer};
  const std::uint64_t from = send.length - bytes;
  std::uint64_t done = from;
  const std::uint64_t start = now_ns();
  if (copy(qp, lock, transfer, done, send.length) != Reach::kDone) return;
  qp.stream.copy_choice.note_kernel(bytes, now_ns() - start);
  // Pairs with the load in pull_stream().
  __atomic_store_n(&qp.sq.progress.slot->large.placed_from, from, __ATOMIC_RELEASE);
  lock.beat();
}

Step stream_on(Qp& qp, SendLock& lock, const PendingSend& send, const LocalRange* local) noexcept {
  Progress& progress = qp.sq.progress;
  const std::uint64_t end = placed_from(qp, send);
  while (!progress.placing && progress.done < end) {
    std::uint64_t n = end - progress.done;
    if (n > kPiece) n = kPiece;
    const std::uint64_t room = stream_ring_room(qp);
    if (room < n) {
      if (!nobody_takes(qp)) return Step::waits(Wait::kStream);
      progress.placing = true;
      progress.placed = progress.done;
      break;
    }
    const std::uint64_t start = now_ns();
    if (!fill_stream_ring(qp, send, local, progress.done, n, qp.stream.produced))
      return Step::fails(IBV_WC_LOC_PROT_ERR);
    if (n == kPiece) qp.stream.copy_choice.note_stream(n, now_ns() - start);
    progress.done += n;
    qp.stream.produced += n;
    // Publishes the bytes; pairs with the load in take_stream().
    qp.own->stream_produced.store(qp.stream.produced, std::memory_order_release);
    live.streamed.fetch_add(1, std::memory_order_relaxed);
  }
  if (progress.placing) {
    const Step step = place_rest(qp, lock, send, local);
    if (step.kind != Step::Kind::kDone) return step;
    // The receiver still has to copy what lies in the stream ring; the rest is there already.
    __atomic_store_n(&progress.slot->large.placed_from, progress.done, __ATOMIC_RELEASE);
  }
  qp.stream.produced = align_up(qp.stream.produced);
  qp.own->stream_produced.store(qp.stream.produced, std::memory_order_release);
  // The slot announced the beginning. A receiver that found the message unfinished, armed its CQ
  // and went to sleep learns here that it is whole.
  if (qp.link.remote->attention.load(std::memory_order_relaxed) != kPolled || qp.link.ring_always)
    ring_peer(qp, (send.flags & IBV_SEND_SOLICITED) != 0);
  return Step::done();
}

/// Small messages and those that need no stream. kService: the stream ring has no room, and the
/// caller decides.
Reach send_through_stream_ring(Qp& qp, const PendingSend& send, const LocalRange* local) noexcept {
  fit_stream_ring(qp, send.length);
  if (stream_ring_room(qp) < send.length) return Reach::kService;
  if (!fill_stream_ring(qp, send, local, 0, send.length, qp.stream.produced))
    return Reach::kMissing;
  next_slot(qp).large = {send.length, qp.stream.produced, 0};
  qp.stream.produced = align_up(qp.stream.produced + send.length);
  qp.own->stream_produced.store(qp.stream.produced,
                                std::memory_order_relaxed);  // published with the slot
  publish(qp, SlotKind::kWhole, flags_of(send), 0, send.immediate);
  return Reach::kDone;
}

}  // namespace

void publish_fault(Qp& qp, ibv_wc_status status, std::uint64_t length) noexcept {
  next_slot(qp).large = {static_cast<std::uint64_t>(status), length, 0};
  publish(qp, SlotKind::kFault, header::kSolicited, 0, 0);
}

bool trim_stream_ring(Qp& qp) noexcept {
  const std::uint64_t w = qp.own->stream_ring.load(std::memory_order_relaxed);
  if (w == 0 || qp.link.remote == nullptr) return true;
  const bool is_used = qp.stream.produced != qp.stream.produced_then || qp.sq.progress.streaming;
  qp.stream.produced_then = qp.stream.produced;
  if (is_used || stream_ring_room(qp) != stream_ring_size(qp)) return false;
  qp.own->stream_ring.store(0, std::memory_order_release);
  Process::get().segment().release(extent::offset(w), std::size_t{1} << extent::log(w));
  qp.stream.ring_was_full = false;
  return true;
}

/// Of the receive that the next message would use up. False: it is not posted where we look.
static bool has_credit_of_next(const Qp& qp, std::uint64_t& credit) noexcept {
  credit = qp.link.credits[qp.out.sent & qp.link.remote_rq_mask].load(std::memory_order_acquire);
  const auto lap = static_cast<std::uint32_t>(qp.out.sent >> qp.link.remote_rq_log) + 1;
  return credit >> 32 == lap;
}

CreditState next_credit(Qp& qp, std::uint64_t bytes, std::uint32_t& length) noexcept {
  if (qp.shared.record != nullptr) return next_shared_credit(qp, bytes, length);
  if (qp.link.credits == nullptr) return CreditState::kNone;
  std::uint64_t credit;
  // A queue that has grown shows what is posted since in another place.
  if (!has_credit_of_next(qp, credit) && !(find_receives(qp) && has_credit_of_next(qp, credit)))
    return CreditState::kNone;
  length = static_cast<std::uint32_t>(credit) & Credit::kLengthMask;
  return (static_cast<std::uint32_t>(credit) & Credit::kBadKey) != 0 ? CreditState::kBadKey
                                                                     : CreditState::kGood;
}

Step send_message(Qp& qp, SendLock& lock, const PendingSend& send,
                  const LocalRange* local) noexcept {
  Progress& progress = qp.sq.progress;
  if (progress.streaming) return stream_on(qp, lock, send, local);
  if (progress.placing) return place_whole(qp, lock, send, local);

  std::uint32_t room = 0;
  const CreditState credit = next_credit(qp, send.length + qp.headroom, room);
  if (credit == CreditState::kNone)
    return qp.out.rnr_retry == 0 && qp.link.peer->alive.load(std::memory_order_acquire)
               ? Step::fails(IBV_WC_RNR_RETRY_EXC_ERR)
               : Step::waits(Wait::kReceive);
  if (find_lines(qp, 1) != Lines::kThere) return Step::waits(Wait::kStream);
  if (credit == CreditState::kBadKey && send.length + qp.headroom > room) {
    publish_fault(qp, IBV_WC_LOC_PROT_ERR, send.length);
    return Step::fails(IBV_WC_REM_OP_ERR, kToldInReceive);
  }
  if (send.length + qp.headroom > room) {
    qp.failures.refused_room = room - qp.headroom;
    publish_fault(qp, IBV_WC_LOC_LEN_ERR, send.length);
    return Step::fails(IBV_WC_REM_INV_REQ_ERR, kToldInReceive);
  }
  if (send.to_group) {
    const ibv_gid group{.global = {send.remote_address, send.swap}};
    std::memcpy(next_slot(qp).data + Slot::kGroupAt, group.raw, sizeof group);
  }
  std::size_t inline_room = send.to_group ? Slot::kGroupAt : Slot::kInlineBytes;
  if (const std::uint64_t path = send.path(); path != 0) {
    say_path(next_slot(qp), path);
    inline_room = Slot::kPathAt;
  }
  // Which of the shared receives it goes to is for the receiver to say.
  const bool shared = qp.shared.record != nullptr;
  if (send.length >= kPlacedFrom && !shared) {
    RemoteRange ranges[kMaxSge];
    const std::uint32_t count = receive_ranges(qp, send.length, ranges);
    const Reach way = way_to_all(qp, ranges, count, IBV_ACCESS_LOCAL_WRITE);
    // One that lies in the ring is for the receiver to judge, as it is when it is posted alone.
    const bool is_judged = send.length > kMostInLines;
    if (way == Reach::kDenied && is_judged) {  // deregistered after the receive was posted
      publish_fault(qp, IBV_WC_LOC_PROT_ERR);
      return Step::fails(IBV_WC_REM_OP_ERR, kToldInReceive);
    }
    // What is on demand may be missing: then both ends learn it before the message is gone.
    if (count != 0 && (way == Reach::kDone || (way == Reach::kKernel && is_judged)))
      return place_whole(qp, lock, send, local);
  }
  // What a datagram says of its path, and of its group, stands where a longer message's bytes do.
  const bool is_usual = inline_room == Slot::kInlineBytes;
  const auto bytes = static_cast<std::uint32_t>(send.length);
  Lines lines = send.length <= inline_room ? Lines::kThere : Lines::kNone;
  if (lines == Lines::kNone && is_usual && send.length <= kMostInLines)
    lines = find_lines(qp, lines_of(bytes));
  if (lines == Lines::kSoon) return Step::waits(Wait::kStream);
  if (lines == Lines::kThere) {
    const bool is_there =
        publish_whole(qp, bytes, flags_of(send), send.immediate,
                      [&](unsigned char* to) { return gather(to, local, send.num_sge, 0, bytes); });
    return is_there ? Step::done() : Step::fails(IBV_WC_LOC_PROT_ERR);
  }
  if (send.length <= kPiece) {
    const Reach reach = send_through_stream_ring(qp, send, local);
    if (reach == Reach::kMissing) return Step::fails(IBV_WC_LOC_PROT_ERR);
    if (reach == Reach::kDone) return Step::done();
  }
  fit_stream_ring(qp, send.length);
  stream_ring_room(qp);  // sees whether somebody takes again
  const std::uint64_t needed = send.length < kPiece ? send.length : kPiece;
  if (stream_ring_size(qp) < needed && shared) return Step::waits(Wait::kMemory);
  if (qp.stream.receiver_stuck || stream_ring_size(qp) < needed)
    return place_whole(qp, lock, send, local);
  if (send.length <= kPiece)
    return nobody_takes(qp) ? place_whole(qp, lock, send, local) : Step::waits(Wait::kStream);
  const std::uint64_t bytes_to_place =
      can_place(qp) ? qp.stream.copy_choice.bytes_by_kernel(send.length) : 0;
  if (bytes_to_place == send.length) {
    const std::uint64_t start = now_ns();
    const Step step = place_whole(qp, lock, send, local);
    if (step.kind == Step::Kind::kDone)
      qp.stream.copy_choice.note_kernel(send.length, now_ns() - start);
    return step;
  }
  progress.streaming = true;
  progress.slot = &next_slot(qp);
  progress.slot->large = {send.length, qp.stream.produced, ~std::uint64_t{0}};
  progress.consumed_seen = qp.stream.consumed_seen;
  publish(qp, SlotKind::kStream, flags_of(send), 0, send.immediate);
  if (bytes_to_place != 0) place_tail(qp, lock, send, local, bytes_to_place);
  return stream_on(qp, lock, send, local);
}

}  // namespace verbatim::shm
