// SPDX-License-Identifier: BSD-2-Clause
//
// The page of `verbatim perf report`: stands alone, is well-formed whatever a file says, and a
// browser shows it without complaint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/tools/records.hpp"
#include "tests/tools/tool_process.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Program kPageTool = {VERBATIM_TOOL, "verbatim", {}};

/// A run with everything that a page shows; what it measured is `factor` times as long.
std::string crafted_run(double factor) {
  std::string text;
  const auto blocks = [&](double value) {
    std::vector<double> all;
    for (const double part : {0.99, 1.0, 1.01, 0.98, 1.02, 1.0}) all.push_back(part * value);
    return all;
  };
  for (const unsigned size : {8u, 512u, 4096u, 65536u, 1048576u}) {
    const double time = factor * (200 + size / 20.0);
    const std::string levels = R"(,"histogram":[[)" + std::to_string(time) + R"(,900],[)" +
                               std::to_string(3 * time) + R"(,90],[)" + std::to_string(90 * time) +
                               R"(,2]])";
    text += record_line("latency", "send mapped", size, "ns", blocks(time),
                        levels + R"(,"reference":{"name":"one copy","median":80,"ratios":[2.5]})");
    text += record_line("latency", "write malloc", size, "ns", blocks(1.4 * time), levels);
    text +=
        record_line("floor", "one copy", size, "ns", blocks(80 + size / 40.0), R"(,"floor":"F3")");
    text += record_line("bandwidth", "fresh write mapped", size, "GB/s", blocks(size / time));
  }
  text += record_line("rate", "send mapped", 8, "million/s", blocks(20 / factor));
  for (const unsigned number : {1u, 10u, 100u, 1000u}) {
    std::string line = record_line("scaling", "empty poll", number, "ns", blocks(2));
    line.replace(line.find("\"size\""), 6, "\"qps\"");
    text += line;
  }
  text += record_line("floor", "F12", 0, "ns", {1}, R"(,"floor":"F12","missing":"no veth")");
  return text;
}

/// Names of elements that are opened and not closed, or the other way round.
std::string unbalanced(const std::string& page) {
  std::vector<std::string> open;
  std::size_t at = page.find("<html");
  while ((at = page.find('<', at)) != std::string::npos) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) return "a tag without an end";
    const bool closes = page[at + 1] == '/';
    const std::size_t start = at + (closes ? 2 : 1);
    const std::string name = page.substr(start, page.find_first_of(" />\n", start) - start);
    const bool alone = page[end - 1] == '/' || name == "meta" || name == "link";
    at = end;
    if (alone) continue;
    if (!closes) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "</" + name + ">";
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + ">";
}

std::string page_of(const TestFolder& folder, const std::vector<std::string>& runs) {
  std::vector<std::string> words = {"perf", "report"};
  words.insert(words.end(), runs.begin(), runs.end());
  words.insert(words.end(), {"-o", folder.path("report.html")});
  const Ending ending = run(kPageTool, words);
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_EQ(ending.out + ending.err, "");
  return folder.read("report.html");
}

void expect_stands_alone(const std::string& page) {
  EXPECT_THAT(page, HasSubstr("<!doctype html>"));
  for (const char* from_outside : {"http:", "https:", "src=", "<script", "url(", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(from_outside)));
  }
  EXPECT_EQ(unbalanced(page), "");
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf\"")));
}

