// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include "providers/rxe/completion_fast.hpp"
#include "providers/rxe/cursor.hpp"
#include "providers/rxe/failed_request.hpp"
#include "providers/rxe/hot.hpp"
#include "providers/rxe/objects.hpp"
#include "providers/rxe/ring_fast.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/wc_readers.hpp"

namespace verbatim::rxe {
namespace {

Cq& cq_of(ibv_cq_ex* cq) noexcept { return static_cast<Cq&>(verbatim::Cq::from(cq)); }

/// The queue pair has come to ERR by itself: why is noted while its queue shows it still, and what
/// was posted to it before anybody knew is flushed now. Without the locks of polling, since the
/// kernel is asked.
[[gnu::cold, gnu::noinline]] void look_after(const Cq& cq, const ibv_wc* wc, int count) noexcept {
  uverbs::note_failures(failure_eyes, cq.plain, wc, count);
  uverbs::Context& context = uverbs::context_of(cq);
  for (int i = 0; i < count; ++i) {
    if (!tells_of_trouble(wc[i].status)) continue;
    context.troubles.fetch_add(1, std::memory_order_relaxed);
    context.objects.find_named(uverbs::Kind::kQp, wc[i].qp_num, flush_what_waits);
  }
}

/// Puts the cursor on the next completion, if there is one. It is a copy, so the kernel gets the
/// slot back at once, and nothing depends on how the application ends its turn.
bool step(Cq& cq) noexcept {
  {
    LockGuard<SpinLock> guard(cq.lock);
    Consumer ring(cq.ring);
    if (ring.count() == 0) return false;
    read_completion(ring.front<ib_uverbs_wc>(), cq.cursor.wc);
    ring.advance();
    ring.give_back();
  }
  if (tells_of_trouble(cq.cursor.wc.status)) [[unlikely]]
    look_after(cq, &cq.cursor.wc, 1);
  cq.extended.status = cq.cursor.wc.status;
  cq.extended.wr_id = cq.cursor.wc.wr_id;
  return true;
}

int start_poll(ibv_cq_ex* handle, ibv_poll_cq_attr* attr) noexcept {
  if (attr != nullptr && attr->comp_mask != 0) return EINVAL;
  Cq& cq = cq_of(handle);
  cq.cursor.lock.lock();
  if (step(cq)) return 0;
  cq.cursor.lock.unlock();
  return ENOENT;
}
int next_poll(ibv_cq_ex* handle) noexcept { return step(cq_of(handle)) ? 0 : ENOENT; }
void end_poll(ibv_cq_ex* handle) noexcept { cq_of(handle).cursor.lock.unlock(); }

const ibv_wc& seen(ibv_cq_ex* cq) noexcept { return cq_of(cq).cursor.wc; }

}  // namespace

int poll_cq(ibv_cq* handle, int entries, ibv_wc* wc) noexcept {
  Cq& cq = static_cast<Cq&>(verbatim::Cq::from(handle));
  int found = 0;
  bool trouble = false;
  {
    LockGuard<SpinLock> guard(cq.lock);
    Consumer ring(cq.ring);
    for (; found < entries && ring.count() != 0; ++found) {
      read_completion(ring.front<ib_uverbs_wc>(), wc[found]);
      trouble |= tells_of_trouble(wc[found].status);
      ring.advance();
    }
    if (found != 0) ring.give_back();
  }
  if (trouble) [[unlikely]]
    look_after(cq, wc, found);
  return found;
}

int check_fields(const ibv_cq_init_attr_ex& attr) noexcept {
  constexpr std::uint64_t kHas =
      IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
      IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL | IBV_WC_EX_WITH_DLID_PATH_BITS;
  const std::uint64_t lacking = attr.wc_flags & ~kHas;
  if (lacking == 0) return 0;
  log_error("ibv_create_cq_ex: wc_flags 0x%llx: rxe's completions do not carry that",
            static_cast<unsigned long long>(lacking));
  return EOPNOTSUPP;
}

void wire_cursor(Cq& cq) noexcept {
  ibv_cq_ex& table = cq.extended;
  table.start_poll = start_poll;
  table.next_poll = next_poll;
  table.end_poll = end_poll;
  WcReaders<seen>::wire(table);
}

}  // namespace verbatim::rxe
