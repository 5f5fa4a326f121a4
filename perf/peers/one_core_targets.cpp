// SPDX-License-Identifier: BSD-2-Clause
// R18: two processes that poll on one processor, 8 bytes one way: whoever finds nothing has to give
// the processor away, or each message takes a turn of the kernel's clock. That one waits for the
// other's processor is what is measured, and no disturbance. Of our polling styles the best stands.
// And what that costs where each has a processor of its own: the same messages by a library that
// never gives it away.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "perf/peers/bench.hpp"

namespace verbatim::perf {

namespace {

/// Messages between the ends of `pair`, in each polling style.
void add_styles(Probes& probes, Bench& bench, Pair& pair, const std::string& name,
                bool shares_processor) {
  for (const Pace pace : kAllPaces) {
    auto cell = std::make_shared<Cell>();
    cell->name = name + ", " + name_of(pace);
    cell->request = {.kind = Kind::kPingPong, .operation = Operation::kSend, .pace = pace};
    calibrate(pair, *cell, bench.options.block_ms);
    probes.push_back({cell->name,
                      [&pair, cell, shares_processor]() -> std::optional<Taken> {
                        const Reply reply = pair.run(cell->request, cell->name);
                        if (shares_processor)
                          return Taken{reply.ns_per_operation() / 1e3, 0, false};
                        return taken(reply, reply.ns_per_operation());
                      },
                      {},
                      {}});
  }
}

/// The library's own way to wait for who starts meanwhile, whatever the user has chosen.
class PollingChoice {
 public:
  PollingChoice() {
    if (const char* const own = std::getenv(kName)) own_ = own;
    unsetenv(kName);
  }
  ~PollingChoice() {
    if (own_) setenv(kName, own_->c_str(), 1);
  }
  PollingChoice(const PollingChoice&) = delete;
  PollingChoice& operator=(const PollingChoice&) = delete;

  static constexpr const char* kName = "VERBATIM_POLL";

 private:
  std::optional<std::string> own_;
};

void judge_own_processors(Bench& bench) {
  const char* const figure = "send/recv 8 B, each with a processor / the same never giving it away";
  Probes probes;
  if (!bench.cores.distinct) {
    probes.push_back({"giving", {}, "there is one processor", {}});
    bench.judge_ratio("R18", figure, Sense::kAtMost, 1.05, probes[0], probes[0], "ns");
    return;
  }
  const PollingChoice choice;
  Pair giving(bench.cores, bench.fabric);
  setenv(PollingChoice::kName, "spin", 1);
  Pair spinning(bench.cores, bench.fabric);
  unsetenv(PollingChoice::kName);
  for (Pair* const pair : {&giving, &spinning}) pair->run({.kind = Kind::kConnect}, "connect");
  add_styles(probes, bench, giving, "giving", false);
  add_styles(probes, bench, spinning, "spinning", false);
  bench.run(probes, "two processors", bench.options.rounds);
  bench.judge_ratio("R18", figure, Sense::kAtMost, 1.05, best_of(probes, "giving", Sense::kAtMost),
                    best_of(probes, "spinning", Sense::kAtMost), "ns");
}

}  // namespace

void judge_one_core(Bench& bench) {
  const CorePair one_core = {bench.cores.near, bench.cores.near, false, "one core"};
  Pair pair(one_core, bench.fabric);
  pair.run({.kind = Kind::kConnect}, "connect on one processor");
  Probes probes;
  add_styles(probes, bench, pair, "on one processor", true);
  bench.run(probes, "one processor", bench.options.rounds);
  bench.judge_value("R18", "send/recv 8 B one way, both polling on one processor", Sense::kAtMost,
                    20, best_of(probes, "on one processor", Sense::kAtMost), "us");
  judge_own_processors(bench);
}

}  // namespace verbatim::perf
