// SPDX-License-Identifier: BSD-2-Clause
//
// This process in the fabric, and a stranger with a segment of his own who speaks to it through its
// socket; afterwards the process still serves the honest. One thread.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "providers/shm/fabric/fabric_folder.hpp"
#include "providers/shm/fabric/peer_messages.hpp"
#include "tests/support/child.hpp"
#include "tests/support/deadline.hpp"
#include "tests/unit_shm/process_events.hpp"

namespace verbatim::shm {

class Stranger : public ::testing::Test {
 protected:
  void SetUp() override {
    ProcessEvents::get().reset();
    process_ = std::make_unique<RunningProcess>();
    std::uint32_t index = 0;
    ASSERT_EQ((*process_)->take_qpn(index, qpn_), 0);
    ASSERT_EQ(folder_->open(), 0);
    ASSERT_EQ(forged_->create(), 0);
    ASSERT_EQ(folder_->bind_apart(woken_, place_), 0);
  }
  void TearDown() override {
    serves_the_honest();
    forged_->destroy();
    folder_->close();
    process_.reset();
  }

  UniqueFd connected() {
    UniqueFd socket;
    EXPECT_TRUE(
        harness::wait_until([&] { return folder_->connect(qpn_ >> kQpnBlockBits, socket) == 0; }));
    return socket;
  }
  /// A HELLO of a process that exists: ourselves with another segment.
  HelloMessage honest_hello() {
    HelloMessage hello;
    hello.identity = forged_->head().identity;
    hello.header_address = reinterpret_cast<std::uintptr_t>(forged_->base());
    hello.layout_version = kLayoutVersion;
    return hello;
  }
  int say_hello(int socket, const HelloMessage& hello, int segment, int doorbells, int place) {
    const int fds[] = {segment, doorbells, place};
    return send_message(socket, &hello, sizeof hello, fds);
  }
  /// Waits until the process has closed its end; false when it answers instead.
  static bool was_refused(int socket) {
    int error = EAGAIN;
    bool answered = false;
    EXPECT_TRUE(harness::wait_until([&] {
      Received received;
      error = receive_message(socket, received);
      answered = error == 0;
      return error != EAGAIN;
    }));
    return !answered;
  }
  void serves_the_honest() {
    harness::Child child("process");
    ASSERT_EQ(child.control().receive_value<int>(), 0);
    child.control().send_value(Question{Ask::kMeet, qpn_});
    EXPECT_EQ(child.control().receive_value<std::uint64_t>(), 1u);
    child.control().send_value(Question{Ask::kQuit, 0});
    (void)child.control().receive_value<std::uint64_t>();
    EXPECT_EQ(child.wait().exit_status, 0);
  }

  std::unique_ptr<RunningProcess> process_;
  std::uint32_t qpn_ = 0;
  std::unique_ptr<FabricFolder> folder_ = std::make_unique<FabricFolder>();
  std::unique_ptr<OwnSegment> forged_ = std::make_unique<OwnSegment>();
  UniqueFd woken_, place_;
};

}  // namespace verbatim::shm
