// SPDX-License-Identifier: BSD-2-Clause
// kernel: Debian's perftest on rdma-core beside ours, both on the same kernel device, between two
// processes of this host. Both print the same columns, so both figures are read alike.
#include <string>
#include <vector>

#include "perf/peers/bench.hpp"
#include "perf/peers/kernel_device.hpp"
#include "perf/peers/perftest.hpp"
#include "perf/peers/programs.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

struct Test {
  const char* program;
  const char* size;
  const char* count;
  int column;
  double scale;
  const char* unit;
  Sense sense;
  double target;
};
constexpr Test kTests[] = {
    {"ib_send_lat", "8", "1000", kTypicalLatency, 1e3, "ns", Sense::kAtMost, 1.1},
    {"ib_write_lat", "8", "1000", kTypicalLatency, 1e3, "ns", Sense::kAtMost, 1.1},
    {"ib_read_lat", "8", "1000", kTypicalLatency, 1e3, "ns", Sense::kAtMost, 1.1},
    {"ib_write_bw", "65536", "500", kAverageBandwidth, kMebibytes, "GB/s", Sense::kAtLeast, 0.9},
    {"ib_send_bw", "65536", "500", kAverageBandwidth, kMebibytes, "GB/s", Sense::kAtLeast, 0.9},
};

Taken run_on(const KernelDevice& device, const Test& test, const std::string& program,
             const CorePair& cores) {
  Programs programs;
  programs.server = {program, "-d",       device.name, "-s", test.size,
                     "-n",    test.count, "-F",        "-p", "%PORT%"};
  if (!device.gid.empty()) programs.server.insert(programs.server.end(), {"-x", device.gid});
  programs.client = programs.server;
  programs.client.emplace_back("127.0.0.1");
  const ProgramsRun run = run_programs(programs, cores);
  return {perftest_column(run.output, test.column) * test.scale, run.waited_ns,
          run.waited_ns > kLostInPrograms};
}

}  // namespace

void judge_kernel(Bench& bench) {
  const KernelDevice device = find_kernel_device();
  if (!device.missing.empty()) {
    bench.verdicts.push_back({"kernel",
                              "ours / perftest on rdma-core, on one kernel device",
                              "x",
                              Sense::kShown,
                              0,
                              {},
                              {},
                              device.missing});
    return;
  }
  Probes probes;
  for (const Test& test : kTests) {
    const auto add = [&](const std::string& name, const std::string& program, bool is_there) {
      probes.push_back(bench.theirs(name + " " + test.program, is_there, "perftest",
                                    [&bench, &device, &test, program] {
                                      return run_on(device, test, program, bench.cores);
                                    }));
    };
    add("our", path_beside_own(std::string("cli/") + test.program), true);
    add("Debian's", test.program, is_installed(test.program));
  }
  bench.run(probes, "perftest on " + device.name, bench.options.rounds);
  for (const Test& test : kTests) {
    const std::string program = test.program;
    bench.judge_ratio("kernel",
                      program + " " + test.size + " B on " + device.name + ", ours / perftest's",
                      test.sense, test.target, named(probes, "our " + program),
                      named(probes, "Debian's " + program), test.unit);
  }
}

}  // namespace verbatim::perf
