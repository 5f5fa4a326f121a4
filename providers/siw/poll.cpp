// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/completion.hpp"
#include "providers/siw/completion_fast.hpp"
#include "providers/siw/hot.hpp"
#include "providers/siw/objects.hpp"
#include "providers/uverbs/failures.hpp"
#include "providers/uverbs/removal.hpp"
#include "runtime/verbs/empty_polls.hpp"

namespace verbatim::siw {
namespace {

/// The next completion, and whether there is one.
inline bool take_locked(Cq& cq, ibv_wc& to) noexcept {
  while (const siw_cqe* const element = cq.ring.front()) {
    const bool dropped = element->qp_id == CompletionRing::kNobody;
    if (!dropped) read_completion(*element, to);
    cq.ring.pop();
    if (!dropped) [[likely]]
      return true;
  }
  if (cq.flushed.count() == 0) [[likely]]
    return false;
  cq.flushed.take(to);
  return true;
}

inline int take(Cq& cq, ibv_wc* wc, int entries, bool& errors) noexcept {
  LockGuard<SpinLock> guard(cq.lock);
  int found = 0;
  for (; found < entries && take_locked(cq, wc[found]); ++found)
    errors |= wc[found].status != IBV_WC_SUCCESS;
  return found;
}

/// Fails the queue pairs of completions in error: nothing but success leaves a connection alive.
[[gnu::cold]] void note_errors(const Cq& cq, const ibv_wc* wc, int count) noexcept {
  uverbs::note_failures(cq.plain, wc, count);
  QpDirectory& queue_pairs = context_of(cq.plain.context).queue_pairs;
  for (int i = 0; i < count; ++i) {
    if (wc[i].status != IBV_WC_SUCCESS) queue_pairs.mark_failed(wc[i].qp_num);
  }
}

/// Fails every queue pair of a device that is gone.
[[gnu::cold, gnu::noinline]] void fail_all_if_gone(uverbs::Context& context,
                                                   QpDirectory& queue_pairs) noexcept {
  if (uverbs::has_gone(context)) queue_pairs.fail_all();
}

/// Whether there are requests that nobody has flushed.
inline bool has_left(const Cq& cq) noexcept {
  Context& context = context_of(cq.plain.context);
  if (context.command_channel.presence() != uverbs::Presence::kHere) [[unlikely]]
    fail_all_if_gone(context, context.queue_pairs);
  return context.queue_pairs.has_unsettled();
}

/// All that can be known: what the kernel has written, and, when that has come to its end, what it
/// has left lying in the queues of those that failed.
inline int poll(Cq& cq, ibv_wc* wc, int entries) noexcept {
  bool errors = false;
  int found = take(cq, wc, entries, errors);
  count_if_empty(found);
  QpDirectory& queue_pairs = context_of(cq.plain.context).queue_pairs;
  if (errors) [[unlikely]]
    note_errors(cq, wc, found);
  if (found < entries && has_left(cq)) [[unlikely]] {
    queue_pairs.settle_failed();
    found += take(cq, wc + found, entries - found, errors);
  }
  return found;
}

bool take_one(Cq& cq, ibv_wc& to) noexcept { return poll(cq, &to, 1) != 0; }

}  // namespace

int poll_cq(ibv_cq* handle, int entries, ibv_wc* wc) noexcept {
  return poll(static_cast<Cq&>(verbatim::Cq::from(handle)), wc, entries);
}

/// The driver looks for the mark of a solicited message in the receiver's own requests, where it
/// never is: armed for those alone, nobody would be woken. So everything wakes.
int req_notify_cq(ibv_cq* handle, int /*solicited_only*/) noexcept {
  static_cast<Cq&>(verbatim::Cq::from(handle)).ring.arm(SIW_NOTIFY_ALL);
  return 0;
}

void wire_cursor(Cq& cq) noexcept { CopyingCursor<Cq, take_one>::wire(cq); }

}  // namespace verbatim::siw
