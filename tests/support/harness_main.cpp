// SPDX-License-Identifier: BSD-2-Clause
//
// main() of every test executable that starts processes: a role when argv names one, else the
// tests, in a fabric folder of their own and with the library's log watched.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <optional>
#include <string_view>

#include "tests/support/fabric_directory.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/role.hpp"

namespace verbatim {
/// The library's own (runtime/base/log.hpp), where it is linked statically.
[[gnu::weak]] void tell_each_refusal(bool each) noexcept;
}  // namespace verbatim

namespace verbatim::harness {
namespace {

/// Tests judge what refusals say; users hear of them at VERBATIM_LOG=info, as does a role that is
/// started with VERBATIM_TEST_REFUSALS.
void hear_refusals() {
  if (tell_each_refusal != nullptr && getenv("VERBATIM_TEST_REFUSALS") == nullptr)
    tell_each_refusal(true);
}

class JudgeLogAfterEachTest : public ::testing::EmptyTestEventListener {
  // GoogleTest still counts failures that are added here towards the test that ends.
  void OnTestEnd(const ::testing::TestInfo&) override {
    if (LogWatch* watch = LogWatch::instance()) watch->judge();
  }
};

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  const FabricDirectory fabric;
  // Who wants to read more than complaints while debugging gets it, unjudged.
  setenv("VERBATIM_LOG", "warn", 0);
  std::optional<LogWatch> watch;
  if (getenv("VERBATIM_LOG") == std::string_view("warn")) watch.emplace();
  // Listeners hear the end of a test last one first: ours before the printer.
  ::testing::UnitTest::GetInstance()->listeners().Append(new JudgeLogAfterEachTest);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace verbatim::harness

#ifdef VBT_UNDER_THREAD_SANITIZER
/// What a service thread does to registered memory on a peer's behalf is ordered with the owner's
/// own accesses by that peer, a process of its own: ThreadSanitizer sees neither end of that order.
/// Nor is there an order between requests of two queue pairs that name the same bytes of a peer's,
/// which a stranger has them do: the service thread performs what had to wait. And a mapping that
/// is put over a retired peer's segment is made to be read beside: late looks find the old page or
/// a zero.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:verbatim::perform_atomic\n"
         "race:^perform$\n"
         "race:verbatim::shm::(anonymous namespace)::perform\n"
         "race:verbatim::shm::(anonymous namespace)::serve_round\n"
         "race:verbatim::shm::pull_messages\n"
         "race:verbatim::shm::copy(\n"
         "race:verbatim::shm::PeerSegment::rest\n";
}
#endif

int main(int argc, char** argv) {
  verbatim::harness::hear_refusals();
  if (const auto status = verbatim::harness::run_role_if_named(argc, argv)) return *status;
  return verbatim::harness::run_tests(argc, argv);
}
