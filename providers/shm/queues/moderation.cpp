// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/moderation.hpp"

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/queues/announced.hpp"
#include "providers/shm/queues/comp_channel.hpp"
#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/live.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

bool is_held(const Cq& cq) noexcept {
  return CqRecord::kind(cq.armed->load(std::memory_order_seq_cst)) == CqRecord::kHeld;
}

/// The service thread looks at held events then, or sooner.
void want_look(std::uint64_t at) noexcept {
  std::uint64_t seen = next_look_at_held.load(std::memory_order_seq_cst);
  while (at < seen) {
    if (!next_look_at_held.compare_exchange_weak(seen, at, std::memory_order_seq_cst)) continue;
    // Its own loop asks for the date before it sleeps.
    if (Process& process = Process::get(); !process.on_service_thread())
      process.self().wake_service();
    return;
  }
}

/// Whether as many have come as it waits for, of the kind that it was armed for.
bool has_enough_locked(const Cq& cq) noexcept {
  const Moderation& m = cq.moderation;
  const std::uint64_t missing = m.missing();
  return missing == 0 ||
         count_announced(cq, m.asked == CqRecord::kArmedSolicited, missing) >= missing;
}

/// Raises it, or says when it is looked at again. REQUIRES: it is held.
void judge_locked(Cq& cq, std::uint64_t now) noexcept {
  Moderation& m = cq.moderation;
  if (now >= m.until() || has_enough_locked(cq)) return raise_locked(cq);
  want_look(m.look_again(now));
}

void hold_locked(Cq& cq) noexcept {
  Moderation& m = cq.moderation;
  m.hold(CqRecord::kind(cq.armed->load(std::memory_order_relaxed)), now_ns());
  // Before the date of the look is read: either that look finds it, or we see that it is over.
  cq.armed->store(CqRecord::kHeld, std::memory_order_seq_cst);
  judge_locked(cq, m.since);
}

}  // namespace

int modify_cq(verbatim::Cq& handle, const ibv_modify_cq_attr& attr) noexcept {
  static_assert(kMaxModerationCount == 0xffff && kMaxModerationPeriodUs == 0xffff,
                "whatever can be asked is granted");
  if ((attr.attr_mask & IBV_CQ_ATTR_MODERATE) == 0) return 0;
  Cq& cq = static_cast<Cq&>(handle);
  DomainGuard guard(cq.lock, cq.in_domain.load(std::memory_order_relaxed));
  cq.moderation.count = attr.moderate.cq_count;
  cq.moderation.period_us = attr.moderate.cq_period;
  const std::uint32_t armed = CqRecord::kind(cq.armed->load(std::memory_order_relaxed));
  if (armed == CqRecord::kHeld) {
    if (cq.moderation.is_on())
      judge_locked(cq, now_ns());
    else
      raise_locked(cq);
  } else if (armed != CqRecord::kIdle && is_moderated(cq)) {
    // Who sleeps on the channel is woken when there is an event, not for each message.
    cq.armed->store(armed, std::memory_order_seq_cst);
    begin_count_locked(cq);
  }
  return 0;
}

bool is_moderated(const Cq& cq) noexcept {
  return cq.moderation.is_on() && cq.plain.channel != nullptr;
}

std::uint32_t armed_for_locked(const Cq& cq) noexcept {
  const std::uint32_t kind = CqRecord::kind(cq.armed->load(std::memory_order_seq_cst));
  return kind == CqRecord::kHeld ? cq.moderation.asked : kind;
}

void begin_count_locked(Cq& cq) noexcept {
  cq.moderation.begin(count_announced(cq, armed_for_locked(cq) == CqRecord::kArmedSolicited, kAll));
}

void hold_stored_locked(Cq& cq) noexcept {
  ++cq.moderation.stored;
  if (!is_held(cq))
    hold_locked(cq);
  else if (cq.moderation.stored >= cq.moderation.count)
    raise_locked(cq);
}

void hold_announced_locked(Cq& cq) noexcept {
  if (!is_held(cq)) hold_locked(cq);
}

std::uint64_t look_at_held(std::uint64_t now) noexcept {
  const std::uint64_t due = next_look_at_held.load(std::memory_order_seq_cst);
  if (now < due) return due;
  next_look_at_held.store(kNoLook, std::memory_order_seq_cst);
  LockGuard<Mutex> guard(live.mutex);
  for (std::uint32_t i = 0; i < live.cq_end; ++i) {
    // Not asking for the lock leaves it to the thread that polls.
    if (live.cqs[i] == nullptr || !is_held(*live.cqs[i])) continue;
    Cq& cq = *live.cqs[i];
    LockGuard<BiasedLock> lock(cq.lock);
    if (!is_held(cq)) continue;
    if (now < cq.moderation.look_at)
      want_look(cq.moderation.look_at);
    else
      judge_locked(cq, now);
  }
  return next_look_at_held.load(std::memory_order_seq_cst);
}

}  // namespace verbatim::shm
