// SPDX-License-Identifier: BSD-2-Clause
// R17: SENDs of 8 bytes to each of 1000 connections in turn, against the same to one connection:
// how much of the rate is left when nothing of a connection is in the caches. With receives of each
// connection's own, with shared ones, and as datagrams to 1000 queue pairs, from one and from as many;
// in every case 64 messages are under way.
#include <algorithm>
#include <memory>

#include "perf/peers/bench.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kManyConnections = 1000;

Probe in_turn(Bench& bench, Pair& pair, const std::string& name, bool from_one = false) {
  auto cell = std::make_shared<Cell>();
  cell->name = name;
  cell->request = {.kind = Kind::kInTurn, .from_one = from_one};
  cell->unit = Unit::kMillionPerSecond;
  return {name,
          [&bench, &pair, cell, ready = false]() mutable -> std::optional<Taken> {
            if (!ready) {
              // The first messages of a connection are dearer than those that follow; so all have
              // had some, and each block goes around.
              cell->request.iterations = 2 * kManyConnections;
              pair.run(cell->request, "first messages");
              calibrate(pair, *cell, bench.options.block_ms);
              cell->request.iterations = std::max(cell->request.iterations, kManyConnections);
            }
            ready = true;
            const Reply reply = pair.run(cell->request, cell->name);
            return taken(reply, value_of(reply, cell->unit));
          },
          {},
          {}};
}

}  // namespace

void judge_many(Bench& bench) {
  for (const Service service : {Service::kReliable, Service::kShared, Service::kDatagram}) {
    Pair many(bench.cores, bench.fabric);
    Pair one(bench.cores, bench.fabric);
    many.run({.kind = Kind::kConnectMany, .service = service, .iterations = kManyConnections},
             "connect 1000 QPs");
    one.run({.kind = Kind::kConnectMany, .service = service, .iterations = 1}, "connect 1 QP");
    Probes probes;
    probes.push_back(in_turn(bench, many, "1000 QPs"));
    probes.push_back(in_turn(bench, one, "1 QP"));
    if (service == Service::kDatagram) probes.push_back(in_turn(bench, many, "to 1000 QPs", true));
    const std::string receives = service == Service::kShared     ? ", shared receives"
                                 : service == Service::kDatagram ? ", datagrams from as many"
                                                                 : ", receives of their own";
    bench.run(probes, "SENDs to many in turn" + receives, bench.options.rounds);
    bench.judge_ratio("R17", "rate of sends to 1000 queue pairs in turn / to one" + receives,
                      Sense::kAtLeast, 0.7, probes[0], probes[1], "million/s");
    if (service == Service::kDatagram)
      bench.judge_ratio("R17", "rate of datagrams from one queue pair to 1000 in turn / to one",
                        Sense::kAtLeast, 0.7, probes[2], probes[1], "million/s");
  }
}

}  // namespace verbatim::perf
