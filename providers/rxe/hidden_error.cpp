// SPDX-License-Identifier: BSD-2-Clause
// Which completion hides an error. Of several with one wr_id any may be the one: nobody can tell
// them apart.
#include "providers/rxe/hidden_error.hpp"

#include "providers/rxe/completion_fast.hpp"
#include "providers/rxe/queue_pairs.hpp"
#include "providers/rxe/ring_fast.hpp"
#include "runtime/sync/pause.hpp"

namespace verbatim::rxe {
namespace {

/// How far the driver has come with an element, in its `state`.
constexpr std::uint32_t kPosted = 0;
constexpr std::uint32_t kFailed = 4;

/// The send lock, unless this thread holds it itself, between ibv_wr_start and ibv_wr_complete.
class SendLockIfFree {
 public:
  explicit SendLockIfFree(Qp& qp) noexcept : qp_(qp) {
    constexpr int kTries = 1000;
    held_ = qp.send_lock.try_lock();
    for (int i = 0; i < kTries && !held_; ++i) {
      cpu_pause();
      held_ = qp.send_lock.try_lock();
    }
  }
  SendLockIfFree(const SendLockIfFree&) = delete;
  SendLockIfFree& operator=(const SendLockIfFree&) = delete;
  ~SendLockIfFree() {
    if (held_) qp_.send_lock.unlock();
  }
  [[nodiscard]] bool held() const noexcept { return held_; }

 private:
  Qp& qp_;
  bool held_ = false;
};

/// The slot of the request that failed by itself, or null. Its words may change at any time: what
/// was judged is in the copy. REQUIRES: the send lock.
struct FailedSlot {
  SendElement* element = nullptr;
  ibv_wc_status status = IBV_WC_SUCCESS;
};

FailedSlot failed_slot(const Qp& qp) noexcept {
  for (std::uint32_t i = 0; i <= qp.send_ring.mask(); ++i) {
    auto& element = *static_cast<SendElement*>(qp.send_ring.element(i));
    if (element.state != kFailed) continue;
    const std::uint32_t status = __atomic_load_n(&element.status, __ATOMIC_RELAXED);
    // A number that is no status is the kernel's mistake, and no cause of anything.
    if (status <= IBV_WC_TM_RNDV_INCOMPLETE && tells_of_trouble(static_cast<ibv_wc_status>(status)))
      return {&element, static_cast<ibv_wc_status>(status)};
  }
  return {};
}

/// Searches once the queue pair is in ERR. Before that nothing is known: what is flushed then was
/// posted in an earlier life.
void search(Qp& qp, HiddenError& hidden) noexcept {
  if (!is_in_error(qp)) return;
  const SendLockIfFree lock(qp);
  if (!lock.held()) return;
  hidden.is_searched = true;
  // Of which life a slot is cannot be told any more: better no reason than a wrong one.
  if (hidden.is_unclean) return;
  const FailedSlot failed = failed_slot(qp);
  if (failed.element == nullptr) return;
  hidden.is_there = true;
  hidden.status = failed.status;
  hidden.wr_id = failed.element->wr.wr_id;
}

/// The driver has told of it, maybe before the queue pair was in ERR.
void strike_out(Qp& qp, const ibv_wc& wc) noexcept {
  const SendLockIfFree lock(qp);
  if (!lock.held()) return;
  const FailedSlot failed = failed_slot(qp);
  if (failed.element != nullptr && failed.element->wr.wr_id == wc.wr_id &&
      failed.status == wc.status)
    failed.element->state = kPosted;
}

void clean_failed_slots(Qp& qp, HiddenError& hidden) noexcept {
  const SendLockIfFree lock(qp);
  hidden.is_unclean = !lock.held();
  if (!lock.held()) return;
  for (std::uint32_t i = 0; i <= qp.send_ring.mask(); ++i) {
    auto& element = *static_cast<SendElement*>(qp.send_ring.element(i));
    if (element.state == kFailed) element.state = kPosted;
  }
}

/// What comes next in a CQ, counted as Cq::taken is.
std::uint64_t next_in(ibv_cq* handle) noexcept {
  if (handle == nullptr) return 0;
  Cq& cq = static_cast<Cq&>(verbatim::Cq::from(handle));
  const LockGuard guard(cq.lock);
  return cq.taken + Consumer(cq.ring).count();
}

std::uint64_t first_send_of(Qp& qp) noexcept {
  const LockGuard guard(qp.failures.lock);
  return qp.failures.first_send;
}

/// A completion in error of the CQ in which those of sends come.
void unhide_error(Qp& qp, ibv_wc& wc, std::uint64_t position) noexcept {
  HiddenError& hidden = qp.hidden_error;
  const LockGuard guard(hidden.mutex);
  if (position < first_send_of(qp)) return;
  const bool is_flushed = wc.status == IBV_WC_WR_FLUSH_ERR;
  if (!hidden.is_searched) {
    if (is_flushed)
      search(qp, hidden);
    else
      strike_out(qp, wc);
  }
  if (!hidden.is_there || wc.wr_id != hidden.wr_id) return;
  if (!is_flushed && wc.status != hidden.status) return;
  wc.status = hidden.status;
  hidden.is_there = false;
}

}  // namespace

void unhide_errors(Cq& cq, ibv_wc* wc, int count, std::uint64_t first) noexcept {
  uverbs::ObjectTable& objects = uverbs::context_of(cq).objects;
  for (int i = 0; i < count; ++i) {
    if (wc[i].status == IBV_WC_SUCCESS) continue;
    objects.find_named(uverbs::Kind::kQp, wc[i].qp_num, [&](void* object) {
      Qp& qp = static_cast<Qp&>(*static_cast<uverbs::Qp*>(object));
      if (qp.plain.send_cq == &cq.plain)
        unhide_error(qp, wc[i], first + static_cast<std::uint32_t>(i));
    });
  }
}

void begin_life(Qp& qp, ibv_cq* send_cq, ibv_cq* recv_cq) noexcept {
  const std::uint64_t first_send = next_in(send_cq);
  const std::uint64_t first_receive = next_in(recv_cq);
  const LockGuard guard(qp.failures.lock);
  qp.failures.first_send = first_send;
  qp.failures.first_receive = first_receive;
}

void forget_hidden_errors(Qp& qp) noexcept {
  HiddenError& hidden = qp.hidden_error;
  const LockGuard guard(hidden.mutex);
  hidden.is_searched = hidden.is_there = false;
  begin_life(qp, qp.plain.send_cq, qp.plain.recv_cq);
  clean_failed_slots(qp, hidden);
}

void forget_the_rest(Qp& qp) noexcept {
  HiddenError& hidden = qp.hidden_error;
  const LockGuard guard(hidden.mutex);
  if (hidden.is_unclean) clean_failed_slots(qp, hidden);
}

void clean_free_slots(Qp& qp) noexcept {
  const SendLockIfFree lock(qp);
  if (!lock.held()) return;
  Producer ring(qp.send_ring);
  // One more than there is room for: the slot that always stays empty.
  for (std::uint32_t left = ring.room() + 1; left != 0; --left) {
    ring.slot<SendElement>().state = kPosted;
    ring.advance();
  }
}

}  // namespace verbatim::rxe
