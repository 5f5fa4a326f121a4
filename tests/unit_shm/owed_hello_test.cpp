// SPDX-License-Identifier: BSD-2-Clause
// Descriptors under way are limited for each user (RLIMIT_NOFILE, ETOOMANYREFS): a HELLO may not
// fit. It comes when it does, and nobody is less alive meanwhile.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "providers/shm/fabric/peer_messages.hpp"
#include "runtime/base/unique_fd.hpp"
#include "tests/support/child.hpp"
#include "tests/support/condition.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/role.hpp"
#include "tests/unit_shm/process_events.hpp"

namespace verbatim::shm {
namespace {

using harness::wait_until;

/// As many descriptors under way as may be, and more.
class UnderWay {
 public:
  UnderWay() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return;
    from_.reset(ends[0]);
    to_.reset(ends[1]);
    while (send_some() == 0) {
    }
    is_limit_ = errno == ETOOMANYREFS;
  }
  /// Whether no more may be: not where we have a capability that lifts the limit.
  bool is_limit() const { return is_limit_; }

 private:
  int send_some() {
    const int fds[] = {from_.get(), from_.get(), from_.get()};
    return send_message(from_.get(), "", 1, fds);
  }
  UniqueFd from_;
  UniqueFd to_;
  bool is_limit_ = false;
};

/// Cannot answer who comes, and then can.
VBT_ROLE(crowded_node) {
  const RunningProcess process;
  std::uint32_t index = 0;
  std::uint32_t qpn = 0;
  if (process->take_qpn(index, qpn) != 0) return 1;
  {
    const UnderWay many;
    control.send_value(many.is_limit() ? qpn : 0);
    if (!many.is_limit()) return 0;
    control.send_value(wait_until([] { return ProcessEvents::get().peers_ready == 1; }));
    (void)control.receive_value<bool>();
  }
  (void)control.receive_value<bool>();
  control.send_value(ProcessEvents::get().peers_dead.load());
  (void)control.receive_value<bool>();
  return 0;
}

TEST(OwedHello, ComesWhenDescriptorsMayBeUnderWayAgain) {
  ProcessEvents::get().reset();
  const RunningProcess process;
  harness::Child child("crowded_node", {{harness::kCondition, "limit nofile 200"}});
  const auto qpn = child.control().receive_value<std::uint32_t>();
  if (qpn == 0) GTEST_SKIP() << "descriptors under way are not limited here";
  pollfd said{child.control().fd(), POLLIN, 0};
  EXPECT_TRUE(wait_until([&] {
    process->want_peer(qpn);
    return poll(&said, 1, 0) == 1;
  }));
  EXPECT_TRUE(child.control().receive_value<bool>()) << "it heard us";
  EXPECT_EQ(process->find_peer(qpn), nullptr) << "it could answer";
  child.control().send_value(true);
  EXPECT_TRUE(wait_until([&] {
    process->want_peer(qpn);
    return process->find_peer(qpn) != nullptr;
  }));
  child.control().send_value(true);
  EXPECT_EQ(child.control().receive_value<std::uint32_t>(), 0u) << "it took us for dead";
  // It can be found before the service thread says so.
  EXPECT_TRUE(wait_until([] { return ProcessEvents::get().peers_ready == 1u; }));
  EXPECT_EQ(ProcessEvents::get().peers_dead, 0u);
  child.control().send_value(true);
  EXPECT_EQ(child.wait().exit_status, 0);
}

}  // namespace
}  // namespace verbatim::shm
