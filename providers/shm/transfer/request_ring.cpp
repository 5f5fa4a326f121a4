// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/transfer/request_ring.hpp"

#include <sched.h>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/transfer/send_wait.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// WRITEs go into the stream ring by so much at a time: both copies overlap and stay in L2.
constexpr std::uint64_t kWritePiece = 32u << 10;
/// Whoever posts a long WRITE puts it into the stream ring while the other side takes from it, and
/// leaves the rest to later polls when nothing was taken for so long.
constexpr std::uint64_t kPatienceNs = 50'000;
/// Without an answer for so long the responder is told again; its service thread less often. Where
/// polls have answered, whoever polls may be without a core for a while.
constexpr std::uint64_t kRemindNs = 20'000;
constexpr std::uint64_t kRemindPolledNs = 100'000;
constexpr std::uint64_t kWakeAgainNs = 1'000'000;
/// After so many answers in a row from threads of the program its service thread is left asleep.
constexpr std::uint32_t kTrusted = 4;

constexpr std::uint64_t align_up(std::uint64_t n, std::uint64_t to) {
  return (n + to - 1) & ~(to - 1);
}

/// nullptr: it has not looked yet.
const RequestAnswers* answers_of(const Qp& qp) noexcept {
  const std::uint64_t offset = qp.link.remote->answers.load(std::memory_order_acquire);
  if (offset == 0) return nullptr;
  const auto* answers = qp.link.peer->segment.at<RequestAnswers>(offset, sizeof(RequestAnswers));
  return answers != nullptr && answers->life.load(std::memory_order_acquire) ==
                                   qp.own->tx_session.load(std::memory_order_relaxed)
             ? answers
             : nullptr;
}

/// A request is given out: whoever serves it should wait for the next one, or better not.
void count_quick(const Asking& asking) noexcept {
  constexpr std::uint64_t kQuickNs = 3'000;
  std::atomic<std::uint32_t>& count = asking.ring->in_a_row;
  const bool is_quick = asking.asked != asking.ended || now_ns() - asking.ended_ns < kQuickNs;
  count.store(is_quick ? count.load(std::memory_order_relaxed) + 1 : 0, std::memory_order_relaxed);
}

bool is_polled(const Asking& asking) noexcept { return asking.polls_in_a_row >= kTrusted; }

void ring_polls(Qp& qp, std::uint32_t cq) noexcept {
  PeerSegment& segment = qp.link.peer->segment;
  if (cq < segment.cq_capacity()) segment.doorbells().cqs[cq].show_any();
}

void ring_and_wake(Qp& qp, std::uint32_t index, bool wakes) noexcept {
  qp.link.peer->segment.doorbells().requests.ring(index);
  const std::uint32_t cq = load_relaxed(qp.link.remote->cq);
  const std::uint32_t send_cq = load_relaxed(qp.link.remote->send_cq);
  ring_polls(qp, cq);
  if (send_cq != cq) ring_polls(qp, send_cq);
  qp.asking.rung_ns = now_ns();
  if (!wakes) return;
  qp.asking.woken_ns = qp.asking.rung_ns;
  qp.link.peer->wake_service();
}

/// Something for the responder was published.
void tell_responder(Qp& qp) noexcept {
  qp.asking.ring->processor.store(::sched_getcpu(), std::memory_order_relaxed);
  // Either we see that it has left, or its last look sees this: pairs with the fence in leave().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const RequestAnswers* const answers = answers_of(qp);
  if (answers != nullptr && answers->attended.load(std::memory_order_relaxed) != 0) return;
  const std::uint32_t index = Process::index_in(*qp.link.peer, qp.own->dest_qpn);
  // Who was told before has yet to look.
  if (qp.link.peer->segment.doorbells().requests.is_rung(index)) return;
  ring_and_wake(qp, index, !is_polled(qp.asking));
}

/// The head waits. Hints can be lost, who polled may do so no more, and the service thread may be
/// without a core while a thread of the program polls.
void remind(Qp& qp) noexcept {
  Asking& asking = qp.asking;
  const std::uint64_t now = now_ns();
  if (now - asking.rung_ns < (is_polled(asking) ? kRemindPolledNs : kRemindNs)) return;
  const bool wakes = is_polled(asking) || now - asking.woken_ns > kWakeAgainNs;
  asking.polls_in_a_row = 0;
  ring_and_wake(qp, Process::index_in(*qp.link.peer, qp.own->dest_qpn), wakes);
}

/// The head has come further: what is left has a time of its own.
void note_moved(Qp& qp) noexcept {
  qp.sq.progress.wait = Wait::kNothing;
  ++qp.asking.moves;
  qp.asking.rung_ns = now_ns();
  live.streamed.fetch_add(1, std::memory_order_relaxed);
}

