// SPDX-License-Identifier: BSD-2-Clause
// Options of perftest that `verbatim perf` refuses, or takes in bounds: each in one line, and an
// exit status that is not 0; every option that is taken stands in the help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/tools/perf_pair.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Slip {
  Words words;
  std::string says;
};
void PrintTo(const Slip& slip, std::ostream* out) { *out << ::testing::PrintToString(slip.words); }

class PerfSlip : public ::testing::Test, public ::testing::WithParamInterface<Slip> {
 protected:
  PrivateFabric fabric_;
};

TEST_P(PerfSlip, IsNamedInOneLine) {
  const Ending ending =
      run(real_tool("verbatim", fabric_.environment()), joined({"perf"}, GetParam().words));
  EXPECT_TRUE(ending.in_time);
  EXPECT_EQ(ending.status, 1) << ending.out;
  EXPECT_EQ(own_lines(ending.err), 1) << ending.err;
  EXPECT_THAT(ending.err, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Bounds, PerfSlip,
    ::testing::Values(
        Slip{{"send"}, "no command 'perf send'"},
        Slip{{"send-bw", "-s", "0"}, "size '0' is not a number from 1 to 2147483647"},
        Slip{{"send-bw", "-s", "2G"}, "(-s)"},
        Slip{{"send-bw", "-s", "1073741825"}, "more than shm0 sends in one message"},
        Slip{{"send-bw", "-n", "4"}, "a number from 5 to 100000000 (-n)"},
        Slip{{"send-bw", "-q", "16385"}, "(-q)"}, Slip{{"send-bw", "-t", "x"}, "(-t)"},
        Slip{{"send-bw", "-r", "0"}, "(-r)"}, Slip{{"send-lat", "-I", "913"}, "(-I)"},
        Slip{{"send-bw", "-m", "300"}, "path MTU '300' is none of 256, 512, 1024, 2048, 4096"},
        Slip{{"send-bw", "-m", "8192"}, "path MTU '8192' is none of"},
        Slip{{"send-bw", "-x", "9"}, "port 1 of shm0 has 1 (-x)"},
        Slip{{"send-bw", "-i", "2"}, "shm0 has 1 port, not 2 (-i)"},
        Slip{{"send-bw", "-d", "mlx5_0"}, "IB device mlx5_0 not found (there is: shm0)"},
        Slip{{"send-bw", "-c", "DC"}, "connection type 'DC' is none of RC, UC, UD, XRC (-c)"},
        Slip{{"write-bw", "-c", "UD"}, "UD has no write-bw: choose RC or XRC, or UC"},
        Slip{{"read-lat", "-c", "UC"}, "UC has no read-lat: choose RC or XRC"},
        Slip{{"send-bw", "-c", "UD", "-s", "4097"}, "of 4096 bytes at most here"},
        Slip{{"atomic-lat", "-A", "SUB"}, "none of CMP_AND_SWAP, FETCH_AND_ADD"},
        Slip{{"send-bw", "-l", "16"}, "no multiple of a post list of 16"},
        Slip{{"send-bw", "-l", "200", "-n", "200"}, "more than the tx depth of 128"},
        Slip{{"send-bw", "-D", "4", "-f", "2"}, "nothing of 4 s is left between margins of 2 s"},
        Slip{{"send-bw", "-f", "2"}, "a margin is one of -D"},
        Slip{{"send-lat", "-D", "1", "-e"}, "does not sleep on events"},
        Slip{{"send-bw", "-D", "1", "-a"}, "leave out -a"},
        Slip{{"send-lat", "-D", "1", "-U"}, "keeps no single results"},
        Slip{{"send-bw", "--use-srq", "-q", "8", "-r", "4"}, "cannot be shared by 8 queue pairs"},
        Slip{{"send-bw", "--report-both"}, "is of -b"},
        Slip{{"send-bw", "--output", "latency"}, "is not bandwidth or message_rate"},
        Slip{{"send-bw", "-w", "fast"}, "limit 'fast' is not a number"},
        Slip{{"send-bw", "--out_json_file", "/proc/none/x"}, "Couldn't write '/proc/none/x'"},
        Slip{{"send-bw", "-p", "0", "127.0.0.1"}, "TCP port 0 is for servers"},
        Slip{{"send-bw", "a", "b"}, "'b' is too much"}, Slip{{"send-bw", ""}, "'' is no host"},
        Slip{{"send-bw", "--nonsense"}, "unrecognized option '--nonsense'"},
        Slip{{"send-bw", "-s"}, "option requires an argument -- 's'"}));

INSTANTIATE_TEST_SUITE_P(
    OfOtherTests, PerfSlip,
    ::testing::Values(Slip{{"send-lat", "-q", "2"}, "-q (--qp) is no option of send-lat"},
                      Slip{{"write-lat", "-e"}, "-e (--events) is no option of write-lat"},
                      Slip{{"atomic-bw", "-s", "8"}, "-s (--size) is no option of atomic-bw"},
                      Slip{{"read-bw", "-I", "8"}, "-I (--inline_size) is no option of read-bw"},
                      Slip{{"send-bw", "-H"}, "-H (--report-histogram) is no option of send-bw"},
                      Slip{{"write-bw", "--use-srq"}, "is no option of write-bw"}));

INSTANTIATE_TEST_SUITE_P(
    ThatThereIsNot, PerfSlip,
    ::testing::Values(
        Slip{{"send-bw", "-R"}, "-R (--rdma_cm) is refused: this program has no connections by"},
        Slip{{"send-bw", "-z"}, "(--comm_rdma_cm) is refused"},
        Slip{{"send-lat", "-L", "9"}, "(--hop_limit) is refused: this program has no raw packets"},
        Slip{{"write-bw", "-O"}, "shm0 has 1 port, and this program drives one at a time"},
        Slip{{"write-bw", "--use_cuda=0"}, "this program has no memory of accelerators"},
        Slip{{"write-bw", "-W", "counters/port_xmit_data"},
             "counters/port_xmit_data': No such file or directory (-W)"},
        Slip{{"write-bw", "--numa_node=999"}, "this host has no NUMA node 999"},
        Slip{{"write-bw", "--pin_cores=1023"}, "Couldn't run on the cores asked for"},
        Slip{{"write-bw", "--source_ip=192.0.2.7"}, "no address of this host to listen at"}));

TEST_F(PerfSlip, HelpNamesWhatATestHas) {
  const Ending help = run(real_tool("ib_send_lat", fabric_.environment()), {"-h"});
  EXPECT_EQ(help.status, 0);
  for (const char* has : {"  -s, --size=<bytes>", "  -H, --report-histogram", "--use-srq"}) {
    EXPECT_THAT(help.out, HasSubstr(has));
  }
  const std::size_t refused = help.out.find("Refused, since this program has no\n");
  ASSERT_NE(refused, std::string::npos);
  EXPECT_THAT(help.out.substr(refused), HasSubstr("  -R, --rdma_cm"));
  for (const char* lacks : {"--qp=", "--post_list", "--atomic_type"}) {
    EXPECT_THAT(help.out, ::testing::Not(HasSubstr(lacks)));
  }
}

TEST_F(PerfSlip, TheVersionIsThatOfTheExchange) {
  EXPECT_EQ(run(real_tool("ib_write_bw", fabric_.environment()), {"-V"}).out, "Version: 6.06\n");
}

TEST(PerfHelp, ListsTheCommandsOfTheGroup) {
  for (const char* const option : {"--help", "-h"}) {
    const Ending ending = run(real_tool("verbatim", {}), {"perf", option});
    EXPECT_EQ(ending.status, 0);
    EXPECT_EQ(ending.err, "");
    for (const char* const command :
         {"send-lat", "sim", "pattern", "coll", "floors", "scaling", "gate", "report"})
      EXPECT_THAT(ending.out, HasSubstr(std::string("  verbatim perf ") + command + " "));
    EXPECT_THAT(ending.out, Not(HasSubstr("pingpong")));
  }
  const std::string all = run(real_tool("verbatim", {}), {"--help"}).out;
  EXPECT_THAT(all, HasSubstr("  verbatim perf coll <name> [options]"));
  EXPECT_THAT(all, HasSubstr("  verbatim devices "));
}

}  // namespace
}  // namespace verbatim::tools
