// SPDX-License-Identifier: BSD-2-Clause
//
// A service thread that was away: without a core, stopped, held up. It hears first what was said to
// it meanwhile; only then time is over for anybody.
#include <chrono>
#include <thread>

#include "tests/unit_shm/stranger.hpp"

namespace verbatim::shm {
namespace {

using harness::wait_until;

class AwayTest : public Stranger {
 protected:
  static ProcessEvents& events() { return ProcessEvents::get(); }
  /// The thread is busy with something, while somebody says HELLO and time passes.
  void be_away(std::chrono::nanoseconds time) {
    Process& process = **process_;
    process.want_tick(true);
    ASSERT_TRUE(wait_until([] { return events().ticks >= 2; }));
    events().holds_requests = true;
    process.self().segment.doorbells().service.ring(1);
    process.self().wake_service();
    ASSERT_TRUE(wait_until([] { return events().requests == 1; }));
    ticks_ = events().ticks;
    begun_ = process.wait_clock().begin();
    socket_ = connected();
    ASSERT_EQ(say_hello(socket_.get(), honest_hello(), forged_->fd(), forged_->doorbell_fd(),
                        place_.get()),
              0);
    std::this_thread::sleep_for(time);
    EXPECT_LE(heard(), begun_) << "nobody has heard anything";
    back_ = std::chrono::steady_clock::now();
    events().holds_requests = false;
  }
  std::uint64_t heard() {
    WaitClock& clock = (*process_)->wait_clock();
    return clock.heard(clock.now());
  }

  std::uint32_t ticks_ = 0;
  std::uint64_t begun_ = 0;
  std::chrono::steady_clock::time_point back_;  ///< not later than the thread
  UniqueFd socket_;
};

TEST_F(AwayTest, HearsWhatWasSaidMeanwhileBeforeItsDatesAndBeforeTimeGoesOn) {
  ASSERT_NO_FATAL_FAILURE(be_away(2 * std::chrono::nanoseconds(WaitClock::kAway)));
  ASSERT_TRUE(wait_until([] { return events().peers_ready == 1; }));
  EXPECT_EQ(events().ticks_when_ready, ticks_);
  EXPECT_LE(events().heard_when_ready, begun_);
  EXPECT_TRUE(wait_until([&] { return heard() > begun_; })) << "it goes on";
}

TEST_F(AwayTest, ItsAbsenceIsNoTimeOfOthers) {
  const auto away = 10 * std::chrono::nanoseconds(WaitClock::kAway);
  ASSERT_NO_FATAL_FAILURE(be_away(away));
  ASSERT_TRUE(wait_until([&] { return heard() > begun_ + WaitClock::kAway; }));
  const std::uint64_t counted = heard() - begun_;
  EXPECT_LE(std::chrono::nanoseconds(counted), std::chrono::nanoseconds(WaitClock::kAway) +
                                                   (std::chrono::steady_clock::now() - back_) +
                                                   std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace verbatim::shm
