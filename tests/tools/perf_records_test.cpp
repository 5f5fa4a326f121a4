// SPDX-License-Identifier: BSD-2-Clause
//
// What is measured, written and read back: the records of `verbatim perf floors`, and the gate on
// crafted ones, some of which a stranger wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/tools/perf_output.hpp"
#include "tests/tools/perf_pair.hpp"
#include "tests/tools/records.hpp"
#include "tests/tools/tool_process.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using Read = nlohmann::json;

const Program kTool = {VERBATIM_TOOL, "verbatim", {}};

Ending gate(std::vector<std::string> words) {
  words.insert(words.begin(), {"perf", "gate"});
  return run(kTool, words);
}

std::vector<Read> lines_of(const std::string& text) {
  std::vector<Read> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    all.push_back(Read::parse(line, nullptr, false));
    EXPECT_FALSE(all.back().is_discarded()) << line;
  }
  return all;
}

/// The fields of a line of CSV.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"')
        fields.back() += line[++i];
      else
        quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

TEST(PerfFloors, AreReadBackAsLinesAndAsCsv) {
  const TestFolder folder;
  const Ending ending = run(kTool, {"perf", "floors", "--quick", "--rounds", "2", "--jsonl",
                                    folder.path("f.jsonl"), "--csv", folder.path("f.csv")});
  ASSERT_EQ(ending.status, 0) << ending.err;
  EXPECT_EQ(ending.err, "") << "progress is for terminals";
  std::set<std::string> floors;
  const std::vector<Read> records = lines_of(folder.read("f.jsonl"));
  for (const Read& record : records) {
    EXPECT_EQ(record["schema"], "verbatim-record-1");
    for (const char* name : {"host", "kernel", "processor", "topology", "build", "started"}) {
      EXPECT_FALSE(record[name].get<std::string>().empty()) << name;
    }
    EXPECT_TRUE(record["noise"]["unreliable"].is_string());
    EXPECT_EQ(record["kind"], "floor");
    floors.insert(record["floor"].get<std::string>());
    EXPECT_THAT(ending.out, HasSubstr(record["name"].get<std::string>()));
    if (record.contains("missing")) continue;
    EXPECT_EQ(record["blocks"].size(), 2u) << record["name"];
    EXPECT_LE(record["min"].get<double>(), record["median"].get<double>());
    EXPECT_GT(record["min"].get<double>(), 0);
  }
  for (int number = 1; number <= 13; ++number) {
    EXPECT_TRUE(floors.contains("F" + std::to_string(number))) << number;
  }
  const Ending json = run(kTool, {"perf", "floors", "--quick", "--rounds", "1", "--json"});
  const Read object = Read::parse(json.out, nullptr, false);
  ASSERT_TRUE(object.is_object()) << json.out;
  EXPECT_EQ(object["format"], "verbatim-floors-1");
  EXPECT_EQ(object["records"].size(), records.size());
  std::istringstream csv(folder.read("f.csv"));
  std::string line;
  std::getline(csv, line);
  const std::size_t columns = fields_of(line).size();
  std::size_t rows = 0;
  for (; std::getline(csv, line); ++rows) EXPECT_EQ(fields_of(line).size(), columns) << line;
  EXPECT_EQ(rows, records.size());
  // And by the tool itself.
  const std::string file = folder.path("f.jsonl");
  const Ending same = gate({file, file, "--all"});
  EXPECT_EQ(same.status == 0 || same.status == 4, true) << same.out << same.err;
}

/// The form of a file, its values masked: names of members in their order.
std::string members_of(const std::string& line) {
  std::string all;
  const auto record = nlohmann::ordered_json::parse(line);
  for (const auto& [name, value] : record.items()) {
    all += (all.empty() ? "" : " ") + name;
  }
  return all;
}

