// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/calls/cursor.hpp"

#include "providers/shm/calls/hot.hpp"
#include "providers/shm/poll/cursor_fast.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/verbs/wc_readers.hpp"

namespace verbatim::shm {
namespace {

int start_stamped_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) noexcept {
  return start_poll_fast<true>(Cq::from(cq), attr);
}
int next_stamped_poll(ibv_cq_ex* cq) noexcept { return next_poll_fast(Cq::from(cq), go_on<true>); }

const ibv_wc& seen(ibv_cq_ex* cq) noexcept {
  const Cq::Cursor& cursor = Cq::from(cq).cursor;
  return cursor.said(cursor.at.load(std::memory_order_relaxed));
}
std::uint32_t read_byte_len(ibv_cq_ex* cq) noexcept {
  const Cq::Cursor& cursor = Cq::from(cq).cursor;
  return cursor.length(cursor.at.load(std::memory_order_relaxed));
}

std::uint64_t read_raw_time(ibv_cq_ex* cq) { return Cq::from(cq).cursor.time.raw; }
std::uint64_t read_wallclock(ibv_cq_ex* cq) { return Cq::from(cq).cursor.time.wallclock; }

}  // namespace

bool pass_marked(Cq::Cursor& cursor) noexcept {
  const std::uint64_t marked = cursor.marked.load(std::memory_order_relaxed);
  const std::uint32_t last = cursor.last.load(std::memory_order_relaxed);
  for (std::uint32_t at = cursor.at.load(std::memory_order_relaxed); at <= last; ++at) {
    cursor.at.store(at, std::memory_order_relaxed);
    if ((marked >> at & 1) == 0) return true;
  }
  return false;
}

std::uint32_t line_up(Cq::Cursor& cursor, std::uint32_t count) noexcept {
  int failed = 0;
  static_assert(IBV_WC_SUCCESS == 0);
  for (std::uint32_t place = 1; place <= count; ++place) {
    cursor.batch.wr_ids[place] = cursor.store[place].wr_id;
    failed |= cursor.store[place].status;
  }
  return failed == 0 ? count : 0;
}

void note_kept(Cq& cq, bool some) noexcept {
  if (some)
    cq.pending_count.fetch_or(Cq::kKept, std::memory_order_relaxed);
  else
    cq.pending_count.fetch_and(~Cq::kKept, std::memory_order_relaxed);
}

int poll_pending(Cq& cq, int room, ibv_wc* wc) noexcept {
  // Whoever is between start and end has them, and may be this thread.
  if (cq.cursor_has_kept() && (cq.is_alone || cq.cursor.lock.try_lock())) {
    int got = 0;
    while (got < room && step_cursor(cq)) {
      const std::uint32_t at = cq.cursor.at.load(std::memory_order_relaxed);
      wc[got] = cq.cursor.said(at);
      wc[got].wr_id = cq.cursor.batch.wr_ids[at];
      wc[got++].byte_len = cq.cursor.length(at);
    }
    if (!cq.cursor.has_more()) note_kept(cq, false);
    if (!cq.is_alone) cq.cursor.lock.unlock();
    if (got != 0) return got;
  }
  if (cq.has_pending()) progress_pending(cq, SendLock::As::kUser);
  return 0;
}

void stamp_taken(Cq& cq, std::uint32_t head) noexcept {
  const bool was_stored = cq.head.load(std::memory_order_relaxed) != head;
  cq.cursor.time = was_stored ? cq.times[head & cq.mask] : completion_time(cq);
}

int wire_cursor(Cq& cq, const ibv_cq_init_attr_ex& attr) noexcept {
  constexpr std::uint64_t kClocks =
      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  cq.clocks = static_cast<std::uint32_t>(attr.wc_flags & kClocks);
  if (cq.clocks != 0) {
    cq.times = make_times(cq, cq.mask + 1);
    if (cq.times == nullptr) return ENOMEM;
  }
  cq.is_alone = (attr.flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0 || cq.domain != nullptr;
  ibv_cq_ex& table = cq.extended;
  table.start_poll = cq.clocks != 0 ? start_stamped_poll
                     : cq.is_alone  ? start_poll_alone
                                    : start_poll;
  table.next_poll = cq.clocks != 0 ? next_stamped_poll : next_poll;
  table.end_poll = cq.is_alone ? end_poll_alone : end_poll;
  WcReaders<seen>::wire(table);
  table.read_byte_len = read_byte_len;
  table.read_completion_ts = read_raw_time;
  table.read_completion_wallclock_ns = read_wallclock;
  return 0;
}

int query_rt_values(verbatim::Context&, ibv_values_ex& values) noexcept {
  const std::uint32_t asked = values.comp_mask;
  values.comp_mask = 0;
  if ((asked & IBV_VALUES_MASK_RAW_CLOCK) == 0) return 0;
  // Not a time in seconds but the clock's count, all of it in tv_nsec: what programs expect there.
  values.raw_clock = {0, static_cast<long>(now_ns())};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  return 0;
}

}  // namespace verbatim::shm
