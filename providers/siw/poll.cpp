// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include "providers/siw/completion_fast.hpp"
#include "providers/siw/cursor.hpp"
#include "providers/siw/failed_request.hpp"
#include "providers/siw/hot.hpp"
#include "providers/siw/objects.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/wc_readers.hpp"

namespace verbatim::siw {
namespace {

Cq& cq_of(ibv_cq_ex* cq) noexcept { return static_cast<Cq&>(verbatim::Cq::from(cq)); }

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

/// Nothing but success leaves a connection alive.
[[gnu::cold]] void note_errors(const Cq& cq, const ibv_wc* wc, int count) noexcept {
  uverbs::note_failures(failure_eyes, cq.plain, wc, count);
  QpDirectory& queue_pairs = context_of(cq.plain.context).queue_pairs;
  for (int i = 0; i < count; ++i) {
    if (wc[i].status != IBV_WC_SUCCESS) queue_pairs.mark_failed(wc[i].qp_num);
  }
}

/// All that can be known: what the kernel has written, and, when that has come to its end, what it
/// has left lying in the queues of those that failed.
inline int poll(Cq& cq, ibv_wc* wc, int entries) noexcept {
  bool errors = false;
  int found = take(cq, wc, entries, errors);
  QpDirectory& queue_pairs = context_of(cq.plain.context).queue_pairs;
  if (errors) [[unlikely]]
    note_errors(cq, wc, found);
  if (found < entries && queue_pairs.has_unsettled()) [[unlikely]] {
    queue_pairs.settle_failed();
    found += take(cq, wc + found, entries - found, errors);
  }
  return found;
}

/// Puts the cursor on the next completion, if there is one. It is a copy, so the kernel gets the
/// element back at once, and nothing depends on how the application ends its turn.
bool step(Cq& cq) noexcept {
  if (poll(cq, &cq.cursor.wc, 1) == 0) return false;
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
  return poll(static_cast<Cq&>(verbatim::Cq::from(handle)), wc, entries);
}

/// The driver looks for the mark of a solicited message in the receiver's own requests, where it
/// never is: armed for those alone, nobody would be woken. So everything wakes.
int req_notify_cq(ibv_cq* handle, int /*solicited_only*/) noexcept {
  static_cast<Cq&>(verbatim::Cq::from(handle)).ring.arm(SIW_NOTIFY_ALL);
  return 0;
}

int check_fields(const ibv_cq_init_attr_ex& attr) noexcept {
  // Those of a datagram's sender and of InfiniBand's addresses are nothing on a connection, and 0.
  constexpr std::uint64_t kHas =
      IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
      IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL | IBV_WC_EX_WITH_DLID_PATH_BITS;
  const std::uint64_t lacking = attr.wc_flags & ~kHas;
  if (lacking == 0) return 0;
  log_error("ibv_create_cq_ex: wc_flags 0x%llx: siw's completions do not carry that",
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

}  // namespace verbatim::siw
