// SPDX-License-Identifier: BSD-2-Clause
// The stored completions of a queue: a ring of a power of two of places, with free-running numbers
// `head` (the next to be polled) and `tail` (the next to be stored). An overrun is told of, and
// never overwrites what is stored (IBTA 11.6.3.2).
//
// These are operations on any struct with the members of CompletionRing, since where they lie beside
// a queue's lock is for its hot path to say. REQUIRES everywhere: the queue's lock. Who looks
// without it, whether there is anything at all, may be late and never wrong. What a queue has
// beside each completion (times) moves along by `also(from, to)`, numbers of places.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace verbatim {

template <class Entry>
struct CompletionRing {
  std::atomic<std::uint32_t> head{0};
  std::atomic<std::uint32_t> tail{0};
  std::uint32_t mask = 0;
  Entry* ring = nullptr;
};

namespace completions {

template <class Ring>
[[nodiscard]] std::uint32_t count(const Ring& queue) noexcept {
  return queue.tail.load(std::memory_order_relaxed) - queue.head.load(std::memory_order_relaxed);
}

/// Stores a completion and says as which number. False: the queue is full, and it is lost.
template <class Ring, class Entry>
[[nodiscard]] [[gnu::always_inline]] inline bool store(Ring& queue, const Entry& completion,
                                                       std::uint32_t& number) noexcept {
  number = queue.tail.load(std::memory_order_relaxed);
  if (number - queue.head.load(std::memory_order_relaxed) > queue.mask) [[unlikely]]
    return false;
  queue.ring[number & queue.mask] = completion;
  queue.tail.store(number + 1, std::memory_order_relaxed);
  return true;
}

/// The oldest, which is taken out; nullptr: there is none. Good until the next is stored.
template <class Ring>
[[nodiscard]] auto* take(Ring& queue) noexcept {
  const std::uint32_t head = queue.head.load(std::memory_order_relaxed);
  const bool is_empty = head == queue.tail.load(std::memory_order_relaxed);
  if (!is_empty) queue.head.store(head + 1, std::memory_order_relaxed);
  return is_empty ? nullptr : &queue.ring[head & queue.mask];
}

/// Forgets those of which drop(completion) says so, as when their queue pair goes. The others keep
/// their order.
template <class Ring, class Drop, class Also>
void forget(Ring& queue, Drop drop, Also also) noexcept {
  const std::uint32_t tail = queue.tail.load(std::memory_order_relaxed);
  std::uint32_t kept = queue.head.load(std::memory_order_relaxed);
  for (std::uint32_t i = kept; i != tail; ++i) {
    if (drop(queue.ring[i & queue.mask])) continue;
    also(i & queue.mask, kept & queue.mask);
    queue.ring[kept++ & queue.mask] = queue.ring[i & queue.mask];
  }
  queue.tail.store(kept, std::memory_order_relaxed);
}

/// Moves what is stored into `ring` of so many places, and hands the old one out in its stead.
/// REQUIRES: it fits.
template <class Ring, class Entry, class Also>
void move_to(Ring& queue, Entry*& ring, std::uint32_t places, Also also) noexcept {
  const std::uint32_t head = queue.head.load(std::memory_order_relaxed);
  const std::uint32_t stored = count(queue);
  for (std::uint32_t i = 0; i < stored; ++i) {
    also((head + i) & queue.mask, i);
    ring[i] = queue.ring[(head + i) & queue.mask];
  }
  std::swap(queue.ring, ring);
  queue.mask = places - 1;
  queue.head.store(0, std::memory_order_relaxed);
  queue.tail.store(stored, std::memory_order_relaxed);
}

/// The first completion that no event told of; `told`: the number behind the last that one did.
template <class Ring>
[[nodiscard]] std::uint32_t first_untold(const Ring& queue, std::uint32_t told) noexcept {
  const std::uint32_t head = queue.head.load(std::memory_order_relaxed);
  // Numbers come round: what was told long ago is before the head, wherever it seems to be.
  return told - head <= count(queue) ? told : head;
}

/// Whether a completion that no event told of makes one; `told` is then moved behind it.
template <class Ring, class MakesEvent>
[[nodiscard]] bool tell_next(const Ring& queue, std::uint32_t& told,
                             const MakesEvent& makes_event) noexcept {
  const std::uint32_t tail = queue.tail.load(std::memory_order_relaxed);
  for (std::uint32_t i = first_untold(queue, told); i != tail; ++i) {
    if (!makes_event(queue.ring[i & queue.mask])) continue;
    told = i + 1;
    return true;
  }
  return false;
}

}  // namespace completions
}  // namespace verbatim
