// SPDX-License-Identifier: BSD-2-Clause
// The other libraries' programs, really run where they are installed: whether our way of starting,
// pinning and reading them works.
#include "perf/peers/programs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "perf/peers/libfabric.hpp"
#include "perf/peers/ucx.hpp"
#include "perf/support/interrupt.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

using ::testing::HasSubstr;

CorePair cores() { return choose_core_pair(allowed_cpus()); }

TEST(Programs, ServerAndClientMeetOnAFreePort) {
  const std::string server =
      "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1]))); "
      "s.listen(); s.accept()";
  const std::string client =
      "import socket, sys, os; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])));"
      "print(len(os.sched_getaffinity(0)), os.environ['VERBATIM_PERF_TEST'])";
  if (!is_installed("python3")) GTEST_SKIP() << "python3 is not installed";
  EXPECT_EQ(run_programs({{"python3", "-c", server, "%PORT%"},
                          {"python3", "-c", client, "%PORT%"},
                          {"VERBATIM_PERF_TEST=passed-on"}},
                         cores())
                .output,
            "1 passed-on\n");
}

TEST(Programs, AFailingClientIsAnErrorWithItsWords) {
  if (!is_installed("python3")) GTEST_SKIP() << "python3 is not installed";
  const std::string server =
      "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1]))); "
      "s.listen(); s.accept()";
  const std::string client =
      "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); "
      "sys.exit('no such device')";
  try {
    run_programs({{"python3", "-c", server, "%PORT%"}, {"python3", "-c", client, "%PORT%"}, {}},
                 cores());
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no such device"));
  }
}

TEST(Programs, UcxMeasuresItself) {
  if (!is_installed("ucx_perftest")) GTEST_SKIP() << "ucx-utils is not installed";
  if (!cores().distinct) GTEST_SKIP() << "needs two cores";
  const UcxResult latency = run_ucx({"am_lat", 8, 2000}, cores());
  EXPECT_GT(latency.latency_ns(), 1);
  const UcxResult tag = run_ucx({"tag_bw", 65536, 100, UcxOver::kTag}, cores());
  EXPECT_GT(tag.messages_per_second, 1);
}

TEST(Programs, LibfabricMeasuresItself) {
  if (!is_installed("fi_pingpong")) GTEST_SKIP() << "libfabric-bin is not installed";
  if (!cores().distinct) GTEST_SKIP() << "needs two cores";
  EXPECT_GT(run_pingpong(8, 2000, cores()).ns, 1);
}

}  // namespace
}  // namespace verbatim::perf

int main(int argc, char** argv) {
  verbatim::perf::become_program_if_asked(argc, argv);
  verbatim::perf::catch_interrupts();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