/// How much of our stream ring is free now.
std::uint64_t room_in_stream_ring(Qp& qp) noexcept {
  Asking& asking = qp.asking;
  if (const RequestAnswers* const answers = answers_of(qp); answers != nullptr) {
    const std::uint64_t taken = answers->consumed.load(std::memory_order_acquire);
    // The peer's word: never believe more than was produced, nor a step back.
    if (taken != asking.free_from &&
        taken - asking.free_from <= asking.produced - asking.free_from) {
      asking.free_from = taken;
      note_moved(qp);
    }
  }
  return kRequestStreamBytes - (asking.produced - asking.free_from);
}

/// False: memory of ours is missing, and nothing was put in.
bool copy_in(Qp& qp, const PendingSend& send, const LocalRange* local, std::uint64_t n) noexcept {
  Asking& asking = qp.asking;
  unsigned char* const base = Process::get().segment().at<unsigned char>(
      asking.ring->stream_ring.load(std::memory_order_relaxed));
  const std::uint64_t start = asking.produced % kRequestStreamBytes;
  const std::uint64_t first = n < kRequestStreamBytes - start ? n : kRequestStreamBytes - start;
  if (!gather(base + start, local, send.num_sge, asking.filled, first) ||
      (first < n && !gather(base, local, send.num_sge, asking.filled + first, n - first)))
    return false;
  asking.filled += n;
  asking.produced += n;
  // The last byte's line is the request's.
  if (asking.filled == send.length) asking.produced = align_up(asking.produced, kCacheLine);
  // Publishes the bytes; pairs with the load in take_written().
  asking.ring->produced.store(asking.produced, std::memory_order_release);
  return true;
}

/// Puts the bytes of the last request that was given out, a WRITE, into the stream ring, as far as
/// there is room. `patient`: and goes on while the responder makes some. False: memory of ours is
/// missing.
bool fill(Qp& qp, SendLock& lock, const PendingSend& send, const LocalRange* local,
          bool patient) noexcept {
  Asking& asking = qp.asking;
  std::uint64_t since = 0;
  while (asking.filled < send.length) {
    const std::uint64_t left = send.length - asking.filled;
    const std::uint64_t n = left < kWritePiece ? left : kWritePiece;
    if (room_in_stream_ring(qp) >= n) {
      since = 0;
      if (!copy_in(qp, send, local, n)) return false;
      live.streamed.fetch_add(1, std::memory_order_relaxed);
      tell_responder(qp);
      lock.beat();
      continue;
    }
    if (!patient) return true;
    const std::uint64_t now = now_ns();
    if (since == 0) since = now;
    if (now - since > kPatienceNs) return true;
    cpu_pause();
  }
  return true;
}

bool make_request_ring(Qp& qp) noexcept {
  if (qp.asking.ring != nullptr) return true;
  OwnSegment& segment = Process::get().segment();
  const std::uint64_t offset = segment.allocate(sizeof(RequestRing));
  if (offset == 0) return false;
  qp.asking.ring = segment.at<RequestRing>(offset);
  qp.own->requests.store(offset, std::memory_order_release);
  return true;
}

bool make_stream_ring(RequestRing& ring) noexcept {
  if (ring.stream_ring.load(std::memory_order_relaxed) != 0) return true;
  const std::uint64_t offset = Process::get().segment().allocate(kRequestStreamBytes);
  ring.stream_ring.store(offset, std::memory_order_release);
  return offset != 0;
}

/// Gives out the request behind those under way. kService: done; kArena: no room now. What is found
/// missing of a WRITE that was given out is found again when it is the head.
Reach give(Qp& qp, SendLock* lock, const PendingSend& send, const LocalRange* local, ServiceOp op,
           std::uint64_t operand) noexcept {
  Asking& asking = qp.asking;
  if (!make_request_ring(qp)) return Reach::kNoRoom;
  RequestRing& ring = *asking.ring;
  if (op == ServiceOp::kWrite && !make_stream_ring(ring)) return Reach::kNoRoom;
  const RequestAnswers* const answers = answers_of(qp);
  const std::uint64_t answered =
      answers == nullptr ? 0 : answers->answered.load(std::memory_order_acquire);
  // What an atomic found stands where the request stood.
  if (asking.asked - asking.ended >= RequestRing::kRequests ||
      asking.asked - answered >= RequestRing::kRequests)
    return Reach::kArena;
  // What is empty is filled from its beginning again, which is in the caches.
  if (answered == asking.asked) {
    asking.produced = asking.free_from = align_up(asking.produced, kRequestStreamBytes);
    ring.produced.store(asking.produced, std::memory_order_relaxed);
  }
  if (answered == asking.asked && !is_asked(qp)) {
    asking.next_read = align_up(asking.next_read, kRequestStreamBytes);
    ring.consumed.store(asking.next_read, std::memory_order_relaxed);
  }
  const bool reads = op == ServiceOp::kRead;
  ServiceRequest& request = ring.requests[(asking.asked + 1) % RequestRing::kRequests];
  store_relaxed(request.op, static_cast<std::uint32_t>(op));
  store_relaxed(request.rkey, send.rkey);
  store_relaxed(request.address, send.remote_address);
  store_relaxed(request.length, reads || op == ServiceOp::kWrite ? send.length : 8);
  store_relaxed(request.at, reads ? asking.next_read : asking.produced);
  store_relaxed(request.operand, operand);
  store_relaxed(request.swap, send.swap);
  if (reads) asking.next_read = align_up(asking.next_read + send.length, kCacheLine);
  asking.filled = op == ServiceOp::kWrite ? 0 : send.length;
  // A short one is there before the responder looks; a long one begins while it wakes up.
  if (op == ServiceOp::kWrite && send.length <= kWritePiece &&
      room_in_stream_ring(qp) >= send.length && !copy_in(qp, send, local, send.length))
    return Reach::kMissing;
  count_quick(asking);
  // Publishes the request; pairs with the load in serve_round().
  ring.asked.store(++asking.asked, std::memory_order_release);
  tell_responder(qp);
  if (op == ServiceOp::kWrite)
    static_cast<void>(fill(qp, *lock, send, local, !Process::get().on_service_thread()));
  return Reach::kService;
}

