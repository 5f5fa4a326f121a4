// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/announced.hpp"

#include <algorithm>
#include <bit>

#include "providers/shm/queues/arrival.hpp"
#include "providers/shm/queues/arrived.hpp"
#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {
namespace {

/// Calls `look` with each queue pair that a doorbell names and that has a message, until it says
/// true.
template <class F>
bool any_announced(const Cq& cq, F look) noexcept {
  constexpr std::uint32_t kPerWord = CqDoorbells::kPerWord;
  for (std::uint32_t word = 0; word * kPerWord < cq.member_capacity; ++word) {
    std::uint32_t bits = CqDoorbells::rung_of(cq.doorbells->look(word));
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t bit =
          word * kPerWord + static_cast<std::uint32_t>(std::countr_zero(bits));
      Qp* qp = bit < cq.member_capacity ? cq.members[bit] : nullptr;
      for (; qp != nullptr; qp = qp->in.next_at_bell())
        if (has_message(*qp) && look(*qp)) return true;
    }
  }
  return false;
}

/// The first one of which `is_it` is true; nullptr: there is none.
template <class F>
const Qp* find(const Cq& cq, F is_it) noexcept {
  const Qp* found = nullptr;
  any_announced(cq, [&](const Qp& qp) {
    if (!is_it(qp)) return false;
    found = &qp;
    return true;
  });
  return found;
}

/// Its receives are flushed, or it has no messages but these.
bool only_flushes(const Qp& qp) noexcept {
  return qp.mode.load(std::memory_order_acquire) == IBV_QPS_ERR || qp.in.ring == nullptr;
}

/// The messages that have come, of the kind asked for; looks no further once they are `enough`.
std::uint64_t count_messages(const Qp& qp, bool solicited_only, std::uint64_t enough) noexcept {
  Arrival at = next_arrival(qp);
  std::uint64_t found = 0;
  std::uint64_t h;
  // What a sender writes ever anew has an end.
  const std::uint64_t end = at.line + (std::uint64_t{1} << kMostRingLog);
  while (found < enough && at.line < end) {
    const Slot* const slot = find_arrival(qp, at, h);
    if (slot == nullptr) break;
    const std::uint64_t first = at.index;
    pass_arrival(qp, at, *slot, h);
    if (!solicited_only)
      found += at.index - first;
    else
      found += (header::flags(h) & header::kSolicited) != 0;
  }
  return found;
}

/// The first message that no event told of flows through the stream ring, and its end is not in
/// there.
bool is_under_way(const Cq& cq, const Qp& qp) noexcept {
  if (only_flushes(qp)) return false;
  Arrival at = next_arrival(qp);
  const std::uint64_t first = &qp == cq.told.qp ? std::max(at.index, cq.told.until) : at.index;
  std::uint64_t h;
  const Slot* slot;
  while ((slot = find_arrival(qp, at, h)) != nullptr && at.index < first)
    pass_arrival(qp, at, *slot, h);
  return slot != nullptr && header::kind(h) == SlotKind::kStream && qp.in.pulled.index <= first &&
         !is_produced(qp, *slot);
}

/// Beyond those that events told of. REQUIRES: has_message(qp).
bool has_untold(const Cq& cq, const Qp& qp) noexcept {
  const std::uint64_t first = qp.in.head.load(std::memory_order_relaxed);
  if (&qp != cq.told.qp || cq.told.until <= first) return true;
  const std::uint64_t told = cq.told.until - first;
  if (only_flushes(qp)) return qp.rq.tail.load(std::memory_order_acquire) - first > told;
  return count_messages(qp, false, told + 1) > told;
}

/// The share of `qp` in count_unpolled().
std::uint64_t count_receives(Qp& qp, std::uint64_t enough) noexcept {
  if (!has_message(qp)) return 0;
  if (qp.srq != nullptr || qp.datagrams != nullptr) return 1;
  const std::uint64_t posted =
      qp.rq.tail.load(std::memory_order_acquire) - qp.in.head.load(std::memory_order_relaxed);
  if (only_flushes(qp)) return posted;
  return std::min(posted, count_messages(qp, false, std::min(kMostCounted, enough)));
}

}  // namespace

bool has_solicited(const Qp& qp) noexcept {
  return only_flushes(qp) || count_messages(qp, true, 1) != 0;
}

const Qp* find_untold_whole(const Cq& cq, bool solicited_only) noexcept {
  return find(cq, [&](const Qp& qp) {
    return (!solicited_only || has_solicited(qp)) && has_untold(cq, qp) && !is_under_way(cq, qp);
  });
}

void forget_told_ahead(Cq& cq, const Qp& qp) noexcept {
  if (&qp == cq.told.qp)
    cq.told.until = std::min(cq.told.until, qp.in.head.load(std::memory_order_relaxed));
}

void note_told(Cq& cq, const Qp& qp) noexcept {
  const std::uint64_t first = qp.in.head.load(std::memory_order_relaxed);
  cq.told.until = (&qp == cq.told.qp ? std::max(cq.told.until, first) : first) + 1;
  cq.told.qp = &qp;
}

bool has_untold_whole(const Cq& cq, const Qp& qp) noexcept {
  return has_untold(cq, qp) && !is_under_way(cq, qp);
}

std::uint64_t count_announced(const Cq& cq, bool solicited_only, std::uint64_t enough) noexcept {
  std::uint64_t found = 0;
  any_announced(cq, [&](const Qp& qp) {
    found += only_flushes(qp)
                 ? 1
                 : count_messages(qp, solicited_only, std::min(kMostCounted, enough - found));
    return found >= enough;
  });
  return found;
}

std::uint64_t count_unpolled(const Cq& cq, std::uint64_t enough) noexcept {
  std::uint64_t found = 0;
  for (std::uint32_t bit = 0; bit < cq.member_capacity; ++bit) {
    for (Qp* qp = cq.members[bit]; qp != nullptr && found < enough; qp = qp->in.next_at_bell())
      found += count_receives(*qp, enough - found);
  }
  return found;
}

}  // namespace verbatim::shm
