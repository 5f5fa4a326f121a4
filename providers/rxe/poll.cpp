// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rxe/completion.hpp"
#include "providers/rxe/completion_fast.hpp"
#include "providers/rxe/hidden_error.hpp"
#include "providers/rxe/hot.hpp"
#include "providers/rxe/left_behind.hpp"
#include "providers/rxe/objects.hpp"
#include "providers/rxe/ring_fast.hpp"
#include "providers/uverbs/failures.hpp"
#include "providers/uverbs/removal.hpp"
#include "runtime/verbs/empty_polls.hpp"

namespace verbatim::rxe {
namespace {

/// The queue pair is in ERR. If by itself: why is noted while its queue shows it still, and what
/// was posted to it before anybody knew is flushed now. Without the locks of polling, since the
/// kernel is asked.
[[gnu::cold, gnu::noinline]] void look_after(Cq& cq, ibv_wc* wc, int count,
                                             std::uint64_t first) noexcept {
  unhide_errors(cq, wc, count, first);
  uverbs::note_failures(cq.plain, wc, count, first);
  uverbs::Context& context = uverbs::context_of(cq);
  for (int i = 0; i < count; ++i) {
    if (!tells_of_trouble(wc[i].status)) continue;
    context.troubles.fetch_add(1, std::memory_order_relaxed);
    context.objects.find_named(uverbs::Kind::kQp, wc[i].qp_num, flush_what_waits);
  }
}

/// What the kernel has completed.
inline int take(Cq& cq, int entries, ibv_wc* wc) noexcept {
  int found = 0;
  bool trouble = false;
  std::uint64_t first;
  {
    LockGuard<SpinLock> guard(cq.lock);
    Consumer ring(cq.ring);
    for (; found < entries && ring.count() != 0; ++found) {
      read_completion(ring.front<ib_uverbs_wc>(), wc[found]);
      trouble |= wc[found].status != IBV_WC_SUCCESS;
      ring.advance();
    }
    if (found != 0) ring.give_back();
    first = cq.taken;
    cq.taken = first + static_cast<std::uint32_t>(found);
  }
  if (trouble) [[unlikely]]
    look_after(cq, wc, found, first);
  return found;
}

/// The ring is empty, and the device may be gone. What it completed before it went comes first.
[[gnu::cold, gnu::noinline]] int take_if_gone(Cq& cq, int entries, ibv_wc* wc) noexcept {
  if (!uverbs::has_gone(uverbs::context_of(cq))) return 0;
  const int found = take(cq, entries, wc);
  return found + flush_left_behind(cq, entries - found, wc + found);
}

inline int poll(Cq& cq, int entries, ibv_wc* wc) noexcept {
  const int found = take(cq, entries, wc);
  count_if_empty(found);
  if (found < entries &&
      uverbs::context_of(cq).command_channel.presence() != uverbs::Presence::kHere) [[unlikely]]
    return found + take_if_gone(cq, entries - found, wc + found);
  return found;
}

bool take_one(Cq& cq, ibv_wc& to) noexcept { return poll(cq, 1, &to) != 0; }

}  // namespace

int poll_cq(ibv_cq* handle, int entries, ibv_wc* wc) noexcept {
  return poll(static_cast<Cq&>(verbatim::Cq::from(handle)), entries, wc);
}

void wire_cursor(Cq& cq) noexcept { CopyingCursor<Cq, take_one>::wire(cq); }

}  // namespace verbatim::rxe
