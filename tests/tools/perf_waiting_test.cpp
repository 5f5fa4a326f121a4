// SPDX-License-Identifier: BSD-2-Clause
// When a measuring loop that waits looks around, which enters the kernel and so costs more than a
// message: in long waits, and never in many short ones.
#include "perf/cli/perf_waiting.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <optional>
#include <string>
#include <thread>

#include "perf/cli/failure.hpp"
#include "perf/cli/tcp_exchange.hpp"

namespace verbatim::cli {
namespace {

constexpr int kPollsOfAShortWait = 1000, kPollsOfALongWait = 5000;

class PerfWaits : public ::testing::Test {
 protected:
  PerfWaits() {
    struct sigaction nothing = {};
    nothing.sa_handler = [](int) {};
    sigaction(SIGTERM, &nothing, &before_);
    stop_.emplace();
    listener_.emplace(0);
    options_.server = "127.0.0.1";
    options_.tcp_port = listener_->port();
    exchange_.emplace(options_, std::nullopt, *stop_);
    waiting_.emplace(*exchange_, *stop_, nullptr, nullptr, nullptr, 1);
  }
  ~PerfWaits() override {
    stop_.reset();
    sigaction(SIGTERM, &before_, nullptr);
  }

  struct sigaction before_;
  PerfOptions options_{{PerfVerb::kSend, PerfMeasure::kLatency}};
  std::optional<StopSignals> stop_;
  std::optional<Listener> listener_;
  std::optional<PerfExchange> exchange_;
  std::optional<PerfWaiting> waiting_;
};

TEST_F(PerfWaits, LooksAroundInALongWaitAlone) {
  raise(SIGTERM);  // which is pending, and so ends the first look
  const auto wait = [this](int polls) {
    for (int poll = 0; poll < polls; ++poll) waiting_->idle();
  };
  for (int round = 0; round < 100; ++round) {
    ASSERT_NO_THROW(wait(kPollsOfAShortWait)) << round;
    waiting_->busy();
  }
  EXPECT_THROW(wait(kPollsOfALongWait), Stopped);
}

TEST_F(PerfWaits, LooksForAStopBetweenManyShortWaitsToo) {
  raise(SIGTERM);
  EXPECT_THROW(for (int round = 0; round < 10'000; ++round) waiting_->busy(), Stopped);
}

TEST_F(PerfWaits, LooksForAStopAfterFewRoundsOfLongMessages) {
  waiting_.emplace(*exchange_, *stop_, nullptr, nullptr, nullptr, 8u << 20);
  raise(SIGTERM);
  EXPECT_THROW(for (int round = 0; round < 8; ++round) waiting_->busy(), Stopped);
}

TEST(PerfReports, OfAStrangerAreNumbersOrRefused) {
  const StopSignals stop;
  for (const double said : {5.0, -1.0, std::nan(""), HUGE_VAL}) {
    Listener listener(0);
    PerfOptions options({PerfVerb::kSend, PerfMeasure::kBandwidth});
    PerfOptions client_options = options;
    client_options.server = "127.0.0.1";
    client_options.tcp_port = listener.port();
    PerfExchange client(client_options, std::nullopt, stop);
    PerfExchange server(options, std::move(listener), stop);
    std::thread other([&] { (void)client.swap_reports({64, 10, 1, 2, said}); });
    std::string line;
    try {
      EXPECT_EQ(server.swap_reports({}).rate, 5.0);
    } catch (const Failure& failure) {
      line = failure.line;
    }
    other.join();
    EXPECT_EQ(line.empty(), said == 5.0) << said;
  }
}

}  // namespace
}  // namespace verbatim::cli