TEST(PerfReport, HasCurvesFloorsDistributionsScalingAndTheEnvironment) {
  const TestFolder folder;
  const std::string page = page_of(folder, {folder.write("run", crafted_run(1))});
  expect_stands_alone(page);
  for (const char* part :
       {"<h2>Latency</h2>", "<h2>Bandwidth</h2>", "<h2>Message rate</h2>", "<h2>Distributions</h2>",
        "<h2>Scaling</h2>", "F3 one copy", "<h2>Floors of this machine</h2>",
        "<h2>Environment</h2>", "512 B", "64 KiB", "p99.9", "not measurable here: no veth", "O(1)",
        "prefers-color-scheme:dark"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, HasSubstr("Cost of: empty poll</h3>"));
  EXPECT_THAT(page, Not(HasSubstr("empty poll</text>"))) << "said once, and in full";
  EXPECT_THAT(page, Not(HasSubstr("Compared with the base")));
}

TEST(PerfReport, ColoursNoGrowthThatItsErrorHides) {
  const TestFolder folder;
  std::string text;
  for (const auto& [number, cost] : {std::pair(1u, 100.), std::pair(8u, 300.), std::pair(64u, 90.)})
    text += record_line("scaling", "empty poll", number, "ns", {cost, cost, cost});
  const std::string page = page_of(folder, {folder.write("run", text)});
  EXPECT_THAT(page, HasSubstr("<td>not told</td>"));
  EXPECT_THAT(page, Not(HasSubstr("O(1)")));
}

TEST(PerfReport, ComparesTwoRunsWithSignificance) {
  const TestFolder folder;
  const std::string page = page_of(
      folder, {folder.write("new", crafted_run(1.3)), folder.write("base", crafted_run(1))});
  expect_stands_alone(page);
  EXPECT_THAT(page, HasSubstr("Compared with the base"));
  EXPECT_THAT(page, HasSubstr("+30 %"));
  EXPECT_THAT(page, HasSubstr("0 better and 16 worse beyond chance"));
  EXPECT_THAT(page, HasSubstr("class=\"base s0\"")) << "the base's curve, dotted";
}

TEST(PerfReport, TellsOfAllRunsThatWereJoined) {
  const TestFolder folder;
  const auto run_of = [](const std::string& provider, const std::string& more) {
    std::string text;
    for (const unsigned size : {8u, 64u}) {
      text += record_line("latency", "send-lat RC", size, "ns", {100, 101, 99},
                          R"(,"provider":")" + provider + "\"" + more);
    }
    return text;
  };
  const std::string joined =
      run_of("shm0", "") + run_of("rxe0", R"(,"noise":{"stolen":0.25})") +
      record_line("latency", "send-lat UD", 8, "ns", {}, R"(,"missing":"no datagrams")");
  const std::string page = page_of(folder, {folder.write("run", joined)});
  expect_stands_alone(page);
  EXPECT_THAT(page, HasSubstr("unreliable: 25.0 %"));
  EXPECT_THAT(page, HasSubstr("(2 of 5 figures are of a noisy run)"));
  EXPECT_THAT(page, HasSubstr("25.00 %")) << "in the environment";
  EXPECT_THAT(page, HasSubstr(">shm0 \xc2\xb7 rxe0<")) << "and not those that say none";
  for (const char* curve : {"send-lat RC (shm0)", "send-lat RC (rxe0)"}) {
    EXPECT_THAT(page, HasSubstr(std::string(curve) + "</text>")) << "a curve of its own";
  }
  EXPECT_THAT(page, HasSubstr("not measurable here: no datagrams"));
}

TEST(PerfReport, GoesToTheStandardOutputWhenAsked) {
  const TestFolder folder;
  const Ending ending =
      run(kPageTool, {"perf", "report", folder.write("run", crafted_run(1)), "-o", "-"});
  EXPECT_EQ(ending.status, 0) << ending.err;
  expect_stands_alone(ending.out);
}

TEST(PerfReport, HasTheTargetsOfAComparison) {
  const TestFolder folder;
  const auto target = [](const char* row, const char* sense, const char* value, const char* verdict,
                         const char* detail) {
    return std::string(R"(,"target":{"row":")") + row + R"(","sense":")" + sense + R"(","value":)" +
           value + R"(,"verdict":")" + verdict + R"(","better":"less","detail":")" + detail +
           R"("})";
  };
  const std::string file = folder.write(
      "run", record_line("compare", "R1 write / F1", 0, "x", {1.25, 1.3},
                         target("R1", "at most", "1.4", "pass", "write 80 / F1 <64> ns")) +
                 record_line("compare", "R3 send / other", 0, "x", {2, 2},
                             target("R3", "at most", "0.15", "short", "")) +
                 record_line("compare", "R4 8 B", 0, "x", {1},
                             target("R4", "", "null", "not measurable here", "") +
                                 R"(,"missing":"mpich is not installed")"));
  const std::string page = page_of(folder, {file});
  expect_stands_alone(page);
  for (const char* part :
       {"<h2>Targets</h2>",
        "<td class=\"l\">R1</td><td class=\"two\">write / F1<span>write 80 / F1 &lt;64&gt; "
        "ns</span></td>",
        "<td>at most 1.400</td><td>1.275 x</td>", "badge good\">pass", "badge bad\">short",
        "8 B<span>mpich is not installed</span>", "not measurable here</td>"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

TEST(PerfReport, WhatAFileSaysIsTextAndNothingElse) {
  const TestFolder folder;
  const std::string evil = "</svg></title><script>alert(1)</script>&'\\\"";
  std::string text;
  for (const unsigned size : {8u, 64u}) {
    text += record_line("latency", evil, size, "ns", {1, 1e15, 0},
                        R"(,"histogram":[[1e-300,1],[1e15,5]],"reference":{"name":")" + evil +
                            R"(","median":0,"ratios":[0]})");
    text += record_line("bandwidth", evil, size, evil, {0, 0});
    text += record_line("scaling", evil, size, "ns", {0});
    text += record_line("latency", "nothing", size, "ns", {0});
  }
  text += record_line(evil, "x", 0, "ns", {0});
  const std::string page = page_of(folder, {folder.write("run", text)});
  EXPECT_EQ(unbalanced(page), "");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
}

