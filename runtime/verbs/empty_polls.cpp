// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/empty_polls.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string_view>

#include <sched.h>

#include "runtime/base/environment.hpp"
#include "runtime/sync/polls.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim {
namespace {

/// Long against a yield that finds nobody else (0.3 us), short against a time slice.
constexpr std::uint64_t kFirstDistanceNs = 8'000;
/// A message that comes after a long silence to one of a few threads that share a processor waits
/// no longer than this for each of the others.
constexpr std::uint64_t kLastDistanceNs = 64'000;

/// What is known of the empty polls in a row of this thread.
struct Idleness {
  std::uint64_t since = 0;  ///< the first look, or the last time that the processor was given away
  std::uint64_t distance = 0;
};
[[gnu::tls_model("initial-exec")]] thread_local constinit Idleness idleness{};

enum class Wait : std::uint8_t { kUnread, kYield, kSpin };
constinit std::atomic<Wait> chosen{Wait::kUnread};

}  // namespace

void choose_how_empty_polls_wait() noexcept {
  if (chosen.load(std::memory_order_relaxed) != Wait::kUnread) return;
  static constexpr std::string_view kChoices[] = {"yield", "spin"};
  const std::size_t otherwise = are_empty_polls_to_spin() ? 1 : 0;
  const bool spin = environment_choice("VERBATIM_POLL", kChoices, otherwise) == 1;
  chosen.store(spin ? Wait::kSpin : Wait::kYield, std::memory_order_relaxed);
}

int look_after_empty_polls(int answer) noexcept {
  if (chosen.load(std::memory_order_relaxed) == Wait::kSpin) return answer;
  const std::uint64_t now = now_ns();
  if (empty_polls == kEmptyPollsBetweenLooks) {
    idleness = {now, kFirstDistanceNs};
  } else if (now - idleness.since >= idleness.distance) {
    ::sched_yield();
    idleness.since = now_ns();
    // Who computes there does not give it back soon: he gets no more of it than we keep.
    const std::uint64_t taken = idleness.since - now;
    idleness.distance = std::max(std::min(2 * idleness.distance, kLastDistanceNs), taken);
  }
  return answer;
}

}  // namespace verbatim