TEST(PerfFloors, HaveTheFormThatIsDocumented) {
  const TestFolder folder;
  const std::string file = folder.path("f.jsonl");
  const Ending ending = run(kTool, {"perf", "floors", "--quick", "--rounds", "1", "--seconds", "5",
                                    "--jsonl", file, "--csv", "-"});
  ASSERT_EQ(ending.status, 0) << ending.err;
  EXPECT_EQ(ending.out.substr(0, ending.out.find('\n')),
            "schema,host,kernel,processor,topology,build,provider,started,seed,stolen,waited,"
            "floor_spread,unreliable,kind,name,floor,parameter,at,unit,median,min,max,mean,"
            "standard_error,spread,blocks,p50,p90,p99,p99.9,p99.99,reference,reference_median,"
            "ratio,cpu_ns,switches,system_calls,missing,row,sense,target,verdict");
  const std::string head =
      "schema host kernel processor topology build provider started seed noise kind name floor "
      "parameter at unit ";
  const std::string figures = "median min max mean standard_error spread blocks ";
  std::istringstream lines(folder.read("f.jsonl"));
  std::set<std::string> forms;
  for (std::string line; std::getline(lines, line);) {
    // Behind the others, of floors whose calls are alike, where the kernel lets them be counted.
    std::string form = members_of(line);
    constexpr std::string_view kCalls = " system_calls";
    if (form.ends_with(kCalls)) form.resize(form.size() - kCalls.size());
    forms.insert(form);
  }
  EXPECT_EQ(forms, (std::set<std::string>{
                       head + "missing", head + figures + "cpu_ns switches",
                       head + figures + "p50 p90 p99 p99.9 p99.99 histogram cpu_ns switches"}));
}

TEST(PerfFloors, AFileThatCannotBeWrittenIsOneLineBeforeAnythingIsMeasured) {
  for (const char* option : {"--jsonl", "--csv"}) {
    const Ending ending = run(kTool, {"perf", "floors", option, "/nowhere/f"});
    EXPECT_EQ(ending.status, 1);
    EXPECT_EQ(ending.out, "");
    EXPECT_EQ(ending.err, std::string("verbatim perf floors: cannot write '/nowhere/f': No such "
                                      "file or directory (") +
                              option + ")\n");
  }
  const Ending full = run(kTool, {"perf", "floors", "--quick", "--rounds", "1", "--seconds", "1",
                                  "--jsonl", "/dev/full"});
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write all of '/dev/full': No space left on device"));
}

TEST(PerfFloors, CtrlCPrintsWhatWasMeasured) {
  const TestFolder folder;
  Ending ending;
  // On a busy machine it takes longer until there is something to print.
  for (int wait_ms = 700; wait_ms < 20'000 && ending.out.find("F1 ") == std::string::npos;
       wait_ms *= 3) {
    ToolProcess process(kTool, {"perf", "floors", "--rounds", "10000", "--seconds", "3600",
                                "--jsonl", folder.path("f.jsonl")});
    EXPECT_TRUE(process.running_after(std::chrono::milliseconds(wait_ms)));
    process.signal(SIGINT);
    ending = process.finish();
    EXPECT_EQ(ending.status, 128 + SIGINT);
    EXPECT_EQ(ending.err, "");
  }
  EXPECT_THAT(ending.out, HasSubstr("interrupted after"));
  EXPECT_THAT(ending.out, HasSubstr("F1 "));
  EXPECT_FALSE(lines_of(folder.read("f.jsonl")).empty());
}

class PerfRecordsOf : public ::testing::TestWithParam<Words> {};

