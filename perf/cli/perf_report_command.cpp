// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf report a.jsonl [b.jsonl] -o report.html`.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "perf/cli/measuring.hpp"
#include "perf/cli/perf_page.hpp"
#include "perf/support/lost_output.hpp"

namespace verbatim::cli {
namespace {

constexpr const char* kReportUsage =
    "usage: verbatim perf report <run.jsonl> [<base.jsonl>] [-o report.html]\n"
    "Draws what --jsonl of 'perf/run', 'perf/compare', 'verbatim perf <test>', 'pattern', 'coll',\n"
    "'floors' and 'scaling' have written as one page for a browser, which needs no network and "
    "has\n"
    "no script: curves against the floors of the run, distributions, collectives, scaling. With a\n"
    "second run it is compared with that one. Files of several tools may be joined before.\n"
    "  -o FILE          the page (report.html); - is the standard output\n";

struct ReportOptions {
  std::vector<std::string> files;
  std::string output = "report.html";
  bool help = false;
};

/// Empty, or what is wrong.
std::string parse_report(int argc, char** argv, ReportOptions* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      options->help = true;
    } else if (word == "-o") {
      if (i + 1 == argc || argv[i + 1][0] == '\0') return "-o needs a file";
      options->output = argv[++i];
    } else if (word.size() > 1 && word.front() == '-') {
      return "unknown option " + std::string(word);
    } else {
      options->files.emplace_back(word);
    }
  }
  if (options->help) return {};
  if (options->files.empty()) return "give the file of a run";
  if (options->files.size() > 2) return "give one file, or two that are compared";
  return {};
}

void write_page(const std::string& path, const std::string& page) {
  const bool is_output = path == "-";
  std::FILE* const file = is_output ? stdout : std::fopen(path.c_str(), "we");
  bool written = file != nullptr;
  if (written) written = std::fwrite(page.data(), 1, page.size(), file) == page.size();
  if (is_output)
    written = std::fflush(file) == 0 && written;
  else if (file != nullptr)
    written = std::fclose(file) == 0 && written;
  if (!written) {
    const int error = errno;
    if (is_output) perf::forget_lost_output();
    throw std::runtime_error("cannot write '" + path + "': " + std::strerror(error) + " (-o)");
  }
}

}  // namespace

int perf_report(Calling, int argc, char** argv) {
  ReportOptions options;
  const std::string wrong = parse_report(argc, argv, &options);
  if (!wrong.empty()) {
    std::fprintf(stderr, "verbatim perf report: %s\n%s", wrong.c_str(), kReportUsage);
    return 1;
  }
  if (options.help) {
    std::fputs(kReportUsage, stdout);
    return 0;
  }
  try {
    const auto records = perf::read_records(options.files[0]);
    std::vector<perf::Record> base;
    if (options.files.size() == 2) base = perf::read_records(options.files[1]);
    write_page(options.output, perf_page(records, base));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "verbatim perf report: %s\n", failure.what());
    return 1;
  }
}

}  // namespace verbatim::cli
