// SPDX-License-Identifier: BSD-2-Clause
// Memory: a pool's buffers against malloc's, large blocks against mmap (both until each page has
// been written, and given back), and small WRITEs between regions among 100 000 others against the
// same among 64.
#include "perf/peers/bench.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kFewRegions = 64;
constexpr std::uint64_t kManyRegions = 100'000;

Probe repeated(Bench& bench, const std::string& name, const Request& request, double unit_ns) {
  return {name,
          [&bench, name, request, unit_ns]() -> std::optional<Taken> {
            const Reply reply = bench.pair().run(request, name);
            return taken(reply, reply.ns_per_operation() / unit_ns);
          },
          {},
          {}};
}

void judge_buffers(Bench& bench) {
  for (const std::uint32_t at_once : {1u, 100u}) {
    Request request{.kind = Kind::kBuffers, .batch = at_once, .size = 256};
    request.iterations = 200'000 / at_once;
    Probes probes;
    probes.push_back(repeated(bench, "pool", request, 1));
    request.mover = Mover::kMapped;
    probes.push_back(repeated(bench, "malloc", request, 1));
    const std::string figure = "buffers of 256 B, " + std::to_string(at_once) + " at once";
    bench.run(probes, figure, bench.options.rounds);
    bench.judge_value("alloc", "vbt_pool_alloc + vbt_pool_free, " + figure, Sense::kAtMost, 20,
                      probes[0], "ns");
    bench.judge_ratio("alloc", "pool / malloc, " + figure, Sense::kShown, 0, probes[0], probes[1],
                      "ns");
  }
}

void judge_blocks(Bench& bench) {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 30;
  for (const Memory memory : {Memory::kShared, Memory::kPrivate}) {
    const bool shared = memory == Memory::kShared;
    Request request{.kind = Kind::kAllocate, .memory = memory, .size = kSize, .iterations = 1};
    Probes probes;
    probes.push_back(repeated(bench, "vbt_alloc", request, 1e6));
    request.mover = Mover::kMapped;
    probes.push_back(repeated(bench, "mmap", request, 1e6));
    const std::string figure = std::string(shared ? "shared" : "private") + " 1 GiB";
    bench.run(probes, figure, bench.options.rounds);
    bench.judge_ratio("alloc", figure + ", vbt_alloc + touch / mmap + touch",
                      shared ? Sense::kAtMost : Sense::kShown, shared ? 1.1 : 0, probes[0],
                      probes[1], "ms");
  }
}

void judge_lookup(Bench& bench) {
  Pair few(bench.cores, bench.fabric);
  Pair many(bench.cores, bench.fabric);
  const auto writes = [](Pair& pair) {
    return [&pair]() -> std::optional<Taken> {
      const Reply reply =
          pair.run({.kind = Kind::kWriteMany, .iterations = 10'000}, "write between regions");
      return taken(reply, reply.ns_per_operation());
    };
  };
  Probes probes;
  for (Pair* const pair : {&many, &few}) {
    const std::uint64_t count = pair == &many ? kManyRegions : kFewRegions;
    pair->run({.kind = Kind::kConnect}, "connect");
    pair->run({.kind = Kind::kRegisterMany, .iterations = count}, "register many regions");
    probes.push_back({std::to_string(count) + " MRs", writes(*pair), {}, {}});
  }
  bench.run(probes, "region lookup", bench.options.rounds);
  bench.judge_ratio("alloc", "write 8 B between 64 of 100000 MRs / of 64", Sense::kAtMost, 1.1,
                    probes[0], probes[1], "ns");
}

}  // namespace

void judge_allocation(Bench& bench) {
  judge_buffers(bench);
  judge_blocks(bench);
  judge_lookup(bench);
}

}  // namespace verbatim::perf
