// SPDX-License-Identifier: BSD-2-Clause
//
// Threads on the same objects, and the count of what they made complete: who posts, who polls, and
// that nothing was lost and nothing doubled.
#pragma once

#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tests/support/expect.hpp"
#include "tests/support/scale.hpp"

namespace verbatim::harness {

inline constexpr std::uint32_t kPosters = 4;
inline constexpr std::uint32_t kPollers = 3;
/// What each of them posts. However few, the queues go round, of completions too.
inline const std::uint32_t kEach = scaled_rounds(500u, 200u);

/// Threads that are joined at the end of their scope; the first exception is told as a failure.
class Crew {
 public:
  ~Crew() { join(); }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void add(std::function<void()> body) {
    threads_.emplace_back([body = std::move(body)] {
      try {
        body();
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }

 private:
  std::vector<std::thread> threads_;
};

/// The others must stop even if this thread throws.
struct RaiseAtEnd {
  std::atomic<bool>& flag;
  ~RaiseAtEnd() { flag = true; }
};

/// A count per wr_id, filled by several pollers.
class Tally {
 public:
  explicit Tally(std::size_t size) : counts_(size) {}
  void count(const ibv_wc& wc) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    ASSERT_LT(wc.wr_id, counts_.size());
    counts_[wc.wr_id].fetch_add(1);
    total_.fetch_add(1);
  }
  bool complete() const { return total_.load() >= counts_.size(); }
  std::size_t total() const { return total_.load(); }
  void expect_each_once() const {
    for (std::size_t i = 0; i < counts_.size(); ++i) EXPECT_EQ(counts_[i].load(), 1) << "wr " << i;
  }
  void expect_none_twice() const {
    for (std::size_t i = 0; i < counts_.size(); ++i) EXPECT_LE(counts_[i].load(), 1) << "wr " << i;
  }

 private:
  std::vector<std::atomic<int>> counts_;
  std::atomic<std::size_t> total_{0};
};

/// Posts what a Tally counts, again as long as the queue is full. That the queue of completions has
/// room is seen to here, since a driver may free a request's slot before anybody polls
/// (kFreesSlotsEarly in quirks.hpp).
class PatientPoster {
 public:
  explicit PatientPoster(const Tally& tally) : tally_(tally) {}
  void post(Endpoint& endpoint, std::int32_t qp, const Request& request) {
    post(1, [&] { return endpoint.post_send(qp, {request}).error; });
  }
  /// `attempt` posts all `requests` or, with the errno that it answers, none.
  template <class Attempt>
  void post(std::size_t requests, Attempt&& attempt) {
    int error = 0;
    ASSERT_TRUE(wait_until([&] {
      if (posted_.load() + requests > tally_.total() + kUnpolled) return false;
      error = attempt();
      return error != ENOMEM;
    }));
    ASSERT_EQ(error, 0);
    posted_.fetch_add(requests);
  }

 private:
  static constexpr std::size_t kUnpolled = 480;  ///< of 512, the least that a CQ here holds
  const Tally& tally_;
  std::atomic<std::size_t> posted_{0};
};

/// Places for messages: with whoever posts, in the queue, or with whoever took one.
class FreeSlots {
 public:
  explicit FreeSlots(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) free_.push_back(i);
  }
  std::optional<std::uint64_t> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return {};
    const std::uint64_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give(std::uint64_t slot) {
    const std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> free_;
};

inline void poll_until_complete(Endpoint& endpoint, std::int32_t cq, Tally& tally) {
  ASSERT_TRUE(wait_until([&] {
    for (const ibv_wc& wc : endpoint.poll_once(cq, 4)) tally.count(wc);
    return tally.complete();
  }));
}

}  // namespace verbatim::harness
