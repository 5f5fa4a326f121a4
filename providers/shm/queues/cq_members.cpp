// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/cq_members.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/polled_rings.hpp"
#include "runtime/verbs/software/completion_ring.hpp"

namespace verbatim::shm {

int add_member(Cq& cq, Qp& qp) noexcept {
  LockGuard<BiasedLock> guard(cq.lock);
  std::uint32_t bit = cq.member_next;
  for (std::uint32_t i = 0; i < cq.member_capacity; ++i) {
    if (cq.members[(bit + i) % cq.member_capacity] == nullptr) {
      bit = (bit + i) % cq.member_capacity;
      break;
    }
  }
  if (bit >= cq.member_capacity || cq.members[bit] != nullptr) {
    if (cq.member_capacity < CqDoorbells::kBells) {
      const std::uint32_t capacity =
          cq.member_capacity == 0 ? 16 : std::min(2 * cq.member_capacity, CqDoorbells::kBells);
      auto* members = static_cast<Qp**>(std::calloc(capacity, sizeof(Qp*)));
      if (members == nullptr) return ENOMEM;
      if (cq.members != nullptr) std::memcpy(members, cq.members, cq.member_capacity * sizeof(Qp*));
      std::free(cq.members);
      bit = cq.member_capacity;
      cq.members = members;
      cq.member_capacity = capacity;
    } else {
      bit = cq.member_next % CqDoorbells::kBells;  // bells are shared from here on
    }
  }
  store_relaxed(qp.own->cq, cq.number);
  store_relaxed(qp.own->cq_bit, bit);
  qp.in.put_at_bell_before(cq.members[bit]);
  cq.members[bit] = &qp;
  cq.member_next = bit + 1;
  return 0;
}

void remove_member(Cq& cq, Qp& qp) noexcept {
  LockGuard<BiasedLock> guard(cq.lock);
  if (qp.in.hot_index != Responder::kNotHot) drop_hot(cq, qp.in.hot_index);
  // The next one may lie in its place.
  if (cq.told.qp == &qp) cq.told.qp = nullptr;
  Qp*& first = cq.members[qp.own->cq_bit];
  if (first == &qp) {
    first = qp.in.next_at_bell();
  } else {
    Qp* before = first;
    while (before != nullptr && before->in.next_at_bell() != &qp)
      before = before->in.next_at_bell();
    if (before != nullptr) before->in.put_at_bell_before(qp.in.next_at_bell());
  }
  // A bell that several had rung says nothing of the one that is left.
  if (cq.members[qp.own->cq_bit] != nullptr) cq.doorbells->ring(qp.own->cq_bit);
}

void forget_completions(Cq& cq, const Qp& qp) noexcept {
  LockGuard<BiasedLock> guard(cq.lock);
  completions::forget(
      cq, [&qp](const Completion& stored) noexcept { return stored.qp == &qp; },
      [&cq](std::uint32_t from, std::uint32_t to) noexcept {
        if (cq.times != nullptr) cq.times[to] = cq.times[from];
      });
  // An event too many harms nobody.
  cq.told = {.stored = cq.head.load(std::memory_order_relaxed)};
  // Those that the cursor has taken. Which of them it has handed on does not matter.
  const std::uint32_t last = cq.cursor.last.load(std::memory_order_relaxed);
  std::uint64_t marked = 0;
  for (std::uint32_t place = 1; place <= last; ++place)
    if (cq.cursor.said(place).qp_num == qp.plain.qp_num) marked |= std::uint64_t{1} << place;
  if (marked == 0) return;
  cq.cursor.marked.fetch_or(marked, std::memory_order_relaxed);
  cq.cursor.clean.store(0, std::memory_order_relaxed);
}

}  // namespace verbatim::shm
