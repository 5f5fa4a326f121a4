// SPDX-License-Identifier: BSD-2-Clause
// The table of `verbatim perf`'s options against the parser, option by option and test by test: each
// is taken, is of other tests, or is refused with its reason, as the table says.
#include "perf/cli/perf_option_table.hpp"
#include "perf/cli/perf_option_values.hpp"

#include <getopt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "perf/cli/failure.hpp"
#include "perf/cli/perf_options.hpp"

namespace verbatim::cli {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

std::vector<PerfTest> all_tests() {
  std::vector<PerfTest> tests;
  for (const PerfVerb verb :
       {PerfVerb::kSend, PerfVerb::kWrite, PerfVerb::kRead, PerfVerb::kAtomic}) {
    for (const PerfMeasure measure : {PerfMeasure::kLatency, PerfMeasure::kBandwidth}) {
      tests.push_back({verb, measure});
    }
  }
  return tests;
}

/// What else an option wants on its line, and its value.
struct Use {
  std::string value = {};
  Words beside = {};
};

/// One line for each option that is taken: a new one is to be added here, too.
const std::map<std::string, Use>& uses() {
  static const std::map<std::string, Use> all = {
      {"all", {}},
      {"atomic_type", {"CMP_AND_SWAP"}},
      {"bidirectional", {}},
      {"connection", {"XRC"}},
      {"report-cycles", {}},
      {"ib-dev", {"shm0"}},
      {"duration", {"3"}},
      {"events", {}},
      {"margin", {"1", {"-D", "4"}}},
      {"CPU-freq", {}},
      {"help", {}},
      {"report-histogram", {}},
      {"ib-port", {"1"}},
      {"inline_size", {"64"}},
      {"post_list", {"10"}},
      {"mtu", {"1024"}},
      {"iters", {"10"}},
      {"noPeak", {}},
      {"outs", {"4"}},
      {"port", {"18516"}},
      {"qp", {"2"}},
      {"cq-mod", {"10"}},
      {"rx-depth", {"64"}},
      {"size", {"64K"}},
      {"sl", {"3"}},
      {"tx-depth", {"64"}},
      {"qp-timeout", {"18"}},
      {"report-unsorted", {}},
      {"version", {}},
      {"limit_bw", {"1.5"}},
      {"gid-index", {"0"}},
      {"vector", {"1", {"-e"}}},
      {"limit_msgrate", {"0.5"}},
      {"use-srq", {}},
      {"report_gbits", {}},
      {"report-both", {"", {"-b"}}},
      {"use_old_post_send", {}},
      {"out_json", {}},
      {"csv", {"x.csv"}},
      {"jsonl", {"x.jsonl"}},
      {"out_json_file", {"x.json"}},
      {"output", {}},
      {"retry_count", {"3"}},
      {"tclass", {"106"}},
      {"pkey_index", {"1"}},
      {"latency_gap", {"5"}},
      {"odp", {}},
      {"perform_warm_up", {}},
      {"mcg", {}},
      {"MGID", {"255:1:0:0:0:2:201:133:0:0:0:0:0:0:0:9"}},
      {"dualport", {}},
      {"report-counters", {"counters/port_xmit_data,hw_counters/x"}},
      {"floors", {}},
      {"no-floors", {}},
      {"recv_post_list", {"10"}},
      {"reversed", {}},
      {"run_infinitely", {}},
      {"send_with_imm", {}},
      {"write_with_imm", {}},
      {"rate_limit", {"2.5"}},
      {"rate_units", {"M", {"--rate_limit=3"}}},
      {"rate_limit_type", {"SW", {"--rate_limit=3"}}},
      {"burst_size", {"16", {"--rate_limit=3"}}},
      {"use_hugepages", {}},
      {"mr_per_qp", {}},
      {"use-null-mr", {}},
      {"no_lock", {}},
      {"mmap", {"/dev/zero"}},
      {"mmap-offset", {"4096", {"--mmap=/dev/zero"}}},
      {"payload_file_path", {"payload.txt"}},
      {"data_validation", {}},
      {"pin_cores", {"0,2-5"}},
      {"numa_node", {"0"}},
      {"disable_numa", {}},
      {"cpu_util", {"", {"-D", "3"}}},
      {"system_calls", {"", {"--csv=x.csv"}}},
      {"wait_destroy", {"1"}},
      {"dlid", {"7"}},
      {"dont_xchg_versions", {}},
      {"force-link", {"IB"}},
      {"ipv6", {}},
      {"source_ip", {"127.0.0.1"}},
      {"bind_source_ip", {"127.0.0.1"}},
      {"disable_pcie_relaxed", {}},
      {"inline_recv", {"0"}},
      {"both-ends", {}},
      {"single-process", {}}};
  return all;
}

Use use_of(const PerfOption& option, PerfTest test) {
  const std::string name = option.name;
  Use use = uses().at(name);
  if (name == "output") use.value = test.latency() ? "latency" : "bandwidth";
  // A group that is named is one of bandwidth, and lists of receives are of what is received.
  if (name == "MGID") use.beside = {"-g"};
  return use;
}

/// What the parser says of a command line: its line of Failure, or nothing.
struct Verdict {
  std::string line;
  std::optional<int> ends;  // the exit status when there is nothing to run
};

Verdict parse(PerfTest test, Words words) {
  words.insert(words.begin(), "perf");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  optind = 0;
  PerfOptions options(test);
  Verdict verdict;
  ::testing::internal::CaptureStdout();
  try {
    verdict.ends =
        parse_perf(Calling::kClassicName, static_cast<int>(words.size()), argv.data(), &options);
  } catch (const Failure& failure) {
    verdict.line = failure.line;
  }
  ::testing::internal::GetCapturedStdout();
  return verdict;
}

std::string spelt(const PerfOption& option, const std::string& value) {
  std::string word = std::string("--") + option.name;
  if (option.value != nullptr) word += "=" + value;
  return word;
}

/// Contradictions of a single option with what a test is.
bool contradicts(const PerfOption& option, PerfTest test) {
  const std::string name = option.name;
  return (name == "recv_post_list" && test.verb != PerfVerb::kSend) ||
         (name == "MGID" && test.latency());
}

TEST(PerfOptionTable, IsWhatTheParserTakesAndRefuses) {
  for (const PerfTest test : all_tests()) {
    for (const PerfOption& option : perf_options()) {
      SCOPED_TRACE(test_name(test) + " --" + option.name);
      if (option.refused) {
        const Verdict verdict = parse(test, {spelt(option, "1")});
        EXPECT_THAT(verdict.line, HasSubstr("is refused: this program has no"));
        EXPECT_THAT(verdict.line, HasSubstr(option.help));
        continue;
      }
      ASSERT_TRUE(uses().contains(option.name)) << "an option that this test does not know";
      const Use use = use_of(option, test);
      Words words = {spelt(option, use.value)};
      const bool has = (option.tests & perf_option_bit(test)) != 0;
      if (has) words.insert(words.end(), use.beside.begin(), use.beside.end());
      const Verdict verdict = parse(test, words);
      const std::string name = option.name;
      if (!has) {
        EXPECT_THAT(verdict.line, HasSubstr("is no option of " + test_name(test)));
      } else if (contradicts(option, test)) {
        EXPECT_NE(verdict.line, "");
      } else {
        EXPECT_EQ(verdict.line, "");
        EXPECT_EQ(verdict.ends.has_value(), name == "help" || name == "version");
      }
    }
  }
}

TEST(PerfOptionTable, NamesEachOptionOnceAndSaysWhatItDoes) {
  std::set<std::string> names;
  std::map<int, std::string> letters;
  for (const PerfOption& option : perf_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_NE(option.help, nullptr) << option.name;
    EXPECT_GT(std::string(option.help).size(), 8u) << option.name;
    EXPECT_NE(option.tests, 0u) << option.name;
    if (option.id < kUseSrq) {
      EXPECT_TRUE(letters.emplace(option.id, option.name).second) << option.name;
    }
  }
}

struct Clash {
  PerfTest test;
  Words words;
  std::string says;
};

TEST(PerfOptionTable, IsHeldTogetherByRulesThatNameTheOptions) {
  const PerfTest send{PerfVerb::kSend, PerfMeasure::kBandwidth};
  const PerfTest write{PerfVerb::kWrite, PerfMeasure::kBandwidth};
  const std::vector<Clash> all = {
      {send, {"-g", "-q", "2"}, "leave out -q and -b, or -g"},
      {send, {"-M", "255:1:0:0:0:2:201:133:0:0:0:0:0:0:0:9"}, "give -g too (-M)"},
      {send, {"-g", "-M", "255:1"}, "is not 16 numbers from 0 to 255"},
      {send, {"-g", "-M", "254:1:0:0:0:2:201:133:0:0:0:0:0:0:0:9"}, "is no multicast GID"},
      {send, {"--rate_limit=0"}, "not a number above 0 (--rate_limit)"},
      {send, {"--rate_limit=fast"}, "not a number above 0 (--rate_limit)"},
      {send, {"--rate_units=p"}, "--rate_units is of a limited rate: give --rate_limit too"},
      {send, {"--rate_limit=1", "--rate_units=k"}, "none of M, g, p"},
      {send, {"--rate_limit=1", "--rate_limit_type=HW"}, "take SW (--rate_limit_type)"},
      {send, {"--rate_limit=1", "--rate_limit_type=slow"}, "none of HW, SW, PP"},
      {send, {"--rate_limit=1", "-b"}, "leave out -b, or --rate_limit"},
      {send, {"--burst_size=3"}, "give --rate_limit too"},
      {send, {"--recv_post_list=3"}, "no multiple of a list of 3 receives"},
      {send, {"--recv_post_list=8", "-r", "4"}, "than each queue pair has of 4"},
      {write, {"--recv_post_list=2"}, "write-bw posts no receives"},
      {send, {"--run_infinitely", "-b"}, "leave out -b"},
      {write, {"--run_infinitely", "-a"}, "-D runs one size"},
      {write, {"--cpu_util"}, "--cpu_util is of -D"},
      {write, {"--system_calls"}, "--system_calls is for records: give --jsonl or --csv too"},
      {write, {"--system_calls", "--csv=x", "--single-process"}, "leave out --single-process"},
      {write, {"--write_with_imm", "--perform_warm_up"}, "leave out --perform_warm_up"},
      {write, {"--mmap=x", "--use_hugepages"}, "leave out --use_hugepages or --mmap"},
      {write, {"--mmap-offset=1"}, "give --mmap too"},
      {write, {"--use-null-mr", "--mr_per_qp"}, "leave out --mr_per_qp or --use-null-mr"},
      {write, {"--numa_node=0", "--pin_cores=0"}, "leave out --numa_node or --pin_cores"},
      {write, {"--pin_cores=5-2"}, "is no list of cores below 1024"},
      {write, {"--pin_cores=2000"}, "is no list of cores below 1024"},
      {write, {"--pin_cores=0,,1"}, "is no list of cores below 1024"},
      {write, {"--pin_cores=0,1,"}, "is no list of cores below 1024"},
      {write, {"--both-ends", "--pin_cores=0-2"}, "name two, the server's first (--pin_cores)"},
      {write, {"--both-ends", "--mmap=x"}, "leave out --mmap, or --both-ends"},
      {write, {"--single-process", "--mmap=x"}, "leave out --mmap, or --both-ends"},
      {write, {"--jsonl=-", "--csv=-"}, "one of --jsonl and --csv can have the standard output"},
      {write, {"--data_validation", "-a"}, "leave out -a and -D"},
      {write, {"--data_validation", "--use-null-mr"}, "leave out --use-null-mr"},
      {write, {"-W", "../../x"}, "is the name of no counter (-W)"},
      {write, {"-W", "/etc/passwd"}, "is the name of no counter (-W)"},
      {write, {"-W", ""}, "no counters are named (-W)"},
      {write, {"--force-link=token-ring"}, "none of IB, Ethernet"},
      {write, {"--source_ip="}, "is no address of this host"},
      {write, {"--both-ends", "host"}, "'host' is too much: both ends are started here"},
      {write, {"--both-ends", "-p", "18600"}, "leave out -p and --source_ip"},
      {write, {"--single-process", "host"}, "'host' is too much"},
      {write, {"--dlid=0"}, "from 1 to 65535 (--dlid)"},
      {send, {"--inline_recv=64"}, "receives inline are not in verbs"},
  };
  for (const Clash& clash : all) {
    EXPECT_THAT(parse(clash.test, clash.words).line, HasSubstr(clash.says))
        << ::testing::PrintToString(clash.words);
  }
}

TEST(PerfCores, KeepTheirOrder) {
  EXPECT_EQ(perf_cores("5,2"), (std::vector<int>{5, 2}));
  EXPECT_EQ(perf_cores("7,0-2,4"), (std::vector<int>{7, 0, 1, 2, 4}));
}

}  // namespace
}  // namespace verbatim::cli
