// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/transfer/request_service.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/meet.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/transfer/service_requests.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/verbs/software/atomics.hpp"

namespace verbatim::shm {
namespace {

/// A round moves so much at most: others get at live.mutex between rounds, and a deregistration
/// waits for one.
constexpr std::uint64_t kRoundBytes = 64u << 10;
/// So long the service thread stays at a ring without work: in the middle of a request; and when
/// all are done, if one comes right after the other. Else a thread of the program may be waiting
/// for its core, to see what was written. In all it stays for a turn.
constexpr std::uint64_t kServingPatienceNs = 20'000;
constexpr std::uint64_t kIdlePatienceNs = 3'000;
constexpr std::uint32_t kQuickInARow = 4;
constexpr std::uint64_t kTurnNs = 1'000'000;
/// So many rounds of one ring a poll serves.
constexpr int kRoundsOfPoll = 4;

enum class By : bool { kServiceThread, kPoll };

/// How a step at the next request ended.
enum class Served : std::uint8_t { kWhole, kPart, kNothing, kRefused };

DoorbellBlock& bells() noexcept { return Process::get().segment().doorbells().requests; }

bool has_answers_for(Qp& qp, std::uint64_t life) noexcept {
  Serving& serving = qp.in.serving;
  if (serving.answers == nullptr) {
    OwnSegment& segment = Process::get().segment();
    const std::uint64_t offset = segment.allocate(sizeof(RequestAnswers));
    store_relaxed(qp.own->lacks, offset == 0);
    if (offset == 0) return false;
    serving.answers = segment.at<RequestAnswers>(offset);
    qp.own->answers.store(offset, std::memory_order_release);
  }
  RequestAnswers& answers = *serving.answers;
  if (answers.life.load(std::memory_order_relaxed) == life) return true;
  for (auto* word : {&answers.answered, &answers.refused, &answers.produced, &answers.consumed})
    word->store(0, std::memory_order_relaxed);
  serving.done = serving.moved = 0;
  serving.has_refused = false;
  // Publishes the words above; pairs with the load in answers_of().
  answers.life.store(life, std::memory_order_release);
  return true;
}

/// Serves one peer's ring, from one copy of its words for each step.
class Round {
 public:
  Round(Qp& qp, const Peer& peer, const RequestRing& ring, std::uint32_t rights) noexcept
      : qp_(qp),
        peer_(peer),
        ring_(ring),
        serving_(qp.in.serving),
        answers_(*qp.in.serving.answers),
        rights_(rights) {}

  /// Request number serving.done + 1. REQUIRES: an odd live.service_active.
  Served step(const ServiceRequest& request) noexcept {
    switch (static_cast<ServiceOp>(request.op)) {
      case ServiceOp::kWrite:
        return take_written(request);
      case ServiceOp::kRead:
        return put_read(request);
      case ServiceOp::kCompareSwap:
      case ServiceOp::kFetchAdd:
      case ServiceOp::kStore:
        return work_on_word(request);
      default:
        return Served::kRefused;
    }
  }
  bool has_budget() const noexcept { return budget_ != 0; }

 private:
  /// Where the next `n` bytes of the request lie; nullptr: that is not allowed.
  unsigned char* find(const ServiceRequest& request, std::uint64_t n, std::uint32_t need) noexcept {
    if ((rights_ & need) == 0) return nullptr;
    return target_of_peer(qp_, request.rkey, request.address + serving_.moved, n, need);
  }

  /// How much of what is left can be moved now, of `there` bytes or room for them.
  std::uint64_t most(const ServiceRequest& request, std::uint64_t there) const noexcept {
    const std::uint64_t left = request.length - serving_.moved;
    return std::min({left, there, budget_});
  }

  Served moved(const ServiceRequest& request, std::uint64_t n) noexcept {
    serving_.moved += n;
    budget_ -= n;
    return serving_.moved == request.length ? Served::kWhole
           : n != 0                         ? Served::kPart
                                            : Served::kNothing;
  }

  Served take_written(const ServiceRequest& request) noexcept {
    const std::uint64_t from = request.at + serving_.moved;
    const std::uint64_t n = most(request, ring_.produced.load(std::memory_order_acquire) - from);
    if (n == 0 && request.length != serving_.moved) return Served::kNothing;
    unsigned char* const to = find(request, n, IBV_ACCESS_REMOTE_WRITE);
    const auto* const base = peer_.segment.at<unsigned char>(
        ring_.stream_ring.load(std::memory_order_relaxed), kRequestStreamBytes);
    if (request.length > kMaxMessage || to == nullptr || base == nullptr) return Served::kRefused;
    const std::uint64_t start = from % kRequestStreamBytes;
    const std::uint64_t first = std::min<std::uint64_t>(n, kRequestStreamBytes - start);
    std::memcpy(to, base + start, first);
    if (first < n) std::memcpy(to + first, base, n - first);
    answers_.consumed.store(from + n, std::memory_order_release);
    return moved(request, n);
  }

