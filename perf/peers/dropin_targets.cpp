// SPDX-License-Identifier: BSD-2-Clause
// R19, R20 and dropin: Debian's own programs on libibverbs.so.1, as users run them (`verbatim exec`), beside ours
// that are linked statically, the floors, and UCX's shared memory.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "perf/peers/bench.hpp"
#include "perf/peers/perftest.hpp"
#include "perf/peers/programs.hpp"
#include "perf/peers/ucx.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kLong = 65536;
using Words = std::vector<std::string>;

/// Why nothing can be measured here; empty: it can.
std::string missing_dropin() {
  const std::string library = path_beside_own("../dropin/libibverbs.so.1");
  return access(library.c_str(), R_OK) == 0 ? "" : "libibverbs.so.1 is not built";
}

ProgramsRun run_both(const Bench& bench, const Words& before, const Words& words) {
  Programs programs;
  programs.environment = {"VERBATIM_FABRIC=" + bench.fabric};
  programs.server = before;
  programs.server.insert(programs.server.end(), words.begin(), words.end());
  programs.client = programs.server;
  programs.client.emplace_back("127.0.0.1");
  return run_programs(programs, bench.cores);
}

Words exec() { return {path_beside_own("cli/verbatim"), "exec", "--"}; }

/// One way, of `... bytes in ... seconds = 123.45 Mbit/sec`, whose times have too few digits.
double one_way_ns(const std::string& text, int size) {
  const std::size_t at = text.find(" seconds = ");
  double megabits = 0;
  if (at == std::string::npos || std::sscanf(text.c_str() + at, " seconds = %lf", &megabits) != 1 ||
      megabits <= 0)
    throw std::runtime_error("the ping-pong printed no result: " + text);
  return 8e3 * size / megabits;
}

Taken taken_of(const ProgramsRun& run, double value) {
  return {value, run.waited_ns, run.waited_ns > kLostInPrograms};
}

Probe pingpong(Bench& bench, const char* name, const Words& before, const char* program) {
  constexpr int kSize = 8;
  return bench.theirs(
      name, is_installed("ibv_rc_pingpong"), "ibverbs-utils", [&bench, before, program] {
        const ProgramsRun run = run_both(
            bench, before,
            {program, "-d", "shm0", "-s", std::to_string(kSize), "-n", "500000", "-p", "%PORT%"});
        return taken_of(run, one_way_ns(run.output, kSize));
      });
}

Probe perftest(Bench& bench, const char* name, const Words& words, int column, double scale) {
  return bench.theirs(name, is_installed(words.front()), "perftest",
                      [&bench, words, column, scale] {
                        Words all = words;
                        for (const char* word : {"-d", "shm0", "-F", "-p", "%PORT%"})
                          all.emplace_back(word);
                        const ProgramsRun run = run_both(bench, exec(), all);
                        return taken_of(run, perftest_column(run.output, column) * scale);
                      });
}

Probe ucx(Bench& bench, const char* name, std::uint64_t count, UcxOver over, bool sleeps = false) {
  return bench.theirs(
      name, is_installed("ucx_perftest"), "ucx-utils", [&bench, count, over, sleeps] {
        const UcxResult result =
            run_ucx({"tag_lat", 8, count, over, bench.fabric, sleeps}, bench.cores);
        return Taken{result.latency_ns(), result.waited_ns, result.waited_ns > kLostInPrograms};
      });
}

void judge_short(Bench& bench) {
  Probes probes;
  static const std::string tool = path_beside_own("cli/ibv_rc_pingpong");
  probes.push_back(pingpong(bench, "static ping-pong", {}, tool.c_str()));
  probes.push_back(pingpong(bench, "Debian's ping-pong", exec(), "ibv_rc_pingpong"));
  probes.push_back(perftest(bench, "ib_send_lat", {"ib_send_lat", "-s", "8", "-n", "200000"},
                            kAverageLatency, 1e3));
  probes.push_back(bench.ours("send", {.kind = Kind::kPingPong, .operation = Operation::kSend},
                              Unit::kNanoseconds));
  probes.push_back(perftest(bench, "ib_send_lat -e",
                            {"ib_send_lat", "-e", "-s", "8", "-n", "20000"}, kAverageLatency, 1e3));
  probes.push_back(bench.ours("eventfd", {.kind = Kind::kEventPingPong}, Unit::kNanoseconds));
  probes.push_back(ucx(bench, "UCX rc", 100'000, UcxOver::kDropIn));
  probes.push_back(ucx(bench, "UCX posix", 100'000, UcxOver::kTag));
  probes.push_back(ucx(bench, "UCX rc -E sleep", 10'000, UcxOver::kDropIn, true));
  bench.run(probes, "8 B, programs of Debian", bench.options.rounds);
  const auto judge = [&](const char* row, const char* figure, Sense sense, double target,
                         const char* value, const char* reference) {
    bench.judge_ratio(row, figure, sense, target, named(probes, value), named(probes, reference),
                      "ns");
  };
  judge("R19", "ibv_rc_pingpong / the static tool's", Sense::kAtMost, 1.05, "Debian's ping-pong",
        "static ping-pong");
  judge("R19", "ib_send_lat / a static program's SENDs", Sense::kAtMost, 1.05, "ib_send_lat",
        "send");
  judge("dropin", "ib_send_lat -e / eventfd", Sense::kShown, 0, "ib_send_lat -e", "eventfd");
  judge("R20", "UCX tag_lat over rc / over posix", Sense::kAtMost, 1.1, "UCX rc", "UCX posix");
  judge("dropin", "UCX tag_lat -E sleep over rc / eventfd", Sense::kShown, 0, "UCX rc -E sleep",
        "eventfd");
}

void judge_long(Bench& bench) {
  const std::string size = std::to_string(kLong);
  Probes probes;
  probes.push_back(bench.ours("CMA",
                              {.kind = Kind::kTrain,
                               .operation = Operation::kWrite,
                               .memory = Memory::kPrivate,
                               .mover = Mover::kCma,
                               .size = kLong},
                              Unit::kGigabytesPerSecond));
  for (const char* program : {"ib_write_bw", "ib_send_bw"})
    probes.push_back(perftest(bench, program, {program, "-s", size, "-n", "20000"},
                              kAverageBandwidth, kMebibytes));
  bench.run(probes, "64 KiB, programs of Debian", bench.options.rounds);
  const auto judge = [&](const char* program, double target) {
    bench.judge_ratio("dropin", std::string(program) + " 64 KiB / CMA", Sense::kAtLeast, target,
                      named(probes, program), named(probes, "CMA"), "GB/s");
  };
  judge("ib_write_bw", 0.9);
  judge("ib_send_bw", 1.3);
}

}  // namespace

void judge_dropin(Bench& bench) {
  if (const std::string missing = missing_dropin(); !missing.empty()) {
    for (const char* row : {"R19", "R20", "dropin"})
      bench.verdicts.push_back(
          {row, "programs of Debian on our library", "x", Sense::kShown, 0, {}, {}, missing});
    return;
  }
  judge_short(bench);
  if (!bench.wants("dropin")) return;
  judge_long(bench);
  judge_dropin_mpi(bench);
}

}  // namespace verbatim::perf
