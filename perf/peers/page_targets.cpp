// SPDX-License-Identifier: BSD-2-Clause
// R6's and R7's fresh writes with pages of 2 MiB against pages of 4 KiB: the same two processes,
// the same regions, whose memory gets other pages before each block. Shown, not judged: what it
// gains is the machine's.
#include <memory>

#include "perf/peers/bench.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kSmallPage = 4096;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
/// The ends of a block that is not aligned to huge pages have small ones.
constexpr double kMostlyHuge = 0.75;

/// Gives both ends new pages, and tells which came.
bool are_huge(Pair& pair, Memory memory, std::uint64_t page) {
  const Reply made = pair.run({.kind = Kind::kPages, .memory = memory, .size = page}, "pages");
  return made.extra[0] >= kMostlyHuge;
}

Probe write_between(Bench& bench, Pair& pair, Memory memory, std::uint64_t size,
                    std::uint64_t page) {
  auto cell = std::make_shared<Cell>();
  cell->name = "pages of " + size_text(page);
  cell->request = {.kind = Kind::kTrain,
                   .operation = Operation::kWrite,
                   .memory = memory,
                   .mover = Mover::kVerbs,
                   .size = size};
  cell->unit = Unit::kGigabytesPerSecond;
  return {cell->name,
          [&bench, &pair, cell, page, ready = false]() mutable -> std::optional<Taken> {
            if (are_huge(pair, cell->request.memory, page) != (page == kHugePage))
              return std::nullopt;
            if (!ready) calibrate(pair, *cell, bench.options.block_ms);
            ready = true;
            // The peer maps the new pages at its first visit.
            pair.run(cell->request, cell->name);
            const Reply reply = pair.run(cell->request, cell->name);
            return taken(reply, value_of(reply, cell->unit));
          },
          {},
          {}};
}

}  // namespace

void judge_pages(Bench& bench) {
  Pair pair(bench.cores, bench.fabric);
  pair.run({.kind = Kind::kConnect}, "connect");
  for (const Memory memory : {Memory::kShared, Memory::kPrivate}) {
    const bool possible = are_huge(pair, memory, kHugePage);
    for (const std::uint64_t size :
         {std::uint64_t{65536}, std::uint64_t{1048576}, std::uint64_t{4194304}}) {
      Probes probes;
      for (const std::uint64_t page : {kHugePage, kSmallPage})
        probes.push_back(write_between(bench, pair, memory, size, page));
      if (!possible) probes[0].missing = "this system gives no huge pages (transparent_hugepage)";
      const std::string figure = size_text(size) + " " + name_of(memory) + " write";
      bench.run(probes, figure + " by pages", bench.options.rounds);
      bench.judge_ratio("pages", figure + ", pages of 2 MiB / of 4 KiB", Sense::kShown, 0,
                        probes[0], probes[1], "GB/s");
    }
  }
}

}  // namespace verbatim::perf