/// Takes the bytes of the READ at the head that have come. kDone; or why not.
Reach take_bytes(Qp& qp, const RequestAnswers& answers, const PendingSend& send,
                 const LocalRange* local) noexcept {
  Asking& asking = qp.asking;
  const std::uint64_t at = asking.ring->requests[(asking.ended + 1) % RequestRing::kRequests].at;
  const std::uint64_t there = answers.produced.load(std::memory_order_acquire) - at;
  // The peer's word. Bytes of later ones may be there too; of earlier ones, this is huge.
  const std::uint64_t end = there > ~std::uint64_t{0} / 2 ? 0
                            : there < send.length         ? there
                                                          : send.length;
  std::uint64_t& done = qp.sq.progress.placed;
  if (end <= done) return Reach::kDone;
  const auto* const base = qp.link.peer->segment.at<unsigned char>(
      answers.stream_ring.load(std::memory_order_acquire), kRequestStreamBytes);
  if (base == nullptr) return Reach::kDenied;
  while (done < end) {
    const std::uint64_t start = (at + done) % kRequestStreamBytes;
    const std::uint64_t left = end - done;
    const std::uint64_t n = left < kRequestStreamBytes - start ? left : kRequestStreamBytes - start;
    if (!scatter(local, send.num_sge, done, base + start, n)) return Reach::kMissing;
    done += n;
  }
  note_moved(qp);
  asking.ring->consumed.store(done == send.length ? align_up(at + done, kCacheLine) : at + done,
                              std::memory_order_release);
  // It may have left for want of room.
  if (done != send.length) tell_responder(qp);
  return Reach::kDone;
}

/// The answer to the request at the head: kService while there is none.
Reach answer(Qp& qp, const PendingSend& send, const LocalRange* local, bool read) noexcept {
  Asking& asking = qp.asking;
  const RequestAnswers* const answers = answers_of(qp);
  if (answers != nullptr) {
    // Pairs with the store in serve_round(). The peer's word: of what was not asked it says
    // nothing.
    const std::uint64_t ahead = answers->answered.load(std::memory_order_acquire) - asking.ended;
    const bool is_done = ahead != 0 && ahead <= asking.asked - asking.ended;
    const std::uint64_t number = asking.ended + 1;
    const std::uint64_t refused = answers->refused.load(std::memory_order_relaxed);
    if (is_done && refused >> 8 == number) {
      asking.ended = number;
      return (refused & 0xff) == IBV_WC_REM_ACCESS_ERR ? Reach::kDenied : Reach::kGone;
    }
    if (read) {
      if (const Reach taken = take_bytes(qp, *answers, send, local); taken != Reach::kDone)
        return taken;
    }
    if (is_done) {
      if (read && qp.sq.progress.placed != send.length) return Reach::kDenied;
      asking.ended = number;
      if (!is_asked(qp)) asking.ended_ns = now_ns();
      asking.polls_in_a_row =
          answers->by_poll.load(std::memory_order_relaxed) != 0 ? asking.polls_in_a_row + 1 : 0;
      return Reach::kDone;
    }
    if (send.opcode != IBV_WR_RDMA_READ) (void)room_in_stream_ring(qp);  // sees whether it moves
  }
  remind(qp);
  return Reach::kService;
}