TEST_P(PerfRecordsOf, HaveBlocksAndPercentiles) {
  const PrivateFabric fabric;
  const Program tool = {VERBATIM_TOOL, "verbatim", fabric.environment()};
  const TestFolder folder;
  const Words words = joined({"perf"}, GetParam());
  const PerfEndings endings = play_our_server(
      tool, words, tool, joined(words, {"--jsonl", folder.path("f"), "--csv", folder.path("csv")}));
  expect_both_finished(endings);
  std::vector<Read> records = lines_of(folder.read("f"));
  const auto lines = static_cast<long>(records.size());
  // The floors of this host go behind them.
  EXPECT_EQ(std::erase_if(records, [](const Read& record) { return record["kind"] == "floor"; }),
            2u);
  const bool is_latency = GetParam().front().ends_with("-lat");
  ASSERT_EQ(records.size(), is_latency ? 1u : 2u) << "of a bandwidth the rate, too";
  for (const Read& record : records) {
    EXPECT_THAT(record["name"].get<std::string>(), HasSubstr(GetParam().front() + " RC"));
    EXPECT_EQ(record["provider"], "shm0");
    EXPECT_FALSE(record.contains("reference")) << "of two hosts";
    EXPECT_GE(record["blocks"].size(), 5u);
    EXPECT_LE(record["min"].get<double>(), record["median"].get<double>());
    EXPECT_TRUE(record["standard_error"].is_number());
    EXPECT_GT(record["cpu_ns"].get<double>(), 0);
    EXPECT_GE(record["switches"].get<double>(), 0);
    if (!is_latency) continue;
    double last = 0, samples = 0;
    for (const char* percentile : {"p50", "p90", "p99", "p99.9", "p99.99"}) {
      EXPECT_GE(record[percentile].get<double>(), last) << percentile;
      last = record[percentile].get<double>();
    }
    EXPECT_GT(record["p50"].get<double>(), 0);
    for (const Read& level : record["histogram"]) samples += level[1].get<double>();
    EXPECT_GE(samples, 999) << "outliers are kept";
  }
  const std::string csv = folder.read("csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + lines);
}

INSTANTIATE_TEST_SUITE_P(, PerfRecordsOf,
                         ::testing::Values(Words{"send-lat", "-n", "1000"},
                                           Words{"send-lat", "-D", "1", "-f", "0"},
                                           Words{"read-lat", "-n", "1000"},
                                           Words{"write-bw", "-n", "2000"},
                                           Words{"send-bw", "-D", "1", "-f", "0"}));

TEST(PerfRecords, AFileThatCannotBeWrittenIsOneLineBeforeAnybodyIsWaitedFor) {
  const Ending ending = run(kTool, {"perf", "send-lat", "--jsonl", "/nowhere/f"});
  EXPECT_EQ(ending.status, 1);
  EXPECT_EQ(ending.err, "cannot write '/nowhere/f': No such file or directory (--jsonl)\n");
}

TEST(PerfRecords, CountTheSystemCallsOfAMessageWhereThatIsAskedFor) {
  const PrivateFabric fabric;
  const Program tool = {VERBATIM_TOOL, "verbatim", fabric.environment()};
  const auto calls = [&](const Words& more) {
    const TestFolder folder;
    const Ending ending = run(tool, joined({"perf", "send-lat", "--both-ends", "--no-floors", "-n",
                                            "200", "--jsonl", folder.path("f")},
                                           more));
    EXPECT_TRUE(ending.status == 0 || ending.err.find("lets no system calls") != ending.err.npos)
        << ending.err;
    const std::vector<Read> records = lines_of(folder.read("f"));
    return records.empty() ? Read() : records[0];
  };
  const Read counted = calls({"--system_calls", "-e"});
  if (counted.is_null()) GTEST_SKIP() << "no syscall user dispatch here (Linux 5.11, x86-64)";
  EXPECT_GE(counted["system_calls"].get<double>(), 1) << "to sleep, at least";
  EXPECT_LT(counted["system_calls"].get<double>(), 50);
  EXPECT_THAT(counted["name"].get<std::string>(), HasSubstr(" counting system calls"));
  EXPECT_FALSE(calls({"-e"}).contains("system_calls")) << "which would take longer";
}

TEST(PerfRecords, GoToTheStandardOutputAlone) {
  const PrivateFabric fabric;
  const Program tool = {VERBATIM_TOOL, "verbatim", fabric.environment()};
  for (const Words& test : {Words{"send-lat", "-n", "50"}, Words{"write-bw", "-n", "50", "-b"}}) {
    const TestFolder folder;
    const Words words = joined(joined({"perf"}, test),
                               {"--both-ends", "--out_json_file", folder.path("j"), "--jsonl"});
    const Ending ending = run(tool, joined(words, {"-"}));
    EXPECT_EQ(ending.status, 0) << ending.err;
    EXPECT_FALSE(lines_of(ending.out).empty()) << "and each is a record";
    const Read file = Read::parse(folder.read("j"), nullptr, false);
    ASSERT_TRUE(file.is_object());
    EXPECT_EQ(file["results"].size(), 1u) << "other files are as ever";
  }
}

TEST(PerfRecords, OfRunsThatAreUnlikeAreNamedUnlike) {
  const PrivateFabric fabric;
  const Program tool = {VERBATIM_TOOL, "verbatim", fabric.environment()};
  std::set<std::string> names;
  const std::vector<Words> all = {{},
                                  {"-I", "64"},
                                  {"-m", "1024"},
                                  {"--mr_per_qp"},
                                  {"--no_lock"},
                                  {"--single-process"},
                                  {"--write_with_imm"},
                                  {"--write_with_imm", "--recv_post_list", "5"},
                                  {"--rate_limit", "1"},
                                  {"--rate_limit", "1", "--rate_units", "M"}};
  for (const Words& words : all) {
    const Words common = {"perf", "write-bw",    "-s",      "64", "-n",
                          "50",   "--both-ends", "--jsonl", "-"};
    const Ending ending = run(tool, joined(common, words));
    ASSERT_EQ(ending.status, 0) << ending.err;
    const std::vector<Read> records = lines_of(ending.out);
    ASSERT_FALSE(records.empty());
    EXPECT_TRUE(names.insert(records.front()["name"].get<std::string>()).second)
        << records.front()["name"];
  }
}

TEST(PerfRecords, TheTopologyIsTheMachinesAndNotThatOfABoundProcess) {
  const PrivateFabric fabric;
  const Program tool = {VERBATIM_TOOL, "verbatim", fabric.environment()};
  const Ending ending = run(
      tool, {"perf", "write-bw", "-n", "50", "--both-ends", "--pin_cores", "0", "--jsonl", "-"});
  ASSERT_EQ(ending.status, 0) << ending.err;
  const std::string topology = lines_of(ending.out).front()["topology"];
  EXPECT_EQ(std::stol(topology), sysconf(_SC_NPROCESSORS_ONLN)) << topology;
}

TEST(PerfRecords, OfSizesBeforeAFailureAreWritten) {
  const PrivateFabric fabric;
  const Program tool = {VERBATIM_TOOL, "verbatim", fabric.environment()};
  const TestFolder folder;
  const Words words = {"perf", "send-bw", "-a", "-n", "5000", "-p"};
  ToolProcess server(tool, joined(words, {"0"}));
  const auto port = listening_port(server);
  ASSERT_TRUE(port);
  ToolProcess client(tool, joined(words, {std::to_string(*port), "127.0.0.1", "--jsonl",
                                          folder.path("f"), "--out_json_file", folder.path("j")}));
  ASSERT_TRUE(client.wait_for_output("\n 65536 "));
  server.signal(SIGKILL);
  EXPECT_EQ(client.finish().status, 1);
  EXPECT_GE(lines_of(folder.read("f")).size(), 2u * 16) << "of 2 to 65536 bytes";
  EXPECT_GE(Read::parse(folder.read("j"), nullptr, false)["results"].size(), 16u);
}

TEST(PerfRecords, CtrlCPrintsAndWritesWhatWasMeasured) {
  const PrivateFabric fabric;
  const Program tool = {VERBATIM_TOOL, "verbatim", fabric.environment()};
  for (const char* test : {"send-lat", "write-bw"}) {
    const TestFolder folder;
    Ending ending;
    for (int wait_ms = 500; wait_ms < 20'000 && folder.read("f").empty(); wait_ms *= 3) {
      const Words words = {"perf", test, "-D", "600", "-f", "0", "--no-floors", "-p"};
      ToolProcess server(tool, joined(words, {"0"}));
      const auto port = listening_port(server);
      ASSERT_TRUE(port);
      ToolProcess client(
          tool, joined(words, {std::to_string(*port), "--jsonl", folder.path("f"), "127.0.0.1"}));
      EXPECT_TRUE(client.running_after(std::chrono::milliseconds(wait_ms)));
      client.signal(SIGINT);
      ending = client.finish();
      EXPECT_TRUE(ending.in_time);
      EXPECT_EQ(ending.signal, SIGINT) << ending.err;
      EXPECT_FALSE(server.finish().out.empty());
    }
    EXPECT_EQ(perf_rows(ending.out).size(), 1u) << ending.out;
    EXPECT_FALSE(lines_of(folder.read("f")).empty());
  }
}

TEST(PerfProgress, IsForTerminals) {
  if (access("/usr/bin/script", X_OK) != 0) GTEST_SKIP() << "script of bsdutils is not there";
  const std::string floors = VERBATIM_TOOL " perf floors --quick --rounds 1";
  const Ending ending = run({"/usr/bin/script", "script", {}}, {"-qec", floors, "/dev/null"});
  EXPECT_THAT(ending.out, HasSubstr("\r["));
  EXPECT_THAT(ending.out, HasSubstr(" %] "));
  const PrivateFabric fabric;
  const Program tool = {VERBATIM_TOOL, "verbatim", fabric.environment()};
  ToolProcess server(tool, {"perf", "send-lat", "-D", "3", "-f", "0", "-p", "0"});
  const auto port = listening_port(server);
  ASSERT_TRUE(port);
  const std::string client =
      VERBATIM_TOOL " perf send-lat -D 3 -f 0 127.0.0.1 -p " + std::to_string(*port);
  const Ending timed =
      run({"/usr/bin/script", "script", fabric.environment()}, {"-qec", client, "/dev/null"});
  EXPECT_THAT(timed.out, HasSubstr("send-lat, 2 bytes, 2 s"));
  EXPECT_EQ(server.finish().err.find("bytes, 2 s"), std::string::npos) << "not into a pipe";
  const std::string both = VERBATIM_TOOL " perf send-lat -D 3 -f 0 --both-ends";
  const Ending alone =
      run({"/usr/bin/script", "script", fabric.environment()}, {"-qec", both, "/dev/null"});
  std::size_t told = 0, at = 0;
  for (; (at = alone.out.find("2 bytes, ", at)) != std::string::npos; ++at) ++told;
  EXPECT_GE(told, 1u);
  EXPECT_LE(told, 3u) << "each half second from the second one on, and by one of the ends";
}

const std::vector<double> kBase = {100, 101, 99, 100, 102, 98, 100, 101};

TEST(PerfGate, FailsOnARegressionBeyondToleranceAndNoise) {
  const TestFolder folder;
  const std::string base = folder.write("base", record_line("latency", "send", 8, "ns", kBase) +
                                                    record_line("rate", "send", 8, "M/s", kBase));
  const auto compared = [&](double time, double rate, const std::string& tolerance) {
    std::vector<double> times, rates;
    for (const double value : kBase) {
      times.push_back(value * time);
      rates.push_back(value * rate);
    }
    const std::string fresh = folder.write("new", record_line("latency", "send", 8, "ns", times) +
                                                      record_line("rate", "send", 8, "M/s", rates));
    return gate({base, fresh, "--tolerance", tolerance});
  };
  EXPECT_EQ(compared(1, 1, "5%").status, 0);
  EXPECT_EQ(compared(1.04, 1, "5%").status, 0) << "within the tolerance";
  EXPECT_EQ(compared(0.5, 2, "5%").status, 0) << "better";
  const Ending slower = compared(1.2, 1, "5%");
  EXPECT_EQ(slower.status, 3);
  EXPECT_THAT(slower.out, HasSubstr("latency: send, 8"));
  EXPECT_THAT(slower.out, HasSubstr("+20.0 %"));
  EXPECT_EQ(compared(1, 0.8, "5").status, 3) << "of a rate less is worse";
  EXPECT_EQ(compared(1.2, 1, "25%").status, 0);
}

TEST(PerfGate, TakesNoiseForNoise) {
  const TestFolder folder;
  const std::string base =
      folder.write("base", record_line("latency", "send", 8, "ns", {50, 200, 90, 150, 80, 120}));
  const std::string fresh =
      folder.write("new", record_line("latency", "send", 8, "ns", {60, 210, 130, 100, 170, 125}));
  const Ending ending = gate({base, fresh, "--all"});
  EXPECT_EQ(ending.status, 0) << ending.out;
  EXPECT_THAT(ending.out, HasSubstr("same"));
}

TEST(PerfGate, FailsWhenTheNewRunLacksAFigure) {
  const TestFolder folder;
  const std::string one = record_line("latency", "send", 8, "ns", kBase);
  const std::string base = folder.write("base", one + record_line("rate", "send", 8, "M/s", kBase));
  const std::string fresh = folder.write(
      "new", one + record_line("rate", "send", 8, "M/s", {}, R"(,"missing":"no device")"));
  const Ending ending = gate({base, fresh});
  EXPECT_EQ(ending.status, 5);
  EXPECT_THAT(ending.out, HasSubstr("only in one of them: rate: send, 8 B (base)"));
  EXPECT_THAT(ending.out, HasSubstr("1 figures of the base are not in the new run"));
  EXPECT_EQ(gate({base, folder.write("new", one)}).status, 5);
  EXPECT_EQ(gate({base, fresh, "--allow-missing"}).status, 0);
  EXPECT_EQ(gate({fresh, base}).status, 0) << "more than the base is no loss";
  std::vector<double> twice;
  for (const double value : kBase) twice.push_back(2 * value);
  const std::string slow = folder.write("slow", record_line("latency", "send", 8, "ns", twice));
  EXPECT_EQ(gate({base, slow}).status, 3) << "which weighs more";
}

TEST(PerfGate, SaysThatItsOutputIsLostWhateverItsVerdict) {
  const TestFolder folder;
  const std::string base = folder.write("base", record_line("latency", "send", 8, "ns", kBase));
  std::vector<double> twice;
  for (const double value : kBase) twice.push_back(2 * value);
  const std::string slow = folder.write("slow", record_line("latency", "send", 8, "ns", twice));
  const auto full = [&](const std::string& fresh) {
    return run({"/bin/sh", "sh", {}},
               {"-c", std::string("exec '") + VERBATIM_TOOL + "' perf gate '" + base + "' '" +
                          fresh + "' >/dev/full"});
  };
  const char* const line = "verbatim: cannot write all of the output: No space left on device\n";
  const Ending good = full(base), bad = full(slow);
  EXPECT_EQ(good.status, 1);
  EXPECT_EQ(good.err, line);
  EXPECT_EQ(bad.status, 3) << "the verdict, which is all that is left of it";
  EXPECT_EQ(bad.err, line);
}

TEST(PerfGate, DoesNotJudgeAnUnreliableRun) {
  const TestFolder folder;
  const std::string base = folder.write("base", record_line("latency", "send", 8, "ns", kBase));
  std::vector<double> twice;
  for (const double value : kBase) twice.push_back(2 * value);
  const std::string fresh = folder.write(
      "new", record_line("latency", "send", 8, "ns", twice, R"(,"noise":{"stolen":0.25})"));
  const Ending ending = gate({base, fresh});
  EXPECT_EQ(ending.status, 4);
  EXPECT_THAT(ending.out, HasSubstr("25.0 % of the processors' time was stolen"));
}

TEST(PerfGate, OfAComparisonTheRecordSaysWhatIsBetter) {
  const TestFolder folder;
  const auto target = [](const char* better, const char* verdict) {
    return std::string(R"(,"target":{"row":"R5","sense":"at least","value":1,"better":")") +
           better + R"(","verdict":")" + verdict + R"("})";
  };
  std::vector<double> half;
  for (const double value : kBase) half.push_back(value / 2);
  const auto compared = [&](const char* better, const char* verdict) {
    const std::string more = target(better, verdict);
    return gate({folder.write("base", record_line("compare", "R5 rate", 0, "x", kBase, more)),
                 folder.write("new", record_line("compare", "R5 rate", 0, "x", half, more))})
        .status;
  };
  EXPECT_EQ(compared("more", "pass"), 3) << "half of a rate is worse";
  EXPECT_EQ(compared("less", "pass"), 0);
  EXPECT_EQ(compared("more", "disturbed"), 4) << "others had the cores: no ground for a claim";
}