  Served put_read(const ServiceRequest& request) noexcept {
    const std::uint64_t to = request.at + serving_.moved;
    // Its word; of a room that cannot be there is none.
    const std::uint64_t used = to - ring_.consumed.load(std::memory_order_acquire);
    const std::uint64_t n =
        most(request, used > kRequestStreamBytes ? 0 : kRequestStreamBytes - used);
    if (n == 0 && request.length != serving_.moved) return Served::kNothing;
    const unsigned char* const from = find(request, n, IBV_ACCESS_REMOTE_READ);
    if (request.length > kMaxMessage || from == nullptr) return Served::kRefused;
    if (!make_stream_ring()) return Served::kNothing;  // who asked is told why, should it stay so
    unsigned char* const base = Process::get().segment().at<unsigned char>(
        answers_.stream_ring.load(std::memory_order_relaxed));
    const std::uint64_t start = to % kRequestStreamBytes;
    const std::uint64_t first = std::min<std::uint64_t>(n, kRequestStreamBytes - start);
    std::memcpy(base + start, from, first);
    if (first < n) std::memcpy(base, from + first, n - first);
    // Publishes the bytes; pairs with the load in take_bytes().
    answers_.produced.store(to + n, std::memory_order_release);
    return moved(request, n);
  }

  Served work_on_word(const ServiceRequest& request) noexcept {
    const bool stores = request.op == static_cast<std::uint32_t>(ServiceOp::kStore);
    unsigned char* const at =
        find(request, 8, stores ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_ATOMIC);
    if (at == nullptr || reinterpret_cast<std::uintptr_t>(at) % 8 != 0) return Served::kRefused;
    auto* const word = reinterpret_cast<std::uint64_t*>(at);
    if (stores) {
      __atomic_store_n(word, request.operand, __ATOMIC_SEQ_CST);
    } else {
      const bool swaps = request.op == static_cast<std::uint32_t>(ServiceOp::kCompareSwap);
      store_relaxed(answers_.values[(serving_.done + 1) % RequestRing::kRequests],
                    perform_atomic(word, swaps, request.operand, request.swap));
    }
    return Served::kWhole;
  }

  bool make_stream_ring() noexcept {
    if (answers_.stream_ring.load(std::memory_order_relaxed) != 0) return true;
    const std::uint64_t offset = Process::get().segment().allocate(kRequestStreamBytes);
    store_relaxed(qp_.own->lacks, offset == 0);
    answers_.stream_ring.store(offset, std::memory_order_release);
    return offset != 0;
  }

