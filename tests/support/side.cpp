// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/side.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/role.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kSuccess = 0;
constexpr std::uint32_t kThrew = 1;
/// Asks the child to destroy what it has and to end.
constexpr std::uint32_t kFinish = ~0u;
/// A child waits up to the default for what it was told; its excuse must arrive before we give up.
std::int32_t answer_wait_ms() { return 3 * kDefaultWaitMs; }

VBT_ROLE(endpoint) {
  Endpoint endpoint(std::make_shared<Session>());
  for (;;) {
    const Frame order = control.receive(600'000);
    if (order.kind == kFinish) return ::testing::Test::HasFailure() ? 1 : 0;
    try {
      control.send(kSuccess, EndpointMethods::invoke(endpoint, order.kind, order.body));
    } catch (const PeerGone&) {
      throw;
    } catch (const std::exception& error) {
      Writer out;
      out.put(std::string(error.what()));
      control.send(kThrew, out.take());
    }
  }
}

}  // namespace

Side::~Side() {
  if (!child_) return;
  try {
    child_->control().send(kFinish);
    const Ended ended = child_->wait();
    EXPECT_TRUE(ended.in_time) << "the child did not end when told to";
    EXPECT_EQ(ended.exit_status, 0) << "the child ended by signal " << ended.signal;
  } catch (const PeerGone&) {
    // It ended before it was told to: fine only for a test that has done this and collected it.
    EXPECT_TRUE(child_->wait(0).in_time) << "the child is gone";
  }
}

Bytes Side::answer_body() {
  Frame frame = child_->control().receive(answer_wait_ms());
  if (frame.kind == kSuccess) return std::move(frame.body);
  throw std::runtime_error("in the child: " + Reader(frame.body).get<std::string>());
}

void Side::fall_asleep() {
  ask<&Endpoint::pause_until_signal>();
  if (!wait_until([&] { return child_->is_paused(); })) {
    throw std::runtime_error("the child does not pause");
  }
}

void Side::wake_up() {
  child_->signal(SIGUSR1);
  answer<&Endpoint::pause_until_signal>();
}

}  // namespace verbatim::harness
