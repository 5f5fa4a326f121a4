// SPDX-License-Identifier: BSD-2-Clause
// Of completions with one wr_id any may be the one: nobody can tell them apart.
#include "providers/rxe/hidden_error.hpp"

#include "providers/rxe/completion_fast.hpp"
#include "providers/rxe/objects.hpp"
#include "providers/rxe/ring_fast.hpp"

namespace verbatim::rxe {
namespace {

/// How far the driver has come with an element, in its `state`.
constexpr std::uint32_t kPosted = 0;
constexpr std::uint32_t kFailed = 4;

/// The send lock, unless this thread holds it itself, between ibv_wr_start and ibv_wr_complete.
class SendLockIfFree {
 public:
  explicit SendLockIfFree(Qp& qp) noexcept : qp_(qp) {
    constexpr int kTries = 10000;
    for (int i = 0; i < kTries && !held_; ++i) held_ = qp.send_lock.try_lock();
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

bool is_in_error(Qp& qp) noexcept {
  Failure now;
  uverbs::ask_for_ends(qp, now);
  return now.own_state == IBV_QPS_ERR;
}

void search(Qp& qp, const Cq& cq, HiddenError& known) noexcept {
  known.is_there = false;
  known.qpn = 0;
  if (&cq.plain == qp.plain.send_cq) {
    const SendLockIfFree lock(qp);
    if (!lock.held()) return;
    if (const FailedSlot failed = failed_slot(qp); failed.element != nullptr) {
      known.is_there = true;
      known.status = failed.status;
      known.wr_id = failed.element->wr.wr_id;
      known.qpn = qp.plain.qp_num;
      return;
    }
  }
  // In ERR no other request fails any more. Elsewhere this was the rest of an earlier life.
  if (is_in_error(qp)) known.qpn = qp.plain.qp_num;
}

/// It has been told, here or by the driver.
void strike_out(Qp& qp, const ibv_wc& wc) noexcept {
  const SendLockIfFree lock(qp);
  if (!lock.held()) return;
  const FailedSlot failed = failed_slot(qp);
  if (failed.element != nullptr && failed.element->wr.wr_id == wc.wr_id &&
      failed.status == wc.status)
    failed.element->state = kPosted;
}

}  // namespace

void unhide_errors(Cq& cq, ibv_wc* wc, int count) noexcept {
  uverbs::ObjectTable& objects = uverbs::context_of(cq).objects;
  HiddenError& known = cq.hidden_error;
  const LockGuard guard(known.mutex);
  for (int i = 0; i < count; ++i) {
    ibv_wc& one = wc[i];
    if (one.status == IBV_WC_SUCCESS) continue;
    if (one.status == IBV_WC_WR_FLUSH_ERR) {
      if (one.qp_num != known.qpn)
        objects.find_named(uverbs::Kind::kQp, one.qp_num, [&](void* object) {
          search(static_cast<Qp&>(*static_cast<uverbs::Qp*>(object)), cq, known);
        });
      if (one.qp_num != known.qpn || !known.is_there || one.wr_id != known.wr_id) continue;
      one.status = known.status;
      known.is_there = false;
    }
    objects.find_named(uverbs::Kind::kQp, one.qp_num, [&](void* object) {
      strike_out(static_cast<Qp&>(*static_cast<uverbs::Qp*>(object)), one);
    });
  }
}

void forget_hidden_errors(Qp& qp) noexcept {
  {
    const SendLockIfFree lock(qp);
    if (lock.held()) {
      for (std::uint32_t i = 0; i <= qp.send_ring.mask(); ++i) {
        auto& element = *static_cast<SendElement*>(qp.send_ring.element(i));
        if (element.state == kFailed) element.state = kPosted;
      }
    }
  }
  if (qp.plain.send_cq == nullptr) return;
  HiddenError& known = static_cast<Cq&>(verbatim::Cq::from(qp.plain.send_cq)).hidden_error;
  const LockGuard guard(known.mutex);
  if (known.qpn == qp.plain.qp_num) known.qpn = 0;
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
