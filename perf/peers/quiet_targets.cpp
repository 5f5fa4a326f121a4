// SPDX-License-Identifier: BSD-2-Clause
// R8: polling an empty completion queue that 1000 connected queue pairs share, against one that a
// single pair uses. Two couples of processes, since the library may keep what it polls per process;
// measured before any of the pairs has carried a message and after all of them have. R10:
// operations on a process that sleeps in pause(), against the same one polling.
#include "perf/peers/bench.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kManyQps = 1000;

std::function<std::optional<Taken>()> empty_poll(Pair& pair) {
  return [&pair]() -> std::optional<Taken> {
    const Reply reply = pair.run({.kind = Kind::kEmptyPoll, .iterations = 500'000}, "empty poll");
    return taken(reply, reply.ns_per_operation());
  };
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
          [&bench, request, name]() -> std::optional<Taken> {
            const Reply reply = bench.pair().run(request, "target " + name);
            return taken(reply, reply.ns_per_operation());
          },
          {},
          {}};
}

}  // namespace

void judge_polling(Bench& bench) {
  // How a process's memory happens to be laid out moves an empty poll by a third, so several
  // couples of processes are asked.
  constexpr int kCouples = 5;
  Probes unused;
  Probes used;
  for (Probes* probes : {&unused, &used}) {
    probes->push_back({"1000 QPs", {}, {}, {}});
    probes->push_back({"1 QP", {}, {}, {}});
  }
  for (int couple = 0; couple < kCouples; ++couple) {
    Pair single(bench.cores, bench.fabric);
    Pair many(bench.cores, bench.fabric);
    single.run({.kind = Kind::kConnectMany, .iterations = 1}, "connect 1 QP");
    many.run({.kind = Kind::kConnectMany, .iterations = kManyQps}, "connect 1000 QPs");
    const auto measure_into = [&](Probes& probes) {
      probes[0].take = empty_poll(many);
      probes[1].take = empty_poll(single);
      bench.run(probes, "empty poll", bench.options.rounds);
    };
    measure_into(unused);
    for (Pair* pair : {&single, &many})
      pair->run({.kind = Kind::kUseMany, .batch = 1}, "use all QPs");
    measure_into(used);
  }
  bench.judge_ratio("R8", "empty poll, 1000 connected QPs / 1, none used yet", Sense::kAtMost, 1.1,
                    unused[0], unused[1], "ns");
  bench.judge_ratio("R8", "empty poll, 1000 connected QPs / 1, all used", Sense::kAtMost, 1.1,
                    used[0], used[1], "ns");
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
