// SPDX-License-Identifier: BSD-2-Clause
//
// Threads that poll and find nothing, while what they wait for may need their processor: a peer
// that shares it would wait until the kernel ends their time slice, milliseconds for each message.
// So a thread that has polled in vain for some microseconds gives its processor away
// (sched_yield), and again at growing distances until it finds something. Alone on a processor
// that costs a system call each time. VERBATIM_POLL=spin: never.
//
// Counted by threads, not by queues: whoever finds something in one queue is not idle because
// another is empty, and threads that poll the same queue write to no common line.
#pragma once

#include <cstdint>

namespace verbatim {

/// How many polls of the calling thread were empty in a row.
[[gnu::tls_model("initial-exec")]] inline thread_local constinit std::uint32_t empty_polls = 0;

/// The time is looked at after so many.
inline constexpr std::uint32_t kEmptyPollsBetweenLooks = 128;

/// Gives the processor away if it is time. Returns `answer`, so that a poll can end with a jump.
[[gnu::noinline]] int look_after_empty_polls(int answer) noexcept;

/// A poll found nothing. Returns `answer`, the poll's own.
[[gnu::always_inline]] inline int count_empty_poll(int answer) noexcept {
  if (++empty_polls % kEmptyPollsBetweenLooks != 0) [[likely]]
    return answer;
  return look_after_empty_polls(answer);
}

/// A poll found something.
[[gnu::always_inline]] inline void end_empty_polls() noexcept { empty_polls = 0; }

/// A poll found so many.
[[gnu::always_inline]] inline void count_if_empty(int found) noexcept {
  if (found != 0)
    end_empty_polls();
  else
    count_empty_poll(0);
}

/// Reads VERBATIM_POLL, and where that is not set what a part of the library has said (sync/polls.hpp), the
/// first time: before the first poll, when the environment may be read.
void choose_how_empty_polls_wait() noexcept;

}  // namespace verbatim