  Qp& qp_;
  const Peer& peer_;
  const RequestRing& ring_;
  Serving& serving_;
  RequestAnswers& answers_;
  const std::uint32_t rights_;
  std::uint64_t budget_ = kRoundBytes;
};

/// What the queue pair lets its peer do. False: it is the endpoint of an XRC target that has ended,
/// whose requests nobody answers any more.
bool find_rights(const Qp& qp, std::uint32_t& rights) noexcept {
  rights = qp.xrc == XrcRole::kTarget ? 0 : load_relaxed(qp.own->access);
  return !is_xrc_endpoint(qp) || qp.ep.parent->kind->find_rights(qp, rights);
}

/// A round of the ring of the peer of `qp`. True: something of it was done.
bool serve_round(Qp& qp, By by) noexcept {
  const std::uint64_t session = qp.own->accepts.load(std::memory_order_acquire);
  Peer* const peer = session == 0 ? nullptr : find_connected_peer(qp);
  if (peer == nullptr) return false;
  const std::uint32_t index = Process::index_in(*peer, load_relaxed(qp.own->dest_qpn));
  if (index >= peer->segment.qp_capacity()) return false;
  const QpRecord& record = peer->segment.qps()[index];
  const std::uint64_t life = record.tx_session.load(std::memory_order_acquire);
  if (load_relaxed(record.dest_qpn) != qp.own->qpn || life >> 32 != session) return false;
  const std::uint64_t offset = record.requests.load(std::memory_order_acquire);
  const RequestRing* const ring =
      offset == 0 ? nullptr : peer->segment.at<RequestRing>(offset, sizeof(RequestRing));
  if (ring == nullptr || !has_answers_for(qp, life) || qp.in.serving.has_refused) return false;

  Serving& serving = qp.in.serving;
  RequestAnswers& answers = *serving.answers;
  // Pairs with the store in give().
  const std::uint64_t asked = ring->asked.load(std::memory_order_acquire);
  if (asked - serving.done - 1 >= RequestRing::kRequests) return false;  // none, or a lie
  const std::uint64_t before = serving.done;
  bool has_moved = false;
  // Odd, with a full fence, before any key is looked up: a deregistration either is seen, or sees
  // us.
  live.service_active.fetch_add(1, std::memory_order_seq_cst);
  std::uint32_t rights;
  const bool answers_at_all = find_rights(qp, rights);
  Round round(qp, *peer, *ring, rights);
  while (answers_at_all && serving.done != asked && round.has_budget()) {
    const ServiceRequest& shown = ring->requests[(serving.done + 1) % RequestRing::kRequests];
    const ServiceRequest request{load_relaxed(shown.op),      load_relaxed(shown.rkey),
                                 load_relaxed(shown.address), load_relaxed(shown.length),
                                 load_relaxed(shown.at),      load_relaxed(shown.operand),
                                 load_relaxed(shown.swap)};
    // Whoever detaches says so before he gives the memory of his ring another use.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (record.tx_session.load(std::memory_order_relaxed) != life) break;
    const Served served = round.step(request);
    has_moved = has_moved || served != Served::kNothing;
    if (served == Served::kRefused) {
      serving.has_refused = true;
      answers.refused.store((serving.done + 1) << 8 | IBV_WC_REM_ACCESS_ERR,
                            std::memory_order_relaxed);
    } else if (served != Served::kWhole) {
      if (served == Served::kNothing) break;
      continue;
    }
    serving.moved = 0;
    ++serving.done;
    if (serving.has_refused) break;
  }
  live.service_active.fetch_add(1, std::memory_order_release);
  serving.is_under_way = serving.done != asked;
  serving.processor = ring->processor.load(std::memory_order_relaxed);
  serving.is_quick = ring->in_a_row.load(std::memory_order_relaxed) >= kQuickInARow;
  if (serving.done != before) {
    answers.by_poll.store(by == By::kPoll, std::memory_order_relaxed);
    // Publishes what was done; pairs with the load in answer().
    answers.answered.store(serving.done, std::memory_order_release);
  }
  return has_moved;
}

void say_attended(Qp& qp, bool on) noexcept {
  if (qp.in.serving.answers != nullptr)
    qp.in.serving.answers->attended.store(on, std::memory_order_relaxed);
}

/// False: more has come meanwhile, and some of it was done.
bool leave(Qp& qp, By by) noexcept {
  say_attended(qp, false);
  // Either who publishes sees that we have left, or we see it: pairs with the fence in
  // tell_responder().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return !serve_round(qp, by);
}

/// The queue pairs, by their places, at whose rings the service thread stays.
struct Attended {
  static constexpr std::uint32_t kMost = 64;
  std::uint32_t count = 0;
  std::uint32_t places[kMost] = {};
};
constinit Attended attended;

template <class F>
void each_qp_at(std::uint32_t bit, F f) noexcept {
  const std::uint32_t capacity = Process::get().segment().head().qp_capacity;
  for (std::uint32_t i = bit; i < capacity && i < kMaxQps; i += DoorbellBlock::kBits)
    if (live.qps[i] != nullptr) f(*live.qps[i]);
}

void take_in_rung() noexcept {
  if (!are_requests_rung()) return;
  bells().drain([](std::uint32_t bit) {
    each_qp_at(bit, [](Qp& qp) {
      if (qp.in.serving.is_attended) return;
      if (attended.count == Attended::kMost) {
        bells().ring(qp.index);  // at the next turn
        return;
      }
      qp.in.serving.is_attended = true;
      qp.in.serving.idle_since = 0;
      attended.places[attended.count++] = qp.index;
      say_attended(qp, true);
    });
  });
}

/// Where the service thread serves a requester that runs on the same processor, the two only take
/// turns: a wake-up puts it there when all others are busy. Its own.
class Processor {
 public:
  /// Whether it is the one that we run on.
  static bool is_ours(std::int32_t processor) noexcept { return processor == ::sched_getcpu(); }

