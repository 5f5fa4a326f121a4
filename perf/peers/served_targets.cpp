// SPDX-License-Identifier: BSD-2-Clause
// What only the process that owns the memory can perform: atomics on ordinary memory, and WRITEs
// and READs of it where the kernel copies nothing between processes. Two pairs are measured in
// turn, one of them with VERBATIM_SHM_CMA=off. The far end polls memory: its service thread needs
// one of the two cores.
#include <cstdlib>
#include <memory>

#include "perf/peers/bench.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::perf {
namespace {

/// Two ends whose copies between processes are as the kernel has them, or are refused.
class Ends {
 public:
  Ends(Bench& bench, bool refused) {
    if (refused) setenv("VERBATIM_SHM_CMA", "off", 1);
    pair_ = std::make_unique<Pair>(bench.cores, bench.fabric);
    pair_->run({.kind = Kind::kConnect}, "connect");
    if (refused) unsetenv("VERBATIM_SHM_CMA");
  }
  Pair& pair() { return *pair_; }

 private:
  std::unique_ptr<Pair> pair_;
};

Probe probe(Bench& bench, Ends& ends, const std::string& name, const Request& request, Unit unit) {
  auto cell = std::make_shared<Cell>();
  cell->name = name;
  cell->request = request;
  cell->unit = unit;
  return {name,
          [&bench, &ends, cell, ready = false]() mutable -> std::optional<Taken> {
            if (!ready) calibrate(ends.pair(), *cell, bench.options.block_ms);
            ready = true;
            const Reply reply = ends.pair().run(cell->request, cell->name);
            return taken(reply, value_of(reply, cell->unit));
          },
          {},
          {}};
}

void judge_moves(Bench& bench, Ends& copied, Ends& served) {
  constexpr std::uint64_t kLong = std::uint64_t{1} << 20;
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{65536}, std::uint64_t{131072},
                                   std::uint64_t{262144}, kLong}) {
    Probes probes;
    const auto add = [&](Ends& ends, const char* name, Kind kind, Operation operation) {
      probes.push_back(
          probe(bench, ends, name,
                {.kind = kind, .operation = operation, .memory = Memory::kPrivate, .size = size},
                Unit::kNanoseconds));
    };
    add(served, "send", Kind::kPingPong, Operation::kSend);
    add(copied, "copied write", Kind::kCompletion, Operation::kWrite);
    add(served, "served write", Kind::kCompletion, Operation::kWrite);
    add(copied, "copied read", Kind::kCompletion, Operation::kRead);
    add(served, "served read", Kind::kCompletion, Operation::kRead);
    const std::string of = size_text(size);
    bench.run(probes, of + " of ordinary memory", bench.options.rounds);
    // Of a short one the wake-up is most.
    const Sense sense = size == kLong ? Sense::kAtMost : Sense::kShown;
    for (const char* what : {"write", "read"}) {
      const Probe& by_itself = named(probes, std::string("copied ") + what);
      const Probe& by_other = named(probes, std::string("served ") + what);
      bench.judge_ratio("served", of + " " + what + ", CMA off / send one way", sense,
                        size == kLong ? 2 : 0, by_other, named(probes, "send"), "ns");
      bench.judge_ratio("served", of + " " + what + ", CMA off / CMA", Sense::kShown, 0, by_other,
                        by_itself, "ns");
    }
  }
}

void judge_atomics(Bench& bench, Ends& copied, Ends& served) {
  Probes single, many;
  for (const Operation operation : {Operation::kFetchAdd, Operation::kCompareSwap}) {
    for (Ends* const ends : {&copied, &served}) {
      const std::string name =
          std::string(name_of(operation)) + (ends == &copied ? ", CMA" : ", CMA off");
      const Request one{
          .kind = Kind::kCompletion, .operation = operation, .memory = Memory::kPrivate};
      const Request stream{
          .kind = Kind::kStream, .operation = operation, .memory = Memory::kPrivate};
      single.push_back(probe(bench, *ends, name, one, Unit::kNanoseconds));
      many.push_back(probe(bench, *ends, name, stream, Unit::kMillionPerSecond));
    }
  }
  bench.run(single, "atomics on ordinary memory", bench.options.rounds);
  bench.run(many, "atomics on ordinary memory, many in flight", bench.options.rounds);
  for (const Probe& each : single)
    bench.judge_value("served", each.name + ", ordinary memory", Sense::kAtMost, 13'000, each,
                      "ns");
  for (const Probe& each : many)
    bench.judge_value("served", each.name + ", 128 outstanding", Sense::kAtLeast, 1, each,
                      "million/s");
}

}  // namespace

void judge_served(Bench& bench) {
  Ends copied(bench, false);
  Ends served(bench, true);
  judge_moves(bench, copied, served);
  judge_atomics(bench, copied, served);
}

}  // namespace verbatim::perf
