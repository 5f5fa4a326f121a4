// SPDX-License-Identifier: BSD-2-Clause
// The main job as a user runs it: its JSON has the promised shape, it keeps its time bound, and
// however it ends, no process and no file of it stays. The program is named by
// VERBATIM_PERF_PROGRAM (a compile definition).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "perf/support/process.hpp"
#include "perf/support/scratch_folder.hpp"

namespace verbatim::perf {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
constexpr auto kPatience = std::chrono::seconds(60);

struct Outcome {
  int status;
  std::string output;
};

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// Its private folder is made below `runtime`, so what it leaves behind can be seen.
Child start(const char* program, std::vector<std::string> arguments, const ScratchFolder& runtime,
            int output) {
  arguments.insert(arguments.begin(), program);
  SpawnOptions options;
  options.environment = {"XDG_RUNTIME_DIR=" + runtime.path()};
  options.stdout_fd = options.stderr_fd = output;
  return Child(arguments, options);
}

Outcome run(const std::vector<std::string>& arguments, const ScratchFolder& runtime,
            const char* program = VERBATIM_PERF_PROGRAM) {
  auto [output, end] = pipe_pair();
  Child child = start(program, arguments, runtime, end.get());
  end.reset();
  std::string text = read_to_end(output.get());
  return {child.wait(), text};
}

bool is_empty(const ScratchFolder& folder) { return std::filesystem::is_empty(folder.path()); }

template <class Condition>
bool becomes_true(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string id = std::to_string(pid);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

Fd watch(pid_t pid) { return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

bool ends(const Fd& process) {
  pollfd watched = {process.get(), POLLIN, 0};
  return poll(&watched, 1, 60'000) == 1;
}

void expect_summary(const Json& summary) {
  for (const char* name : {"median", "min", "max", "spread"}) {
    ASSERT_TRUE(summary.contains(name)) << summary;
    EXPECT_TRUE(summary[name].is_number()) << name << " in " << summary;
  }
  EXPECT_GE(summary["blocks"].get<int>(), 1);
  EXPECT_LE(summary["min"].get<double>(), summary["median"].get<double>());
  EXPECT_LE(summary["median"].get<double>(), summary["max"].get<double>());
}

void expect_figure(const Json& figure) {
  ASSERT_TRUE(figure["name"].is_string());
  ASSERT_TRUE(figure["size"].is_number_unsigned());
  const std::set<std::string> sections = {"floor", "latency", "rate", "bandwidth", "mpi"};
  const std::set<std::string> units = {"ns", "million/s", "GB/s"};
  EXPECT_TRUE(sections.contains(figure["section"])) << figure;
  EXPECT_TRUE(units.contains(figure["unit"])) << figure;
  if (!figure["available"].get<bool>()) return;
  expect_summary(figure["value"]);
  EXPECT_GT(figure["value"]["min"].get<double>(), 0) << figure["name"];
  if (figure["section"] == "latency") {
    EXPECT_LE(figure["p50"].get<double>(), figure["p99"].get<double>());
  }
  if (figure.contains("floor")) expect_summary(figure["ratio"]);
}

Json parse(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  Json json = Json::parse(outcome.output, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << outcome.output;
  return json;
}

TEST(Run, FloorsAloneHaveThePromisedShape) {
  const ScratchFolder runtime;
  const Json json = parse(run({"--floors", "--quick", "--json"}, runtime));
  EXPECT_EQ(json["format"], "verbatim-perf-1");
  EXPECT_TRUE(json["cores"]["near"].is_number_integer());
  EXPECT_TRUE(json["cores"]["distinct"].is_boolean());
  std::set<std::string> names;
  for (const Json& figure : json["figures"]) {
    expect_figure(figure);
    EXPECT_EQ(figure["section"], "floor");
    names.insert(figure["name"].get<std::string>());
  }
  for (const char* name : {"f1 tight", "f1 pause", "f1 rmw", "f1 lfence", "f1 read-only tight",
                           "train mapped write", "train cma read", "memcpy one core"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_TRUE(is_empty(runtime));
}

TEST(Run, QuickMeasuresEveryOperationBesideItsFloor) {
  const ScratchFolder runtime;
  const ScratchFolder records;
  const std::string file = records.path() + "/records";
  const Json json = parse(run({"--quick", "--json", "--jsonl", file}, runtime));
  std::set<std::string> seen;
  for (const Json& figure : json["figures"]) {
    expect_figure(figure);
    if (figure["section"] == "floor") continue;
    if (figure["section"] == "mpi") {
      EXPECT_TRUE(figure["available"].get<bool>()) << figure;
      EXPECT_TRUE(figure.contains("ratio")) << "no verbs beside " << figure;
      seen.insert("mpi " + figure["memory"].get<std::string>() + " " +
                  figure["unit"].get<std::string>());
      continue;
    }
    seen.insert(figure["section"].get<std::string>() + " " +
                figure["operation"].get<std::string>() + " " + figure["memory"].get<std::string>());
  }
  for (const char* memory : {"mapped", "malloc"}) {
    for (const char* section : {"latency", "rate", "bandwidth"}) {
      for (const char* operation : {"send", "write", "read"}) {
        EXPECT_TRUE(seen.contains(std::string(section) + " " + operation + " " + memory))
            << section << " " << operation << " " << memory;
      }
    }
    EXPECT_TRUE(seen.contains(std::string("mpi ") + memory + " ns"));
    EXPECT_TRUE(seen.contains(std::string("latency fetch-add ") + memory));
    EXPECT_TRUE(seen.contains(std::string("latency cmp-swap ") + memory));
  }
  EXPECT_TRUE(seen.contains("mpi malloc million/s"));
  EXPECT_LT(json["seconds"].get<double>(), 45)
      << "a quick look takes seconds, also on a busy machine";
  EXPECT_TRUE(is_empty(runtime));
  // Each figure of the tables is a record too, with the ratio to its floor.
  std::ifstream lines(file);
  std::set<std::string> kinds;
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line);
    EXPECT_EQ(record["schema"], "verbatim-record-1");
    kinds.insert(record["kind"].get<std::string>());
    if (record["name"] == "send mapped" && record["kind"] == "latency" && record["at"] == 8) {
      EXPECT_EQ(record["reference"]["name"], "cache line from core to core");
      EXPECT_GT(record["reference"]["ratio"].get<double>(), 0);
      EXPECT_TRUE(record["p99.99"].is_number());
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"floor", "latency", "rate", "bandwidth", "mpi"}));
}

TEST(Run, ComparesWaysToWaitInOneRunByTimeProcessorTimeSwitchesAndSystemCalls) {
  const ScratchFolder runtime;
  const ScratchFolder records;
  const std::string file = records.path() + "/records";
  const Outcome outcome =
      run({"--quick", "--sizes", "8", "--rounds", "1", "--jsonl", file}, runtime);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const std::size_t table = outcome.output.find("\nWays to wait: ");
  ASSERT_NE(table, std::string::npos) << outcome.output;
  std::map<std::string, Json> waits;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line);
    if (record["kind"] == "latency") waits[record["name"].get<std::string>()] = record;
  }
  const std::pair<const char*, const char*> ways[] = {
      {"spin", "send mapped"},
      {"yield", "send mapped yielding"},
      {"event", "send mapped RC events"},
      {"adaptive", "send mapped RC events adaptive"}};
  std::map<std::string, double> calls;
  for (const auto& [way, name] : ways) {
    EXPECT_NE(outcome.output.find(std::string("\n") + way + " ", table), std::string::npos) << way;
    ASSERT_TRUE(waits.contains(name)) << name;
    EXPECT_GT(waits[name]["cpu_ns"].get<double>(), 0) << name;
    EXPECT_GE(waits[name]["switches"].get<double>(), 0) << name;
    if (waits[name].contains("system_calls"))
      calls[way] = waits[name]["system_calls"].get<double>();
  }
  if (calls.empty()) GTEST_SKIP() << "no syscall user dispatch here (Linux 5.11, x86-64)";
  EXPECT_GT(calls["event"], 1) << "to sleep, and to wake";
  EXPECT_GT(calls["yield"], 0);
  EXPECT_LT(calls["spin"], 0.5 * calls["event"]);
  // One copy by the kernel, and what comes with waiting for a core once in a while.
  const double read = waits["read malloc"]["system_calls"].get<double>();
  EXPECT_GE(read, 1);
  EXPECT_LT(read, 1.5);
}

TEST(Run, TablesNameTheFloorAndAreWithoutTerminalCodes) {
  const ScratchFolder runtime;
  const Outcome outcome = run({"--floors", "--quick"}, runtime);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("<- F1"));
  EXPECT_EQ(outcome.output.find('\033'), std::string::npos) << "progress belongs on terminals only";
  EXPECT_EQ(outcome.output.find('\r'), std::string::npos);
}

/// The status of a program whose output is lost.
int status_without_output(std::vector<std::string> arguments, const ScratchFolder& runtime,
                          const char* program = VERBATIM_PERF_PROGRAM) {
  const Fd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  const int ended = start(program, std::move(arguments), runtime, full.get()).wait();
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

TEST(Run, LostOutputIsAFailure) {
  const ScratchFolder runtime;
  for (const std::vector<std::string>& form : {std::vector<std::string>{}, {"--json"}}) {
    std::vector<std::string> words = {"--floors", "--quick", "--rounds", "1"};
    words.insert(words.end(), form.begin(), form.end());
    EXPECT_EQ(status_without_output(words, runtime), 1);
    words = {"--rows", "R14", "--quick", "--rounds", "1"};
    words.insert(words.end(), form.begin(), form.end());
    EXPECT_EQ(status_without_output(words, runtime, VERBATIM_COMPARE_PROGRAM), 1);
  }
}

TEST(Run, AWrongArgumentIsNamedAndNothingStarts) {
  const ScratchFolder runtime;
  const Outcome outcome = run({"--sizes", "banana"}, runtime);
  EXPECT_EQ(WEXITSTATUS(outcome.status), 2);
  EXPECT_THAT(outcome.output, HasSubstr("banana"));
}

class LongRun : public ::testing::Test {
 protected:
  void SetUp() override {
    auto [output, end] = pipe_pair();
    output_ = std::move(output);
    child_ = start(VERBATIM_PERF_PROGRAM, {"--rounds", "10000", "--seconds", "3600"}, runtime_,
                   end.get());
    // Both ends are there and measure: the library has made its files.
    ASSERT_TRUE(becomes_true([&] { return children_of(child_.pid()).size() == 2; }));
    ASSERT_TRUE(becomes_true([&] { return !is_empty(runtime_); }));
    for (const pid_t pid : children_of(child_.pid())) {
      ends_.push_back(pid);
      watched_.push_back(watch(pid));
    }
  }

  ScratchFolder runtime_;
  Fd output_;
  Child child_;
  std::vector<pid_t> ends_;
  std::vector<Fd> watched_;
};

TEST_F(LongRun, CtrlCEndsBothProcessesAndRemovesTheFolder) {
  // As a terminal does it: to all of them.
  for (const pid_t pid : ends_) kill(pid, SIGINT);
  kill(child_.pid(), SIGINT);
  const int status = child_.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  for (const Fd& process : watched_) EXPECT_TRUE(ends(process));
  EXPECT_TRUE(is_empty(runtime_));
  const std::string output = read_to_end(output_.get());
  EXPECT_EQ(output.find("verbatim_perf:"), std::string::npos) << "no complaint after Ctrl-C";
  if (!output.empty()) {
    EXPECT_THAT(output, HasSubstr("interrupted after"));
  }
}

TEST_F(LongRun, AnEndThatDiesEndsTheRunWithTheReason) {
  kill(ends_[1], SIGKILL);
  const int status = child_.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  for (const Fd& process : watched_) EXPECT_TRUE(ends(process));
  EXPECT_TRUE(is_empty(runtime_));
  EXPECT_THAT(read_to_end(output_.get()), HasSubstr("process"));
}

TEST_F(LongRun, TheEndsDoNotOutliveAKilledSupervisor) {
  kill(child_.pid(), SIGKILL);
  child_.wait();
  for (const Fd& process : watched_) EXPECT_TRUE(ends(process));
}

TEST(Compare, ItsJsonNamesEveryRowThatNeedsNoOtherLibrary) {
  const ScratchFolder runtime;
  const Json json =
      parse(run({"--rows", "R8,R10,R13,memory,alloc", "--quick", "--rounds", "1", "--json"},
                runtime, VERBATIM_COMPARE_PROGRAM));
  EXPECT_EQ(json["format"], "verbatim-compare-1");
  std::set<std::string> rows;
  for (const Json& row : json["rows"]) {
    rows.insert(row["row"].get<std::string>());
    EXPECT_TRUE(row["figure"].is_string());
    EXPECT_TRUE(row["median"].is_number()) << row;
    EXPECT_EQ(row["missing"], "") << row;
    const std::string verdict = row["verdict"];
    EXPECT_TRUE(verdict == "pass" || verdict == "short" || verdict == "disturbed" ||
                verdict == "shown")
        << row;
    EXPECT_TRUE(row.contains("target") || verdict == "shown") << row;
    EXPECT_TRUE(row["spread"].is_number()) << row;
  }
  EXPECT_EQ(rows, (std::set<std::string>{"R8", "R10", "R13", "R14", "R16", "alloc", "memory"}));
  std::size_t counted = 0;
  for (const auto& [verdict, figures] : json["summary"].items())
    counted += figures.get<std::size_t>();
  EXPECT_EQ(counted, json["rows"].size());
  EXPECT_TRUE(is_empty(runtime));
}

TEST(Compare, ItsTableEndsWithASummary) {
  const ScratchFolder runtime;
  const Outcome outcome =
      run({"--rows", "R18,R14", "--quick", "--rounds", "1"}, runtime, VERBATIM_COMPARE_PROGRAM);
  EXPECT_EQ(outcome.status, 0);
  const std::string& text = outcome.output;
  // In the order of the numbers, whatever was asked for first.
  EXPECT_LT(text.find("\nR14 "), text.find("\nR18 "));
  EXPECT_LT(text.find("\nR18 "), text.find("\nverdict "));
  EXPECT_THAT(text, ::testing::ContainsRegex("\nR18 .*<= 20.00 .* us .* shown"));
  EXPECT_THAT(text.substr(text.find("\nverdict ")), ::testing::ContainsRegex("shown +1  R18\n"));
}

TEST(Compare, ManyQueuePairsAndOneProcessorAreJudgedInEachWayThatTheTargetsName) {
  const ScratchFolder runtime;
  const Json json = parse(run({"--rows", "R17,R18", "--quick", "--rounds", "1", "--json"}, runtime,
                              VERBATIM_COMPARE_PROGRAM));
  std::vector<std::string> figures;
  for (const Json& row : json["rows"]) {
    figures.push_back(row["figure"]);
    if (row["missing"] == "there is one processor") continue;
    EXPECT_GT(row["median"].get<double>(), 0) << row;
  }
  EXPECT_THAT(figures,
              ::testing::ElementsAre(
                  HasSubstr("receives of their own"), HasSubstr("shared receives"),
                  HasSubstr("datagrams from as many"), HasSubstr("from one queue pair to 1000"),
                  HasSubstr("both polling on one processor"), HasSubstr("each with a processor")));
}

TEST(Compare, ARowThatThereIsNotIsNamed) {
  const ScratchFolder runtime;
  const Outcome outcome = run({"--rows", "R1,R99"}, runtime, VERBATIM_COMPARE_PROGRAM);
  EXPECT_EQ(WEXITSTATUS(outcome.status), 2);
  EXPECT_THAT(outcome.output, HasSubstr("there is no row 'R99' (--rows)"));
  const Outcome file =
      run({"--rows", "R14", "--jsonl", "/nowhere/f"}, runtime, VERBATIM_COMPARE_PROGRAM);
  EXPECT_EQ(WEXITSTATUS(file.status), 1);
  EXPECT_THAT(file.output, HasSubstr("cannot write '/nowhere/f'"));
}

TEST(Compare, ItsRecordsAreReadByTheGateAndTheReport) {
  const ScratchFolder runtime;
  const ScratchFolder files;
  const std::string file = files.path() + "/records", table = files.path() + "/csv";
  ASSERT_EQ(run({"--rows", "R8,R14", "--quick", "--rounds", "1", "--jsonl", file, "--csv", table},
                runtime, VERBATIM_COMPARE_PROGRAM)
                .status,
            0);
  std::ifstream lines(file);
  std::size_t records = 0;
  for (std::string line; std::getline(lines, line); ++records) {
    const Json record = Json::parse(line);
    EXPECT_EQ(record["schema"], "verbatim-record-1");
    EXPECT_EQ(record["kind"], "compare");
    EXPECT_EQ(record["provider"], "shm");
    const Json& target = record["target"];
    EXPECT_TRUE(target["row"] == "R8" || target["row"] == "R14") << record;
    EXPECT_TRUE(record["name"].get<std::string>().starts_with(target["row"].get<std::string>()));
    EXPECT_EQ(target["sense"], "at most");
    EXPECT_EQ(target["better"], "less");
    EXPECT_TRUE(target["value"].is_number());
    EXPECT_GT(record["median"].get<double>(), 0);
    const bool less = record["median"].get<double>() <= target["value"].get<double>();
    EXPECT_TRUE(target["verdict"] == (less ? "pass" : "short") || target["verdict"] == "disturbed");
  }
  EXPECT_EQ(records, 5u);
  std::ifstream csv(table);
  std::string heading;
  std::getline(csv, heading);
  EXPECT_TRUE(heading.ends_with(",row,sense,target,verdict"));
  const std::string tool =
      (std::filesystem::path(VERBATIM_COMPARE_PROGRAM).parent_path() / "cli/verbatim").string();
  const Outcome gate = run({"perf", "gate", file, file, "--all"}, runtime, tool.c_str());
  EXPECT_THAT(gate.output, HasSubstr("compare: R8 empty poll, 1000 connected QPs"));
  EXPECT_THAT(gate.output, HasSubstr("5 figures in both"));
  const std::string page = files.path() + "/page.html";
  EXPECT_EQ(run({"perf", "report", file, "-o", page}, runtime, tool.c_str()).status, 0);
  std::ifstream drawn(page);
  const std::string html{std::istreambuf_iterator<char>(drawn), {}};
  EXPECT_THAT(html, HasSubstr("<h2>Targets</h2>"));
  EXPECT_THAT(html,
              HasSubstr("static stripped C program, all providers<span>first_message</span>"));
}

TEST(Compare, PagesOfTwoSizesAreShownOrMissedByName) {
  const ScratchFolder runtime;
  const Json json = parse(run({"--rows", "pages", "--quick", "--rounds", "1", "--json"}, runtime,
                              VERBATIM_COMPARE_PROGRAM));
  EXPECT_EQ(json["rows"].size(), 6u) << "three sizes of mapped memory, and of malloc's";
  for (const Json& row : json["rows"]) {
    EXPECT_EQ(row["row"], "pages");
    EXPECT_THAT(row["figure"].get<std::string>(), HasSubstr("pages of 2 MiB / of 4 KiB"));
    EXPECT_FALSE(row.contains("target")) << row;
    EXPECT_TRUE(row["median"].is_number() || row["missing"] != "") << row;
  }
  EXPECT_TRUE(is_empty(runtime));
}

TEST(Compare, MpiHasANumberInEachRowBesideThePeersThatAreHere) {
  const ScratchFolder runtime;
  const Json json = parse(run({"--rows", "mpi", "--quick", "--rounds", "1", "--json"}, runtime,
                              VERBATIM_COMPARE_PROGRAM));
  std::set<double> targets;
  std::set<std::string> rows;
  for (const Json& row : json["rows"]) {
    rows.insert(row["row"].get<std::string>());
    const std::string detail = row["detail"];
    const std::string figure = row["figure"];
    const bool is_step = figure.find("largest step") != std::string::npos;
    EXPECT_THAT(detail, HasSubstr(is_step ? " ns" : "Verbatim")) << row;
    if (row.contains("target")) targets.insert(row["target"].get<double>());
    // Without the packages of either peer only the reason is there, by name.
    if (row["missing"] == "") {
      EXPECT_TRUE(row["median"].is_number()) << row;
      // A busy machine hides nothing.
      if (figure.find("hidden") == std::string::npos) {
        EXPECT_GT(row["median"].get<double>(), 0) << row;
      }
    } else {
      EXPECT_THAT(row["missing"].get<std::string>(), HasSubstr("installed")) << row;
    }
    const auto is_of = [&](const char* words) { return figure.find(words) != std::string::npos; };
    const bool is_with_itself = is_of("/ behind 10") || is_of("/ F1") || is_step ||
                                is_of("/ reduce and bcast") || is_of("/ allreduce of 4 B");
    for (const char* peer : {"Open MPI", "MPICH"}) {
      EXPECT_TRUE(is_with_itself || detail.find(peer) != std::string::npos) << peer << " " << row;
    }
  }
  EXPECT_EQ(json["rows"].size(), 91u);
  EXPECT_EQ(rows, (std::set<std::string>{"R4", "R9", "R11", "R12", "mpi"}));
  EXPECT_EQ(targets, (std::set<double>{0.4, 0.5, 0.6, 0.7, 0.95, 1, 1.1, 1.25, 1.3, 2, 64, 80}));
  EXPECT_TRUE(is_empty(runtime));
}

TEST(Compare, OnAKernelDeviceThereAreFiguresOrOneRowWithTheReason) {
  const ScratchFolder runtime;
  const Json json = parse(run({"--rows", "kernel", "--quick", "--rounds", "1", "--json"}, runtime,
                              VERBATIM_COMPARE_PROGRAM));
  const bool none = json["rows"].size() == 1;
  EXPECT_EQ(json["rows"].size(), none ? 1u : 5u);
  for (const Json& row : json["rows"]) {
    EXPECT_EQ(row["row"], "kernel");
    EXPECT_EQ(row["missing"] == "", row["median"].is_number()) << row;
    if (none) {
      EXPECT_EQ(row["verdict"], "not measurable here");
    }
  }
  if (!std::filesystem::exists("/sys/class/infiniband")) {
    EXPECT_EQ(json["rows"][0]["missing"], "no kernel RDMA device");
  }
  EXPECT_TRUE(is_empty(runtime));
}

TEST(Compare, DebiansProgramsOnOurLibraryHaveANumberOrAReason) {
  const ScratchFolder runtime;
  const Json json =
      parse(run({"--rows", "dropin", "--quick", "--rounds", "1", "--seconds", "1", "--json"},
                runtime, VERBATIM_COMPARE_PROGRAM));
  for (const Json& row : json["rows"]) {
    EXPECT_TRUE(row["row"] == "R19" || row["row"] == "R20" || row["row"] == "dropin");
    if (row["missing"] == "")
      EXPECT_GT(row["median"].get<double>(), 0) << row;
    else
      EXPECT_THAT(row["missing"].get<std::string>(),
                  ::testing::AnyOf(HasSubstr("installed"), HasSubstr("is not built")))
          << row;
  }
  const bool built = std::filesystem::exists(
      std::filesystem::path(VERBATIM_COMPARE_PROGRAM).parent_path() / "../dropin/libibverbs.so.1");
  EXPECT_EQ(json["rows"].size(), built ? 13u : 3u);
  EXPECT_TRUE(is_empty(runtime));
}

TEST(Compare, CtrlCEndsTheRanksOfALauncher) {
  const ScratchFolder runtime;
  auto [output, end] = pipe_pair();
  Child child =
      start(VERBATIM_COMPARE_PROGRAM, {"--rows", "mpi", "--rounds", "1000"}, runtime, end.get());
  end.reset();
  std::vector<Fd> ranks;
  // The launcher, then what it has started.
  ASSERT_TRUE(becomes_true([&] {
    ranks.clear();
    for (const pid_t launcher : children_of(child.pid())) {
      for (const pid_t rank : children_of(launcher)) ranks.push_back(watch(rank));
    }
    return ranks.size() >= 2;
  }));
  kill(child.pid(), SIGINT);
  const int status = child.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  for (const Fd& rank : ranks) EXPECT_TRUE(ends(rank));
  EXPECT_TRUE(is_empty(runtime));
}

TEST(Compare, CtrlCEndsWhateverRuns) {
  const ScratchFolder runtime;
  auto [output, end] = pipe_pair();
  Child child = start(VERBATIM_COMPARE_PROGRAM, {"--rounds", "1000"}, runtime, end.get());
  end.reset();
  ASSERT_TRUE(becomes_true([&] { return children_of(child.pid()).size() >= 2; }));
  std::vector<Fd> watched;
  for (const pid_t pid : children_of(child.pid())) watched.push_back(watch(pid));
  kill(child.pid(), SIGINT);
  const int status = child.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  for (const Fd& process : watched) EXPECT_TRUE(ends(process));
  EXPECT_TRUE(is_empty(runtime));
  EXPECT_EQ(read_to_end(output.get()), "");
}

}  // namespace
}  // namespace verbatim::perf
