// SPDX-License-Identifier: BSD-2-Clause
// R6 and R7: bandwidth. Against the floors, data that has just been written, moved under the very
// same conditions (verbs/train.cpp). Against UCX, one buffer over and over, since that is what
// ucx_perftest does (verbs/stream.cpp): tag matching with posix and cma, where a large message is
// one copy by the kernel.
#include "perf/peers/bench.hpp"
#include "perf/peers/ucx.hpp"
#include "perf/support/arguments.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kSizes[] = {65536, 262144, 1048576, 4194304};
constexpr const char* kUnit = "GB/s";

Probe train(Bench& bench, Mover mover, Memory memory, Operation operation, std::uint64_t size) {
  const char* who = mover == Mover::kMapped ? "mapped copy"
                    : mover == Mover::kCma  ? "CMA"
                                            : "fresh";
  std::string name = std::string(who) + " " + name_of(operation);
  if (mover == Mover::kVerbs) name += std::string(" ") + name_of(memory);
  return bench.ours(name,
                    {.kind = Kind::kTrain,
                     .operation = operation,
                     .memory = memory,
                     .mover = mover,
                     .size = size},
                    Unit::kGigabytesPerSecond);
}

Probe stream(Bench& bench, Memory memory, Operation operation, std::uint64_t size) {
  return bench.ours(std::string("stream ") + name_of(operation) + " " + name_of(memory),
                    {.kind = Kind::kStream, .operation = operation, .memory = memory, .size = size},
                    Unit::kGigabytesPerSecond);
}

void measure_size(Bench& bench, std::uint64_t size) {
  Probes probes;
  for (const Operation operation : {Operation::kWrite, Operation::kRead}) {
    probes.push_back(train(bench, Mover::kMapped, Memory::kShared, operation, size));
    probes.push_back(train(bench, Mover::kCma, Memory::kPrivate, operation, size));
  }
  for (const Memory memory : {Memory::kShared, Memory::kPrivate}) {
    for (const Operation operation : {Operation::kWrite, Operation::kRead, Operation::kSend}) {
      probes.push_back(train(bench, Mover::kVerbs, memory, operation, size));
    }
    for (const Operation operation : {Operation::kWrite, Operation::kSend}) {
      probes.push_back(stream(bench, memory, operation, size));
    }
  }
  const std::uint64_t count = (std::uint64_t{256} << 20) / size;
  probes.push_back(
      bench.theirs("UCX tag", is_installed("ucx_perftest"), "ucx-utils", [&bench, size, count] {
        const UcxResult result = run_ucx({"tag_bw", size, count, UcxOver::kTag}, bench.cores);
        return Taken{result.messages_per_second * static_cast<double>(size) / 1e9, result.waited_ns,
                     result.waited_ns > kLostInPrograms};
      }));
  const std::string text = size_text(size);
  bench.run(probes, "bandwidth " + text, bench.options.rounds);

  const auto judge = [&](const char* row, const std::string& figure, double target,
                         const std::string& value, const std::string& reference) {
    if (!bench.wants(row)) return;
    bench.judge_ratio(row, text + " " + figure, Sense::kAtLeast, target, named(probes, value),
                      named(probes, reference), kUnit);
  };
  judge("R6", "mapped write / mapped copy", 0.9, "fresh write mapped", "mapped copy write");
  judge("R6", "mapped read / mapped copy", 0.9, "fresh read mapped", "mapped copy read");
  judge("R6", "mapped send/recv / mapped copy", 0.9, "fresh send mapped", "mapped copy write");
  judge("R6", "mapped write / UCX tag", 3, "stream write mapped", "UCX tag");
  judge("R6", "mapped send/recv / UCX tag", 3, "stream send mapped", "UCX tag");
  judge("R7", "malloc write / CMA", 0.95, "fresh write malloc", "CMA write");
  judge("R7", "malloc read / CMA", 0.95, "fresh read malloc", "CMA read");
  judge("R7", "malloc send/recv, both polling / CMA", 2, "fresh send malloc", "CMA write");
  judge("R7", "malloc send/recv, both polling / UCX tag", 1, "stream send malloc", "UCX tag");
}

}  // namespace

void judge_bandwidth(Bench& bench) {
  for (const std::uint64_t size : kSizes) measure_size(bench, size);
}

}  // namespace verbatim::perf