ServiceOp op_for(unsigned opcode) noexcept {
  switch (opcode) {
    case IBV_WR_RDMA_READ:
      return ServiceOp::kRead;
    case IBV_WR_ATOMIC_WRITE:
      return ServiceOp::kStore;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return ServiceOp::kCompareSwap;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return ServiceOp::kFetchAdd;
    default:
      return ServiceOp::kWrite;
  }
}

/// May the request, which has others before it, be given out? What is to fail, or goes another way,
/// waits until it is the head.
bool may_go_ahead(const Qp& qp, const PendingSend& send) noexcept {
  const bool is_word = is_atomic(send.opcode) || send.opcode == IBV_WR_ATOMIC_WRITE;
  if (!is_word && send.opcode != IBV_WR_RDMA_WRITE && send.opcode != IBV_WR_RDMA_READ) return false;
  const std::uint32_t need = remote_access_for(send.opcode, 0);
  const std::uint64_t bytes = is_word ? 8 : send.length;
  if ((send.flags & IBV_SEND_FENCE) != 0 || send.length == 0 || send.length > kMaxMessage ||
      send.length < (is_word ? 8 : 1) || (is_word && send.remote_address % 8 != 0) ||
      (load_relaxed(qp.link.remote->access) & need) == 0)
    return false;
  unsigned char* mapped;
  std::uint64_t address = 0;
  if (way_to(qp, send.rkey, send.remote_address, bytes, need, mapped, address) != Reach::kService)
    return false;
  return is_word || address == 0 ||
         qp.link.peer->cma.load(std::memory_order_acquire) != Cma::kWorks;
}

/// The word that an ATOMIC_WRITE brings. False: it is missing.
bool find_operand(const PendingSend& send, const LocalRange* local, std::uint64_t& word) noexcept {
  word = send.compare_add;
  return send.opcode != IBV_WR_ATOMIC_WRITE ||
         gather(reinterpret_cast<unsigned char*>(&word), local, send.num_sge, 0, sizeof(word));
}

}  // namespace

Reach ask_to_move(Qp& qp, SendLock& lock, const PendingSend& send, const LocalRange* local,
                  bool read) noexcept {
  if (!is_asked(qp)) {
    const ServiceOp op = read ? ServiceOp::kRead : ServiceOp::kWrite;
    const Reach given = give(qp, &lock, send, local, op, 0);
    if (given != Reach::kService) return given == Reach::kArena ? Reach::kService : given;
    qp.asking.next = qp.sq.head + 1;
  } else if (!read && qp.asking.asked == qp.asking.ended + 1 &&
             !fill(qp, lock, send, local, false)) {
    return Reach::kMissing;
  }
  return answer(qp, send, local, read);
}

Reach ask_for_atomic(Qp& qp, const PendingSend& send, std::uint64_t operand,
                     std::uint64_t& old) noexcept {
  if (!is_asked(qp)) {
    const Reach given = give(qp, nullptr, send, nullptr, op_for(send.opcode), operand);
    if (given != Reach::kService) return given == Reach::kArena ? Reach::kService : given;
    qp.asking.next = qp.sq.head + 1;
  }
  const std::uint64_t number = qp.asking.ended + 1;
  const Reach reach = answer(qp, send, nullptr, false);
  if (reach == Reach::kDone) {
    const RequestAnswers* const answers = answers_of(qp);
    if (answers == nullptr) return Reach::kGone;
    old = load_relaxed(answers->values[number % RequestRing::kRequests]);
  }
  return reach;
}

void ask_ahead(Qp& qp, SendLock& lock) noexcept {
  Asking& asking = qp.asking;
  if (!is_asked(qp) || qp.xrc != XrcRole::kNone || is_dead(qp)) return;
  LocalRange local[kMaxSge];
  for (;;) {
    const PendingSend& last = qp.sq.store.at(asking.next - 1);
    if (asking.filled < last.length) {
      if (!resolve_local(qp, last, qp.sq.store.sges_of(asking.next - 1), 0, local)) return;
      if (!fill(qp, lock, last, local, false) || asking.filled < last.length) return;
    }
    // The message that tells of it comes before what is behind it.
    if (last.opcode == IBV_WR_RDMA_WRITE_WITH_IMM || asking.next == qp.sq.tail ||
        qp.mode.load(std::memory_order_relaxed) != IBV_QPS_RTS)
      return;
    const PendingSend& send = qp.sq.store.at(asking.next);
    const ServiceOp op = op_for(send.opcode);
    const bool reads = op != ServiceOp::kWrite && op != ServiceOp::kStore;
    std::uint64_t operand;
    if (!may_go_ahead(qp, send) ||
        !resolve_local(qp, send, qp.sq.store.sges_of(asking.next),
                       reads ? IBV_ACCESS_LOCAL_WRITE : 0, local) ||
        !find_operand(send, local, operand) ||
        give(qp, &lock, send, local, op, operand) != Reach::kService)
      return;
    ++asking.next;
  }
}

}  // namespace verbatim::shm