TEST(PerfGate, NamesTheLineOfAFileThatIsWrong) {
  const TestFolder folder;
  const std::string good = record_line("latency", "send", 8, "ns", kBase);
  const std::string base = folder.write("base", good);
  const std::string deep = std::string(100'000, '[');
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"nonsense", "it is no JSON"},
      {deep, "it nests deeper than 16"},
      {"{\"a\":" + deep, "it nests deeper than 16"},
      {"[1,2]", "a record is a JSON object"},
      {"{}", "its schema is not verbatim-record-1"},
      {R"({"schema":7})", "\"schema\" is no text"},
      {R"({"schema":"verbatim-record-1","kind":"x"})", "\"name\" is missing"},
      {record_line("latency", "send", 8, "ns", {}), "\"blocks\" has no number"},
      {record_line("latency", "send", 8, "ns", {1, -2}), "\"blocks\" has a negative one"},
      {record_line("latency", "send", 8, "ns", {1}, R"(,"blocks":3)"), ""},
      {record_line("latency", "send", 8, "ns", {1}, R"(,"histogram":[[2,1],[1,1]])"), "rise"},
      {record_line("latency", std::string(5000, 'x'), 8, "ns", {1}), "\"name\" is too long"},
      {R"({"schema":"verbatim-record-1","kind":"k","name":"n","parameter":"size","at":1e300,)"
       R"("unit":"ns","blocks":[1]})",
       "out of range"},
      {record_line("latency", "send", 8, "ns", {1e16}), "out of range"},
      {std::string("\x00\xff\xfe", 3), "it is no JSON"},
  };
  for (const auto& [line, why] : wrong) {
    const std::string text = line.ends_with('\n') ? line : line + "\n";
    const std::string file = folder.write("new", good + "\n" + text + good);
    const Ending ending = gate({base, file});
    if (why.empty() && ending.status == 0) continue;  // which of two members counts is not said
    EXPECT_EQ(ending.status, 1) << line.substr(0, 80);
    EXPECT_EQ(own_lines(ending.err), 1) << ending.err;
    EXPECT_THAT(ending.err, HasSubstr(file + ":3: ")) << line.substr(0, 80);
    EXPECT_THAT(ending.err, HasSubstr(why));
  }
}

