// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rxe/completion.hpp"
#include "providers/rxe/completion_fast.hpp"
#include "providers/rxe/hidden_error.hpp"
#include "providers/rxe/hot.hpp"
#include "providers/rxe/objects.hpp"
#include "providers/rxe/ring_fast.hpp"
#include "providers/uverbs/failures.hpp"

namespace verbatim::rxe {
namespace {

/// The queue pair is in ERR. If by itself: why is noted while its queue shows it still, and what
/// was posted to it before anybody knew is flushed now. Without the locks of polling, since the
/// kernel is asked.
[[gnu::cold, gnu::noinline]] void look_after(Cq& cq, ibv_wc* wc, int count) noexcept {
  unhide_errors(cq, wc, count);
  uverbs::note_failures(cq.plain, wc, count);
  uverbs::Context& context = uverbs::context_of(cq);
  for (int i = 0; i < count; ++i) {
    if (!tells_of_trouble(wc[i].status)) continue;
    context.troubles.fetch_add(1, std::memory_order_relaxed);
    context.objects.find_named(uverbs::Kind::kQp, wc[i].qp_num, flush_what_waits);
  }
}

/// The next completion, and whether there is one.
bool take_one(Cq& cq, ibv_wc& to) noexcept {
  {
    LockGuard<SpinLock> guard(cq.lock);
    Consumer ring(cq.ring);
    if (ring.count() == 0) return false;
    read_completion(ring.front<ib_uverbs_wc>(), to);
    ring.advance();
    ring.give_back();
  }
  if (to.status != IBV_WC_SUCCESS) [[unlikely]]
    look_after(cq, &to, 1);
  return true;
}

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
      trouble |= wc[found].status != IBV_WC_SUCCESS;
      ring.advance();
    }
    if (found != 0) ring.give_back();
  }
  if (trouble) [[unlikely]]
    look_after(cq, wc, found);
  return found;
}

void wire_cursor(Cq& cq) noexcept { uverbs::CopyingCursor<Cq, take_one>::wire(cq); }

}  // namespace verbatim::rxe
