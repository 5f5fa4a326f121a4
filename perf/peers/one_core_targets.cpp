// SPDX-License-Identifier: BSD-2-Clause
// R18: two processes that poll on one processor, 8 bytes one way: whoever finds nothing has to give
// the processor away, or each message takes a turn of the kernel's clock. That one waits for the
// other's processor is what is measured, and no disturbance. Of our polling styles the best stands.
#include <memory>
#include <string>

#include "perf/peers/bench.hpp"

namespace verbatim::perf {

void judge_one_core(Bench& bench) {
  const CorePair one_core = {bench.cores.near, bench.cores.near, false, "one core"};
  Pair pair(one_core, bench.fabric);
  pair.run({.kind = Kind::kConnect}, "connect on one processor");
  Probes probes;
  for (const Pace pace : kAllPaces) {
    auto cell = std::make_shared<Cell>();
    cell->name = std::string("on one processor, ") + name_of(pace);
    cell->request = {.kind = Kind::kPingPong, .operation = Operation::kSend, .pace = pace};
    calibrate(pair, *cell, bench.options.block_ms);
    probes.push_back({cell->name,
                      [&pair, cell]() -> std::optional<Taken> {
                        const Reply reply = pair.run(cell->request, cell->name);
                        return Taken{reply.ns_per_operation() / 1e3, 0, false};
                      },
                      {},
                      {}});
  }
  bench.run(probes, "one processor", bench.options.rounds);
  bench.judge_value("R18", "send/recv 8 B one way, both polling on one processor", Sense::kAtMost,
                    20, best_of(probes, "on one processor", Sense::kAtMost), "us");
}

}  // namespace verbatim::perf
