// SPDX-License-Identifier: BSD-2-Clause
//
// The data path as the C slots call it; the bodies are in *_fast.hpp.
#include "providers/shm/calls/hot.hpp"

#include "providers/shm/calls/send_shared_fast.hpp"
#include "providers/shm/calls/work_fast.hpp"
#include "providers/shm/poll/cursor_fast.hpp"
#include "providers/shm/poll/poll_fast.hpp"
#include "providers/shm/queues/comp_channel.hpp"
#include "providers/shm/receive/receive_fast.hpp"
#include "providers/shm/receive/receive_run_fast.hpp"
#include "providers/shm/transfer/send_fast.hpp"
#include "providers/shm/windows/authorize.hpp"

namespace verbatim::shm {

namespace {

// One for all locks: it is long.
[[gnu::noinline]] int perform_list(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  return perform_list_fast(qp, wr, bad_wr);
}

// Left to by jumps: what is not a single request without a completion needs registers that the
// shortest way does not have to save. The send lock is held.
template <bool kDomain>
[[gnu::noinline]] int post_list(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  const PostLock<kDomain> lock(qp, typename PostLock<kDomain>::Kept{});
  return perform_list(qp, wr, bad_wr);
}

template <bool kDomain>
[[gnu::noinline]] int post_more(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  if (wr != nullptr && (post_one_fast<kDomain, true>(qp, *wr) || post_one_long<kDomain>(qp, *wr)))
    return 0;
  return post_list<kDomain>(qp, wr, bad_wr);
}

template <bool kDomain>
[[gnu::always_inline]] inline int post_locked(Qp& qp, ibv_send_wr* wr,
                                              ibv_send_wr** bad_wr) noexcept {
  if (wr != nullptr && post_one_fast<kDomain, false>(qp, *wr)) return 0;
  return post_more<kDomain>(qp, wr, bad_wr);
}

// The same, left to by a jump.
template <bool kDomain>
[[gnu::noinline]] int post_other(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  return post_locked<kDomain>(qp, wr, bad_wr);
}

/// To a receiver that has many senders.
template <bool kDomain>
[[gnu::noinline]] int post_in_turn(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  if (post_one_shared<kDomain, true, true>(qp, *wr)) return 0;
  if (post_one_shared<kDomain, false, true>(qp, *wr)) return 0;
  return post_list<kDomain>(qp, wr, bad_wr);
}

template <bool kDomain>
[[gnu::noinline]] int post_more_to_shared(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  if (wr != nullptr && is_send(*wr)) {
    if (wr->num_sge != 1) return post_list<kDomain>(qp, wr, bad_wr);
    if (post_one_shared<kDomain, true, false>(qp, *wr)) return 0;
    return post_in_turn<kDomain>(qp, wr, bad_wr);
  }
  return post_other<kDomain>(qp, wr, bad_wr);
}

template <bool kDomain>
[[gnu::noinline]] int post_to_shared(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  PostLock<kDomain>::keep(qp);
  if (wr != nullptr && post_one_shared<kDomain, false, false>(qp, *wr)) return 0;
  return post_more_to_shared<kDomain>(qp, wr, bad_wr);
}

[[gnu::noinline]] int post_in_domain(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  const bool to_shared = (qp.slow_path.load(std::memory_order_relaxed) & Qp::kToShared) != 0;
  if (to_shared) return post_to_shared<true>(qp, wr, bad_wr);
  PostLock<true>::keep(qp);
  return post_other<true>(qp, wr, bad_wr);
}

template <bool kDomain>
[[gnu::noinline]] int complete_more(Qp& qp) noexcept {
  if (complete_one<kDomain, IBV_SEND_SIGNALED>(qp)) return 0;
  if (complete_one<kDomain, WorkEntry::kPiece>(qp)) return 0;
  return complete_work<kDomain>(qp);
}

template <bool kDomain>
[[gnu::always_inline]] inline int complete(Qp& qp) noexcept {
  if (complete_one<kDomain, 0>(qp)) return 0;
  return complete_more<kDomain>(qp);
}

[[gnu::noinline]] int next_round(Cq& cq) noexcept { return go_on<false>(cq); }

}  // namespace

int post_send(ibv_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  Qp& qp = Qp::from(handle);
  const std::uint8_t slow_path = qp.slow_path.load(std::memory_order_relaxed);
  if (slow_path == 0) [[likely]] {
    PostLock<false>::keep(qp);
    return post_locked<false>(qp, wr, bad_wr);
  }
  return slow_path == Qp::kToShared ? post_to_shared<false>(qp, wr, bad_wr)
                                    : post_in_domain(qp, wr, bad_wr);
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept {
  return post_recv_fast(Qp::from(qp), wr, bad_wr);
}

int post_receive_list(Qp& qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept {
  DomainGuard guard(qp.rq.lock, qp.in_domain);
  while ((wr = post_receives(qp, wr)) != nullptr) {
    if (const int error = post_recv_slowly(qp, *wr); error != 0) {
      *bad_wr = wr;
      return error;
    }
    wr = wr->next;
  }
  return 0;
}

int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) noexcept {
  return poll_cq_fast(Cq::from(cq), entries, wc);
}

int poll_kept_first(Cq& cq, int room, ibv_wc* wc) noexcept {
  const int kept = poll_pending(cq, room, wc);
  return kept != 0 ? kept : poll_come(cq, room, wc);
}

int poll_stored_first(Cq& cq, int room, ibv_wc* wc) noexcept {
  end_empty_polls();
  const int got = poll_stored_alone(cq, room, wc);
  return got != 0 && (got == room || !something_came(cq)) ? got : poll_all(cq, room, wc, got);
}

int poll_own(Cq& cq, int room, ibv_wc* wc, std::uint32_t i) noexcept {
  if (!take_one(cq, room, *wc, i)) [[unlikely]]
    return poll_long(cq, room, wc, i);
  end_empty_polls();
  return room == 1 || !something_came(cq) ? 1 : poll_all(cq, room, wc, 1);
}

int poll_long(Cq& cq, int room, ibv_wc* wc, std::uint32_t i) noexcept {
  if (!take_one_long(cq, room, *wc, i)) [[unlikely]]
    return poll_all(cq, room, wc, 0);
  end_empty_polls();
  return room == 1 || !something_came(cq) ? 1 : poll_all(cq, room, wc, 1);
}

int poll_shared(Cq& cq, int room, ibv_wc* wc, std::uint32_t i) noexcept {
  if (!take_one_shared(cq, room, *wc, i)) [[unlikely]]
    return poll_all(cq, room, wc, 0);
  end_empty_polls();
  return room == 1 || !something_came(cq) ? 1 : poll_all(cq, room, wc, 1);
}

int poll_all(Cq& cq, int room, ibv_wc* wc, int got) noexcept {
  return poll_all_fast(cq, room, wc, got);
}

[[gnu::aligned(kCacheLine)]] int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) noexcept {
  return start_poll_fast<false>(Cq::from(cq), attr);
}

[[gnu::aligned(kCacheLine)]] int start_poll_alone(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) noexcept {
  return start_poll_alone_fast(Cq::from(cq), attr, next_round);
}

[[gnu::aligned(kCacheLine)]] int next_poll(ibv_cq_ex* cq) noexcept {
  return next_poll_fast(Cq::from(cq), next_round);
}

[[gnu::aligned(kCacheLine)]] void end_poll(ibv_cq_ex* cq) noexcept {
  end_poll_fast<false>(Cq::from(cq));
}

[[gnu::aligned(kCacheLine)]] void end_poll_alone(ibv_cq_ex* cq) noexcept {
  end_poll_fast<true>(Cq::from(cq));
}

[[gnu::aligned(kCacheLine)]] void wr_start(ibv_qp_ex* qp) noexcept {
  PostLock<false>::keep(Qp::from(qp));
}

[[gnu::aligned(kCacheLine)]] void wr_start_in_domain(ibv_qp_ex* qp) noexcept {
  PostLock<true>::keep(Qp::from(qp));
}

[[gnu::aligned(kCacheLine)]] int wr_complete(ibv_qp_ex* qp) noexcept {
  return complete<false>(Qp::from(qp));
}

[[gnu::aligned(kCacheLine)]] int wr_complete_in_domain(ibv_qp_ex* qp) noexcept {
  return complete<true>(Qp::from(qp));
}

std::uint64_t move_alike(const unsigned char* from, std::uint32_t bytes, const ReceiveSge* sge,
                         std::size_t max_sge, std::uint64_t count, const RoomOfKey& room) noexcept {
  const RoomOfKey here = room;
  std::uint64_t moved = 0;
  do {
    unsigned char* to;
    if (sge->lkey != here.lkey || bytes > sge->length || !here.find(sge->address, bytes, to))
        [[unlikely]]
      break;
    copy_small(to, from, bytes);
    from += bytes;
    sge += max_sge;
  } while (++moved != count);
  return moved;
}

int take_run(Qp& qp, int room, ibv_wc* wc) noexcept {
  return static_cast<int>(
      take_run_fast(qp, static_cast<std::uint32_t>(room), AsCompletions(qp, wc)));
}

std::uint32_t take_batch(Qp& qp, CompletionBatch& batch) noexcept {
  const std::uint32_t got = take_run_fast(qp, CompletionBatch::kMost, AsBatch(batch));
  if (got != 0) fill_receive(batch.rest, qp, 0, 0, 0);
  return got;
}

void take_send_lock_slowly(Qp& qp) noexcept { SendLock(qp, SendLock::As::kUser).keep(); }

int post_slowly_locked(Qp& qp, const ibv_send_wr& wr) noexcept {
  SendLock lock(qp, SendLock::Kept{});
  const int error = qp.kind == nullptr ? post_slowly(qp, lock, wr) : post_by_kind(qp, lock, wr);
  lock.keep();
  return error;
}

[[gnu::aligned(kCacheLine)]] void wr_send(ibv_qp_ex* qp) noexcept { add_send(Qp::from(qp), 0, 0); }

[[gnu::aligned(kCacheLine)]] void wr_send_imm(ibv_qp_ex* qp, __be32 imm) noexcept {
  add_send(Qp::from(qp), header::kImmediate, imm);
}

[[gnu::aligned(kCacheLine)]] void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey,
                                                std::uint64_t address) noexcept {
  add_write(Qp::from(qp), rkey, address);
}