TEST(PerfReport, SaysInOneLineWhatIsWrong) {
  const TestFolder folder;
  const std::string file = folder.write("run", crafted_run(1));
  const auto line_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"perf", "report"};
    words.insert(words.end(), more.begin(), more.end());
    const Ending ending = run(kPageTool, words);
    EXPECT_EQ(ending.status, 1);
    return ending.err;
  };
  EXPECT_EQ(
      line_of({file, "-o", "/nowhere/r.html"}),
      "verbatim perf report: cannot write '/nowhere/r.html': No such file or directory (-o)\n");
  EXPECT_THAT(line_of({file, "-o", "/dev/full"}), HasSubstr("No space left on device"));
  EXPECT_THAT(line_of({folder.write("bad", "x\n"), "-o", folder.path("r")}), HasSubstr("bad:1: "));
  EXPECT_FALSE(std::filesystem::exists(folder.path("r"))) << "written on success only";
  EXPECT_THAT(line_of({}), HasSubstr("give the file of a run"));
  EXPECT_THAT(line_of({file, file, file}), HasSubstr("give one file, or two"));
  EXPECT_THAT(line_of({file, "-o"}), HasSubstr("-o needs a file"));
  EXPECT_THAT(line_of({file, "--pdf"}), HasSubstr("unknown option --pdf"));
}

/// Bytes of the picture that Chromium takes of a page; what its console says is in `said`.
std::uintmax_t picture_of(const TestFolder& folder, const std::string& page, std::string* said) {
  const std::string picture = folder.path("picture.png");
  std::error_code ignored;
  std::filesystem::remove(picture, ignored);
  const Program chromium = {"/usr/bin/chromium", "chromium", {{"HOME", folder.path("home")}}};
  const Ending ending =
      run(chromium, {"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     "--enable-logging=stderr", "--user-data-dir=" + folder.path("home"),
                     "--window-size=1080,3000", "--screenshot=" + picture, "file://" + page});
  EXPECT_EQ(ending.status, 0) << ending.err;
  *said = ending.err;
  const std::uintmax_t size = std::filesystem::file_size(picture, ignored);
  return ignored ? 0 : size;
}

TEST(PerfReport, ABrowserShowsItWithoutComplaint) {
  if (access("/usr/bin/chromium", X_OK) != 0) {
    GTEST_SKIP() << "/usr/bin/chromium is not there: apt install chromium";
  }
  const TestFolder folder;
  std::string said;
  const std::string blank = folder.write(
      "blank.html",
      "<!doctype html><link rel=icon href='data:,'><script>console.error('so')</script>");
  const std::uintmax_t nothing = picture_of(folder, blank, &said);
  ASSERT_GT(nothing, 0u);
  ASSERT_THAT(said, HasSubstr("CONSOLE")) << "else the next look would see nothing";
  page_of(folder, {folder.write("new", crafted_run(1.3)), folder.write("base", crafted_run(1))});
  EXPECT_GT(picture_of(folder, folder.path("report.html"), &said), 6 * nothing);
  EXPECT_THAT(said, Not(HasSubstr("CONSOLE")));
}

}  // namespace
}  // namespace verbatim::tools
