// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/pingpong_game.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <optional>

#include "perf/cli/failure.hpp"

namespace verbatim::cli {
namespace {

// Both sides may share a core, and then the one that spins keeps the other from answering.
constexpr unsigned kPollsBeforeYield = 2048;
// A run whose polls always find something must look up from its work too.
constexpr std::uint32_t kReceivesBeforeLook = 4096;

}  // namespace

void ReceiveGaps::add(std::uint64_t now) {
  if (started) {
    const std::uint64_t gap = (now - last) & mask;
    longest = std::max(longest, gap);
    shortest = std::min(shortest, gap);
    total += gap;
    ++count;
  }
  last = now;
  started = true;
}

void PingpongGame::post_receives() {
  receives_ += connection_.post_receives(receive_into_, options_.rx_depth - receives_);
  if (receives_ < options_.rx_depth) fail("Couldn't post receive (%u)", receives_);
}

void PingpongGame::play(bool first, const Conversation& peer) {
  peer_ = &peer;
  for (std::uint32_t pair = 0; pair < options_.queue_pairs; ++pair) {
    awaited_[pair] = PingpongConnection::kReceiveId;
    if (first) send(pair);
  }
  while (!finished()) {
    if (options_.events) {
      wait_by_event();
    } else {
      wait_by_polling();
    }
  }
}

void PingpongGame::report(double microseconds) const {
  const long long bytes = 2LL * options_.size * options_.iters;
  std::printf("%lld bytes in %.2f seconds = %.2f Mbit/sec\n", bytes, microseconds / 1e6,
              static_cast<double>(bytes) * 8 / microseconds);
  std::printf("%u iters in %.2f seconds = %.2f usec/iter\n", options_.iters, microseconds / 1e6,
              microseconds / options_.iters);
  if (!options_.timestamps || gaps_.count == 0) return;
  std::printf("Max receive completion clock cycles = %" PRIu64 "\n", gaps_.longest);
  std::printf("Min receive completion clock cycles = %" PRIu64 "\n", gaps_.shortest);
  std::printf("Average receive completion clock cycles = %f\n",
              static_cast<double>(gaps_.total) / static_cast<double>(gaps_.count));
}

void PingpongGame::send(std::uint32_t pair) {
  awaited_[pair] = PingpongConnection::kReceiveId | PingpongConnection::kSendId;
  connection_.post_send(pair, send_from_);
}

void PingpongGame::wait_by_event() {
  for (long silent = 0; !connection_.sleep(kDepartedMs, stop_);) {
    silent += kDepartedMs;
    judge_silence(silent);
  }
  while (take_completions()) {
  }
}

void PingpongGame::wait_by_polling() {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> since;
  for (unsigned polls = 0; !take_completions() && !finished(); ++polls) {
    if (polls < kPollsBeforeYield) continue;
    polls = 0;
    if (stop_.pending()) throw Stopped{};
    const auto now = Clock::now();
    if (!since) since = now;
    judge_silence(std::chrono::duration_cast<std::chrono::milliseconds>(now - *since).count());
    sched_yield();
  }
  if (received_ % kReceivesBeforeLook == 0 && stop_.pending()) throw Stopped{};
}

bool PingpongGame::finished() const {
  return received_ >= options_.iters && sent_ >= options_.iters;
}

bool PingpongGame::take_completions() {
  Completion done[16];
  const int count = connection_.poll(done);
  // What comes behind the last message of the game is none of ours: the other side may have left
  // already, and the receives that it never needed flush.
  for (int i = 0; i < count && !finished(); ++i) take(done[i]);
  return count > 0 && !finished();
}

void PingpongGame::take(const Completion& done) {
  const int id = static_cast<int>(done.wr_id);
  // With several queue pairs one may send what the game no longer needs, to a side that has left.
  const bool spare = done.wr_id == PingpongConnection::kSendId && sent_ >= options_.iters;
  if (done.status != IBV_WC_SUCCESS && spare) return;
  if (done.status != IBV_WC_SUCCESS) {
    fail("Failed status %s (%d) for wr_id %d", ibv_wc_status_str(done.status),
         static_cast<int>(done.status), id);
  }
  if (done.wr_id == PingpongConnection::kSendId) {
    ++sent_;
  } else if (done.wr_id == PingpongConnection::kReceiveId) {
    ++received_;
    if (options_.timestamps) gaps_.add(done.timestamp);
    if (--receives_ <= options_.queue_pairs) post_receives();
  } else {
    fail("Completion for unknown wr_id %d", id);
  }
  // It is our turn again when the last message has been sent and the answer received.
  awaited_[done.pair] &= ~done.wr_id;
  if (awaited_[done.pair] == 0 && sent_ < options_.iters) send(done.pair);
}

void PingpongGame::judge_silence(long silent) const {
  if (silent >= kDepartedMs && peer_->hung_up()) {
    if (received_ >= options_.iters) {
      fail("the other side left before it acknowledged the last of %u messages, which it may have",
           options_.iters);
    }
    fail("the other side left after %u of %u messages; look at its own message, and at its -n",
         received_, options_.iters);
  }
  if (silent >= kSilenceMs) {
    fail("no message for %ld s after %u of %u: the other side is stuck", silent / 1000, received_,
         options_.iters);
  }
}

}  // namespace verbatim::cli
