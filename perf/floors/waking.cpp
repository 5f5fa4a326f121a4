// SPDX-License-Identifier: BSD-2-Clause
// Floor F10: two processes that wake each other from a futex in memory that both map, and what it
// costs to give the core away when nobody wants it.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "perf/ends/end.hpp"
#include "perf/floors/floors.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::perf {
namespace {

/// The half of a line's counter that changes.
const std::uint32_t* low_word(const std::atomic<std::uint64_t>& line) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(&line);
  return words + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 1 : 0);
}

void wake(const std::atomic<std::uint64_t>& line) {
  syscall(SYS_futex, low_word(line), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void sleep_until(const std::atomic<std::uint64_t>& line, std::uint64_t value) {
  for (std::uint64_t seen; (seen = line.load(std::memory_order_acquire)) != value;) {
    syscall(SYS_futex, low_word(line), FUTEX_WAIT, static_cast<std::uint32_t>(seen), nullptr,
            nullptr, 0);
  }
}

}  // namespace

void run_futex_ping_pong(End& end, const Request& request, Reply& reply) {
  end.own_line().store(0, std::memory_order_release);
  end.meet();
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 1; i <= request.iterations; ++i) {
    if (!end.is_near()) sleep_until(end.peer_line(), i);
    end.own_line().store(i, std::memory_order_release);
    wake(end.own_line());
    if (end.is_near()) sleep_until(end.peer_line(), i);
  }
  count_block(reply, start, now_ns(), 2.0 * static_cast<double>(request.iterations), 0);
}

void run_yield(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) sched_yield();
  count_block(reply, start, now_ns(), static_cast<double>(request.iterations), 0);
}

}  // namespace verbatim::perf