TEST(PerfGate, ARunWithNoneOfTheFiguresLacksThemAll) {
  const TestFolder folder;
  const std::string one = folder.write("one", record_line("latency", "send", 8, "ns", kBase));
  const std::string other = folder.write("other", record_line("latency", "read", 8, "ns", kBase));
  const Ending lost = gate({one, other});
  EXPECT_EQ(lost.status, 5);
  EXPECT_EQ(lost.err, "");
  EXPECT_THAT(lost.out, HasSubstr("only in one of them: latency: send, 8 B (base)"));
  EXPECT_THAT(lost.out, HasSubstr("0 figures in both, 0 judged"));
  EXPECT_EQ(gate({one, other, "--allow-missing"}).status, 4) << "nothing could be judged";
}

TEST(PerfGate, SaysWhatElseIsWrong) {
  const TestFolder folder;
  const std::string one = folder.write("one", record_line("latency", "send", 8, "ns", kBase));
  const std::string empty = folder.write("empty", "\n");
  const auto line_of = [&](const std::vector<std::string>& words) {
    const Ending ending = gate(words);
    EXPECT_EQ(ending.status, 1);
    return ending.err;
  };
  EXPECT_THAT(line_of({one, empty}), HasSubstr("has no record"));
  EXPECT_THAT(line_of({one, folder.path("none")}), HasSubstr("none: No such file or directory"));
  EXPECT_THAT(line_of({one, folder.path("")}), HasSubstr("Is a directory"));
  EXPECT_THAT(line_of({one, "/dev/zero"}), HasSubstr("is larger than 64 MiB"));
  EXPECT_THAT(line_of({one}), HasSubstr("give two files"));
  EXPECT_THAT(line_of({one, one, "--tolerance", "much"}), HasSubstr("tolerance 'much'"));
  EXPECT_THAT(line_of({one, one, "--tolerance"}), HasSubstr("needs a value"));
  EXPECT_THAT(line_of({one, one, "--frobnicate"}), HasSubstr("unknown option --frobnicate"));
}

TEST(PerfGate, ControlCharactersOfAFileDoNotReachTheTerminal) {
  const TestFolder folder;
  const std::string line = record_line("latency", "\\u001b[31mred\\u0007", 8, "ns", kBase);
  const std::string file = folder.write("f", line);
  const Ending ending = gate({file, file, "--all"});
  EXPECT_EQ(ending.status, 0);
  EXPECT_EQ(ending.out.find('\033'), std::string::npos);
  EXPECT_THAT(ending.out, HasSubstr("?[31mred?"));
}

}  // namespace
}  // namespace verbatim::tools