[[gnu::aligned(kCacheLine)]] void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey,
                                             std::uint64_t address, std::uint32_t length) noexcept {
  set_sge(Qp::from(qp), lkey, address, length);
}

[[gnu::aligned(kCacheLine)]] void wr_set_inline_data(ibv_qp_ex* qp, void* data,
                                                     std::size_t length) noexcept {
  set_inline_data(Qp::from(qp), data, length);
}

KnownReceives look_ahead(const Receives& receives, std::uint64_t from) noexcept {
  constexpr std::uint64_t kMost = 32;
  const std::int32_t room = receives.length(from);
  if (room < 0) return {};
  std::uint64_t behind = from + 1;
  while (behind != from + kMost && receives.length(behind) >= room) ++behind;
  prefetch_to_read(&receives.credits[behind & receives.mask]);
  return {behind, room};
}

bool find_target(const Qp& qp, WriteTarget& target, std::uint32_t key,
                 std::uint32_t need) noexcept {
  target.rkey = 0;
  Region region;
  if (!regions_of_peer(qp).find(key, region)) return false;
  // All of it, so that any part of it needs no more than its bounds.
  unsigned char* const base = mapped_bytes(qp, key, region.iova, region.length, need);
  if (base == nullptr) return false;
  target = {&qp.link.remote_regions[key >> 8].serial,
            region.serial,
            region.iova,
            region.length,
            base,
            key};
  return true;
}