  void keep_off(std::int32_t processor, std::uint64_t now) noexcept {
    constexpr std::uint64_t kSeldomNs = 1'000'000;
    if (now - changed_ns_ > kSeldomNs) change(processor, now);
  }
  /// It may have become another's.
  void may_return(std::uint64_t now) noexcept {
    constexpr std::uint64_t kLongNs = 1'000'000'000;
    if (kept_off_ != kNone && now - changed_ns_ > kLongNs) change(kNone, now);
  }
  void forget() noexcept { kept_off_ = kNone; }

 private:
  static constexpr std::int32_t kNone = -1;

  /// That nothing else is allowed, or this is not, is no harm.
  void change(std::int32_t processor, std::uint64_t now) noexcept {
    changed_ns_ = now;
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    if (kept_off_ != kNone) CPU_SET(static_cast<unsigned>(kept_off_), &allowed);
    if (processor != kNone) CPU_CLR(static_cast<unsigned>(processor), &allowed);
    if (::sched_setaffinity(0, sizeof allowed, &allowed) == 0) kept_off_ = processor;
  }

  std::int32_t kept_off_ = kNone;
  std::uint64_t changed_ns_ = 0;
};
constinit Processor own_processor;

std::uint64_t patience_for(const Serving& serving, std::uint64_t now) noexcept {
  if (!serving.is_under_way && !serving.is_quick) return 0;
  if (Processor::is_ours(serving.processor)) own_processor.keep_off(serving.processor, now);
  // Its thread cannot go on while we are here.
  if (Processor::is_ours(serving.processor)) return 0;
  return serving.is_under_way ? kServingPatienceNs : kIdlePatienceNs;
}

/// False: the service thread leaves this one.
bool attend(std::uint32_t place, std::uint64_t now) noexcept {
  Qp* const qp = live.qps[place];
  if (qp == nullptr || !qp->in.serving.is_attended) return false;
  Serving& serving = qp->in.serving;
  if (!serve_round(*qp, By::kServiceThread)) {
    if (now - serving.idle_since < patience_for(serving, now)) return true;
    if (leave(*qp, By::kServiceThread)) {
      serving.is_attended = false;
      return false;
    }
  }
  say_attended(*qp, true);
  serving.idle_since = now;
  return true;
}

void serve_by_poll(Qp& qp) noexcept {
  if (qp.in.serving.is_attended) {
    (void)serve_round(qp, By::kPoll);
    return;
  }
  say_attended(qp, true);
  int rounds = 0;
  while (serve_round(qp, By::kPoll) && ++rounds < kRoundsOfPoll) {
  }
  if (leave(qp, By::kPoll)) return;
  bells().ring(qp.index);
}

}  // namespace

bool are_requests_rung() noexcept { return bells().summary.load(std::memory_order_relaxed) != 0; }

void forget_attended() noexcept {
  attended.count = 0;
  own_processor.forget();
}

bool attend_requests() noexcept {
  const std::uint64_t start = now_ns();
  if (attended.count == 0 && !are_requests_rung()) {
    own_processor.may_return(start);
    return false;
  }
  std::uint64_t now = start;
  do {
    {
      LockGuard<Mutex> guard(live.mutex);
      take_in_rung();
      std::uint32_t kept = 0;
      for (std::uint32_t i = 0; i < attended.count; ++i)
        if (attend(attended.places[i], now)) attended.places[kept++] = attended.places[i];
      attended.count = kept;
      if (kept == 0) return are_requests_rung();
    }
    cpu_pause();
    now = now_ns();
  } while (now - start < kTurnNs);
  return true;
}

void serve_requests_by_poll(Cq& cq) noexcept {
  if (!live.mutex.try_lock()) {
    // Whoever has it may be about something else.
    cq.doorbells->show_any();
    return;
  }
  bells().drain([](std::uint32_t bit) { each_qp_at(bit, serve_by_poll); });
  const bool are_more = are_requests_rung();
  live.mutex.unlock();
  if (are_more) cq.doorbells->show_any();
}

void serve_requests(Qp& qp) noexcept { (void)serve_round(qp, By::kServiceThread); }

void give_answers_back(Qp& qp) noexcept {
  RequestAnswers* const answers = qp.in.serving.answers;
  qp.in.serving = {};
  OwnSegment& segment = Process::get().segment();
  if (answers == nullptr || !segment.holds(answers)) return;
  segment.release(answers->stream_ring.load(std::memory_order_relaxed), kRequestStreamBytes);
  segment.release(segment.offset_of(answers), sizeof(RequestAnswers));
}

}  // namespace verbatim::shm
