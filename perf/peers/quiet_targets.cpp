// SPDX-License-Identifier: BSD-2-Clause
// R8: polling an empty completion queue that 1000 connected queue pairs share, against one that a
// single pair uses. Two couples of processes, since the library may keep what it polls per process;
// measured before any of the pairs has carried a message and after all of them have. R10:
// operations on a process that sleeps in pause(), against the same one polling.
#include "perf/peers/bench.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kMany = 1000;

Probe empty_poll(Pair& pair, const std::string& name) {
  return {name,
          [&pair, name]() -> std::optional<double> {
            const Request request{.kind = Kind::kEmptyPoll, .iterations = 200'000};
            return pair.run(request, name).ns_per_operation();
          },
          {},
          {}};
}

// One block of sends must fit the sleeper's receive queue; the others follow, so that all are
// measured alike.
std::uint64_t operations_for(std::uint64_t size) { return size >= 1048576 ? 64 : 256; }

Probe to_sleeper(Bench& bench, Request request, std::uint32_t asleep) {
  request.kind = Kind::kSleeping;
  request.asleep = asleep;
  request.iterations = operations_for(request.size);
  const std::string name = asleep != 0 ? "asleep" : "awake";
  return {name,
          [&bench, request, name]() -> std::optional<double> {
            return bench.pair().run(request, "target " + name).ns_per_operation();
          },
          {},
          {}};
}

}  // namespace

void judge_polling(Bench& bench) {
  Pair single(bench.cores, bench.fabric);
  Pair many(bench.cores, bench.fabric);
  single.run({.kind = Kind::kConnectMany, .iterations = 1}, "connect 1 QP");
  many.run({.kind = Kind::kConnectMany, .iterations = kMany}, "connect 1000 QPs");
  const auto judge = [&](const char* figure) {
    Probes probes;
    probes.push_back(empty_poll(single, "1 QP"));
    probes.push_back(empty_poll(many, "1000 QPs"));
    // The first round pays for cold caches.
    bench.run(probes, "empty poll", 1);
    for (Probe& probe : probes) probe.blocks = {};
    bench.run(probes, "empty poll", 3 * bench.options.rounds);
    bench.judge_ratio("R8", figure, Sense::kAtMost, 1.1, named(probes, "1000 QPs"),
                      named(probes, "1 QP"), "ns");
  };
  judge("empty poll, 1000 connected QPs / 1, none used yet");
  for (Pair* pair : {&single, &many})
    pair->run({.kind = Kind::kUseMany, .batch = 1}, "use all QPs");
  judge("empty poll, 1000 connected QPs / 1, all used");
}

void judge_sleeping(Bench& bench) {
  for (const Memory memory : {Memory::kShared, Memory::kPrivate}) {
    for (const Operation operation : {Operation::kWrite, Operation::kRead, Operation::kSend}) {
      for (const std::uint64_t size :
           {std::uint64_t{8}, std::uint64_t{4096}, std::uint64_t{1048576}}) {
        const Request request{.operation = operation, .memory = memory, .size = size};
        Probes probes;
        probes.push_back(to_sleeper(bench, request, 1));
        probes.push_back(to_sleeper(bench, request, 0));
        const std::string figure =
            std::string(name_of(operation)) + " " + name_of(memory) + " " + size_text(size);
        bench.run(probes, figure, bench.options.rounds);
        bench.judge_ratio("R10", figure + ", target asleep / awake", Sense::kAtMost, 1.2, probes[0],
                          probes[1], "ns");
      }
    }
  }
}

}  // namespace verbatim::perf
