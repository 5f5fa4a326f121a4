// SPDX-License-Identifier: BSD-2-Clause
// The folder where processes meet moves with logouts and logins of their user, from one file system
// into another: who was met in whichever of its places can be woken at once, not by the sweep.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/support/child.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/unit_shm/process_events.hpp"

namespace verbatim::shm {
namespace {

namespace fs = std::filesystem;
using harness::wait_until;

class OtherNode {
 public:
  explicit OtherNode(const std::map<std::string, std::string>& environment)
      : child_("process", environment) {
    EXPECT_EQ(child_.control().receive_value<int>(), 0);
  }
  std::uint64_t ask(Ask question, std::uint64_t value = 0) {
    child_.control().send_value(Question{question, value});
    return child_.control().receive_value<std::uint64_t>();
  }

 private:
  harness::Child child_;
};

/// Somebody may be looking, and make a name anew before the folder goes too.
void remove_used(const std::string& path) {
  EXPECT_TRUE(wait_until([&] {
    std::error_code in_use;
    fs::remove_all(path, in_use);
    return !in_use;
  }));
}

TEST(Logins, WhoWasMetBeforeTheFirstIsWokenAtOnceAfterTheSecond) {
  const harness::AllowedLog goes_down{"The port is down"};
  const harness::AllowedLog comes_back{"the port is active"};
  char run[] = "/dev/shm/vbt-run-XXXXXX";
  ASSERT_NE(mkdtemp(run), nullptr);
  const std::string fabric = fs::path(getenv("VERBATIM_FABRIC")).filename();
  {
    const std::map<std::string, std::string> environment{{"VERBATIM_FABRIC", fabric},
                                                         {"XDG_RUNTIME_DIR", run}};
    OtherNode sleeper(environment);
    OtherNode waker(environment);
    const std::uint64_t qpn = sleeper.ask(Ask::kTakeQpn);
    ASSERT_EQ(waker.ask(Ask::kMeet, qpn), 1u);
    EXPECT_EQ(waker.ask(Ask::kWake, qpn), 1u);
    std::uint64_t moves = 0;
    for (int round = 0; round < 2; ++round) {
      for (const bool is_login : {false, true}) {
        if (is_login) {
          fs::create_directory(run);
        } else {
          remove_used(run);
        }
        ++moves;
        ASSERT_TRUE(wait_until([&] {
          (void)sleeper.ask(Ask::kCanBeMet);
          return sleeper.ask(Ask::kNamesBack) == moves;
        }));
        EXPECT_EQ(waker.ask(Ask::kWake, qpn), 1u) << (is_login ? "login " : "logout ") << round + 1;
      }
    }
    waker.ask(Ask::kQuit);
    sleeper.ask(Ask::kQuit);
  }
  remove_used("/tmp/verbatim-" + std::to_string(geteuid()) + "/" + fabric);
  remove_used(run);
}

}  // namespace
}  // namespace verbatim::shm
