// SPDX-License-Identifier: BSD-2-Clause
// `verbatim doctor`: everything between a user and working RDMA on this host, a line for each, with
// cause and fix. Exit status: 0, or 1 when a line says FAIL, or 2 when the options make no sense.
#include <getopt.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "perf/cli/commands.hpp"
#include "perf/cli/doctor_findings.hpp"
#include "perf/cli/failure.hpp"
#include "perf/support/lost_output.hpp"
#include "runtime/base/printable.hpp"

namespace verbatim::cli {
namespace {

constexpr int kUsage = 2;

void doctor_usage(const char* name) {
  std::printf(
      "Usage:\n"
      "  %s          explain what lies between a user and working RDMA on this host\n"
      "\n"
      "Options:\n"
      "  -j, --json           as JSON\n"
      "  -r, --root=<folder>  read the files of /proc, /sys and /dev below <folder>\n"
      "  -h, --help           print a help text and exit\n"
      "\n"
      "Each line is OK, WARN (works, but slower, smaller or not always) or FAIL, with the cause\n"
      "and, behind '->', the fix. Exit status: 0; 1 if a line is FAIL; 2 for a wrong option.\n"
      "What it says holds for processes that are started as it was: run it as a rank is run, with\n"
      "the same user, container and launcher.\n",
      name);
}

struct DoctorOptions {
  bool json = false;
  bool help = false;
  std::string root;
  std::string copy_from;
};

DoctorOptions parse_doctor(int argc, char** argv) {
  // The last is no one's but ours: see copy_as_peer().
  static const option kLong[] = {{"json", no_argument, nullptr, 'j'},
                                 {"root", required_argument, nullptr, 'r'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {"copy-as-peer", required_argument, nullptr, 'c'},
                                 {nullptr, 0, nullptr, 0}};
  DoctorOptions options;
  const auto refuse = [&](const char* what, const char* why) {
    throw Failure{std::string(argv[0]) + ": '" + what + "' " + why + " (see --help)", kUsage};
  };
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, ":jr:h", kLong, nullptr)) != -1;) {
    if (c == 'j') {
      options.json = true;
    } else if (c == 'r') {
      options.root = optarg;
      struct stat status {};
      if (stat(optarg, &status) != 0) refuse(optarg, std::strerror(errno));
      if (!S_ISDIR(status.st_mode)) refuse(optarg, "is no folder");
    } else if (c == 'h') {
      options.help = true;
    } else if (c == 'c') {
      options.copy_from = optarg;
    } else if (c == ':') {
      refuse(argv[optind - 1], "needs a value");
    } else {
      refuse(argv[optind - 1], "is no option");
    }
  }
  if (optind < argc) refuse(argv[optind], "is too much");
  return options;
}

const char* word(Verdict verdict) {
  return verdict == Verdict::kOk ? "OK" : verdict == Verdict::kWarn ? "WARN" : "FAIL";
}

/// Names come from files.
std::string printable(std::string text) {
  make_printable(text.data(), text.size());
  return text;
}

void print_text(const Findings& findings) {
  for (const Finding& finding : findings.all()) {
    std::printf("%-4s  %-16s  %s\n", word(finding.verdict), finding.topic.c_str(),
                printable(finding.cause).c_str());
    if (!finding.fix.empty()) std::printf("%24s-> %s\n", "", printable(finding.fix).c_str());
  }
  std::printf("%zu FAIL, %zu WARN, %zu OK\n", findings.count(Verdict::kFail),
              findings.count(Verdict::kWarn), findings.count(Verdict::kOk));
}

void print_json(const Findings& findings) {
  using perf::Json;
  Json list = Json::array();
  for (const Finding& finding : findings.all()) {
    Json one = {{"verdict", word(finding.verdict)},
                {"topic", finding.topic},
                {"cause", finding.cause},
                {"fix", finding.fix.empty() ? Json() : Json(finding.fix)}};
    if (!finding.facts.is_null()) one["facts"] = finding.facts;
    list.push_back(std::move(one));
  }
  const Verdict worst = findings.count(Verdict::kFail) != 0   ? Verdict::kFail
                        : findings.count(Verdict::kWarn) != 0 ? Verdict::kWarn
                                                              : Verdict::kOk;
  const Json all = {{"version", 1}, {"verdict", word(worst)}, {"findings", std::move(list)}};
  std::printf("%s\n", all.text().c_str());
}

}  // namespace

int doctor(Calling, int argc, char** argv) {
  try {
    const DoctorOptions options = parse_doctor(argc, argv);
    if (options.help) {
      doctor_usage(argv[0]);
      return 0;
    }
    if (!options.copy_from.empty()) return copy_as_peer(options.copy_from.c_str());
    // So that the library looks where we look. Before its first call, which reads the variable.
    if (!options.root.empty())
      setenv("SYSFS_PATH", (options.root + "/sys").c_str(), 0 /* the user's own goes first */);
    const HostFiles files(options.root);
    Findings findings;
    examine_providers(findings);
    examine_kernel_devices(files, findings);
    examine_devices(findings);
    examine_memory(files, findings);
    examine_shared_memory(files, findings);
    examine_processes(files, findings);
    examine_fabric_folder(files, findings);
    examine_cores(files, findings);
    if (options.json) {
      print_json(findings);
    } else {
      print_text(findings);
    }
    if (std::fflush(stdout) != 0) {
      const int error = errno;
      perf::forget_lost_output();
      fail("%s: cannot write what it found: %s", argv[0], std::strerror(error));
    }
    return findings.count(Verdict::kFail) != 0 ? 1 : 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  }
}

}  // namespace verbatim::cli
