// SPDX-License-Identifier: BSD-2-Clause
// R15 and sizes: SENDs from 8 B to 4 KiB, into memory that the sender has mapped and into memory of malloc,
// beside the WRITE of the size and beside UCX's tagged messages over posix; and the steps of the
// curve from each size to the next.
#include <iterator>

#include "perf/peers/bench.hpp"
#include "perf/peers/ucx.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kSizes[] = {8,   16,  32,  56,  57,   64,   96,  128,
                                    192, 256, 512, 768, 1024, 2048, 4096};
constexpr std::uint64_t kBesideUcx[] = {64, 128, 256, 512, 1024, 4096};

/// What has a target in the table is up to 1 KiB.
const char* row_of(std::uint64_t size) { return size <= 1024 ? "R15" : "sizes"; }

std::string bytes(std::uint64_t size) { return std::to_string(size) + " B"; }

std::string memory_name(Memory memory) { return memory == Memory::kShared ? "mapped" : "malloc"; }

std::string named_send(Memory memory, std::uint64_t size) {
  return "send " + memory_name(memory) + " " + bytes(size);
}

Probe ucx(Bench& bench, const char* test, std::uint64_t size, std::uint64_t count, bool is_rate) {
  return bench.theirs(
      std::string("UCX ") + test + " " + bytes(size), is_installed("ucx_perftest"), "ucx-utils",
      [&bench, test, size, count, is_rate] {
        const UcxResult result = run_ucx({test, size, count, UcxOver::kTag}, bench.cores);
        return Taken{is_rate ? result.messages_per_second / 1e6 : result.latency_ns(),
                     result.waited_ns, result.waited_ns > kLostInPrograms};
      });
}

void judge_latencies(Bench& bench) {
  Probes probes;
  for (const Memory memory : {Memory::kShared, Memory::kPrivate}) {
    for (const std::uint64_t size : kSizes)
      probes.push_back(bench.ours(
          named_send(memory, size),
          {.kind = Kind::kPingPong, .memory = memory, .pace = Pace::kPause, .size = size},
          Unit::kNanoseconds));
  }
  for (const std::uint64_t size : kBesideUcx) {
    probes.push_back(bench.ours("write " + bytes(size),
                                {.kind = Kind::kPingPong,
                                 .operation = Operation::kWrite,
                                 .pace = Pace::kPause,
                                 .size = size},
                                Unit::kNanoseconds));
    probes.push_back(ucx(bench, "tag_lat", size, 100'000, false));
  }
  bench.run(probes, "latency by size", bench.options.rounds);
  for (const Memory memory : {Memory::kShared, Memory::kPrivate}) {
    for (const std::uint64_t size : kBesideUcx) {
      const Probe& send = named(probes, named_send(memory, size));
      const std::string figure = "send " + bytes(size) + ", " + memory_name(memory);
      bench.judge_ratio(row_of(size), figure + " / UCX tag_lat", Sense::kAtMost, 0.8, send,
                        named(probes, "UCX tag_lat " + bytes(size)), "ns");
      if (size <= 1024)
        bench.judge_ratio(row_of(size), figure + " / write", Sense::kAtMost, 1.4, send,
                          named(probes, "write " + bytes(size)), "ns");
    }
    for (std::size_t i = 1; i < std::size(kSizes); ++i)
      bench.judge_ratio(
          row_of(kSizes[i]),
          "send " + bytes(kSizes[i]) + " / " + bytes(kSizes[i - 1]) + ", " + memory_name(memory),
          Sense::kAtMost, 1.3, named(probes, named_send(memory, kSizes[i])),
          named(probes, named_send(memory, kSizes[i - 1])), "ns");
  }
}

void judge_rates(Bench& bench) {
  Probes probes;
  for (const std::uint64_t size : kBesideUcx) {
    for (const Memory memory : {Memory::kShared, Memory::kPrivate})
      probes.push_back(
          bench.ours(named_send(memory, size),
                     {.kind = Kind::kStream, .memory = memory, .pace = Pace::kPause, .size = size},
                     Unit::kMillionPerSecond));
    probes.push_back(ucx(bench, "tag_bw", size, 400'000, true));
  }
  bench.run(probes, "message rate by size", bench.options.rounds);
  for (const std::uint64_t size : kBesideUcx) {
    for (const Memory memory : {Memory::kShared, Memory::kPrivate})
      bench.judge_ratio(
          row_of(size),
          "rate of sends of " + bytes(size) + ", " + memory_name(memory) + " / UCX tag_bw",
          Sense::kAtLeast, 1.5, named(probes, named_send(memory, size)),
          named(probes, "UCX tag_bw " + bytes(size)), "million/s");
  }
}

}  // namespace

void judge_sizes(Bench& bench) {
  judge_latencies(bench);
  judge_rates(bench);
}

}  // namespace verbatim::perf