void ring_peer(Qp& qp, bool solicited) noexcept {
  const std::uint32_t cq = load_relaxed(qp.link.remote->cq);
  const std::uint32_t bit = load_relaxed(qp.link.remote->cq_bit);
  PeerSegment& segment = qp.link.peer->segment;
  if (cq >= segment.cq_capacity() || bit >= CqDoorbells::kBells) return;
  Doorbells& doorbells = segment.doorbells();
  const MessageRing& ring = qp.out.ring;
  // A ring with at most half as many lines as a bell can tell apart, and those before it that the
  // peer has yet to leave, hold fewer than that. So of a small one the count is not looked at, which
  // stands on another line.
  const bool is_named = ring.mask < bell::kLines / 2 || ring.next - ring.taken < bell::kLines;
  doorbells.cqs[cq].ring(bit, is_named ? bell::up_to(ring.next) : bell::kAll);
  // The stores stay before this load for the compiler, and for the processor where that matters:
  // whoever arms the CQ for the first time makes us pass a fence.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const CqRecord& record = segment.cqs()[cq];
  if (record.has_events.load(std::memory_order_relaxed) == 0 && !qp.link.ring_always) [[likely]]
    return;
  // Either we see the CQ armed, or whoever arms it sees the bell.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint32_t word = record.armed.load(std::memory_order_seq_cst);
  const std::uint32_t armed = CqRecord::kind(word);
  if (armed == CqRecord::kArmed || (armed == CqRecord::kArmedSolicited && solicited)) {
    doorbells.cq_wake.ring(cq);
    if (!wake_sleeper(segment, CqRecord::channel(word), cq, bit)) qp.link.peer->wake_service();
  }
}

}  // namespace verbatim::shm
