// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_progress.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace verbatim::cli {
namespace {

constexpr std::chrono::seconds kSilent{2};
constexpr std::chrono::milliseconds kBetween{500};

}  // namespace

PerfProgress::PerfProgress(std::string what, std::uint32_t duration_s)
    : what_(std::move(what)), duration_s_(duration_s) {
  if (!perf::stderr_is_seen()) return;
  try {
    thread_.emplace([this] { show_until_over(); });
  } catch (const std::system_error&) {
    // A process that may start no thread measures without a progress line.
  }
}

PerfProgress::~PerfProgress() {
  if (!thread_) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_->join();
}

void PerfProgress::show_until_over() {
  perf::Progress line;
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, kSilent, [this] { return over_; })) return;
  do {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const std::string text = what_ + ", " + std::to_string(static_cast<int>(seconds)) + " s";
    if (duration_s_ == 0)
      line.tell(text);
    else
      line.show(std::min(1.0, seconds / duration_s_), text);
  } while (!changed_.wait_for(lock, kBetween, [this] { return over_; }));
}

}  // namespace verbatim::cli
