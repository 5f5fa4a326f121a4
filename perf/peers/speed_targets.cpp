// SPDX-License-Identifier: BSD-2-Clause
// R1, R2, R3: 8-byte latency against the hand-over floor, UCX and libfabric. R5: 8-byte message
// rate. Our ping-pongs are measured with each of the four polling styles, as the floor is, and the
// best style stands for us: how a program polls is its own choice. UCX and libfabric poll as their
// own programs do.
#include "perf/peers/bench.hpp"
#include "perf/peers/libfabric.hpp"
#include "perf/peers/ucx.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

void add_paced(Bench& bench, Probes& probes, const std::string& name, Request request) {
  for (const Pace pace : kAllPaces) {
    request.pace = pace;
    probes.push_back(bench.ours(name + " " + name_of(pace), request, Unit::kNanoseconds));
  }
}

Taken taken_from(const UcxResult& result, double value) {
  return {value, result.waited_ns, result.waited_ns > kLostInPrograms};
}

Probe ucx_latency(Bench& bench, const char* test) {
  return bench.theirs(std::string("UCX ") + test, is_installed("ucx_perftest"), "ucx-utils",
                      [&bench, test] {
                        const UcxResult result = run_ucx({test, 8, 200'000}, bench.cores);
                        return taken_from(result, result.latency_ns());
                      });
}

Probe ucx_rate(Bench& bench, const char* test, std::uint64_t count) {
  return bench.theirs(std::string("UCX ") + test, is_installed("ucx_perftest"), "ucx-utils",
                      [&bench, test, count] {
                        const UcxResult result = run_ucx({test, 8, count}, bench.cores);
                        return taken_from(result, result.messages_per_second / 1e6);
                      });
}

}  // namespace

void judge_latency(Bench& bench) {
  Probes probes;
  add_paced(bench, probes, "F1", {.kind = Kind::kHandover});
  add_paced(bench, probes, "write", {.kind = Kind::kPingPong, .operation = Operation::kWrite});
  add_paced(bench, probes, "send", {.kind = Kind::kPingPong, .operation = Operation::kSend});
  const auto send_by = [&](const char* name, Service service) {
    add_paced(bench, probes, name,
              {.kind = Kind::kPingPong, .operation = Operation::kSend, .service = service});
  };
  add_paced(bench, probes, "domain write",
            {.kind = Kind::kPingPong, .operation = Operation::kWrite, .service = Service::kDomain});
  send_by("shared send", Service::kShared);
  send_by("datagram send", Service::kDatagram);
  const auto asleep = [&](const char* name, const Request& request) {
    probes.push_back(bench.ours(name, request, Unit::kNanoseconds));
  };
  asleep("eventfd", {.kind = Kind::kEventPingPong});
  asleep("events", {.kind = Kind::kPingPong, .service = Service::kEvents});
  probes.push_back(ucx_latency(bench, "put_lat"));
  probes.push_back(ucx_latency(bench, "am_lat"));
  probes.push_back(
      bench.theirs("libfabric shm", is_installed("fi_pingpong"), "libfabric-bin", [&bench] {
        const PingpongResult result = run_pingpong(8, 100'000, bench.cores);
        return Taken{result.ns, result.waited_ns, result.waited_ns > kLostInPrograms};
      }));
  bench.run(probes, "latency", bench.options.rounds);

  const Probe& floor = best_of(probes, "F1 ", Sense::kAtMost);
  bench.floor_spread = floor.blocks.spread();
  const Probe& write = best_of(probes, "write ", Sense::kAtMost);
  const Probe& send = best_of(probes, "send ", Sense::kAtMost);
  const auto judge = [&](const char* row, const char* figure, double target, const Probe& value,
                         const Probe& reference) {
    if (bench.wants(row))
      bench.judge_ratio(row, figure, Sense::kAtMost, target, value, reference, "ns");
  };
  judge("R1", "write 8 B one way / F1", 1.4, write, floor);
  judge("R1", "write 8 B one way, thread domain / F1", 1.25,
        best_of(probes, "domain write ", Sense::kAtMost), floor);
  judge("R1", "write 8 B one way / UCX put_lat", 1.1, write, named(probes, "UCX put_lat"));
  judge("R2", "send/recv 8 B one way / F1", 1.6, send, floor);
  judge("R2", "send/recv 8 B one way, shared receives / F1", 1.7,
        best_of(probes, "shared send ", Sense::kAtMost), floor);
  judge("R2", "send/recv 8 B one way, UD / F1", 1.8,
        best_of(probes, "datagram send ", Sense::kAtMost), floor);
  judge("R2", "send/recv 8 B, both asleep / eventfd", 1.1, named(probes, "events"),
        named(probes, "eventfd"));
  judge("R2", "send/recv 8 B one way / UCX am_lat", 0.9, send, named(probes, "UCX am_lat"));
  judge("R3", "send/recv 8 B one way / libfabric shm", 0.15, send, named(probes, "libfabric shm"));
}

void judge_rate(Bench& bench) {
  Probes probes;
  for (const std::uint32_t batch : {1u, 32u}) {
    const std::string suffix = batch == 1 ? "" : " in lists";
    for (const Pace pace : kAllPaces) {
      probes.push_back(bench.ours("send" + suffix + ", " + name_of(pace),
                                  {.kind = Kind::kStream, .pace = pace, .batch = batch},
                                  Unit::kMillionPerSecond));
    }
    probes.push_back(bench.ours(
        "write" + suffix, {.kind = Kind::kStream, .operation = Operation::kWrite, .batch = batch},
        Unit::kMillionPerSecond));
  }
  for (const Pace pace : kAllPaces) {
    probes.push_back(bench.ours("domain send, " + std::string(name_of(pace)),
                                {.kind = Kind::kStream, .pace = pace, .service = Service::kDomain},
                                Unit::kMillionPerSecond));
  }
  probes.push_back(bench.ours(
      "domain write",
      {.kind = Kind::kStream, .operation = Operation::kWrite, .service = Service::kDomain},
      Unit::kMillionPerSecond));
  const auto calls = [&](const char* name, Operation operation, Calls by) {
    probes.push_back(bench.ours(
        name, {.kind = Kind::kStream, .operation = operation, .pace = Pace::kPause, .calls = by},
        Unit::kMillionPerSecond));
  };
  calls("filled send", Operation::kSend, Calls::kFilled);
  calls("built send", Operation::kSend, Calls::kBuilt);
  calls("filled write", Operation::kWrite, Calls::kFilled);
  calls("built write", Operation::kWrite, Calls::kBuilt);
  calls("cursor send", Operation::kSend, Calls::kCursor);
  probes.push_back(ucx_rate(bench, "am_bw", 1'000'000));
  probes.push_back(ucx_rate(bench, "put_bw", 4'000'000));
  bench.run(probes, "message rate", bench.options.rounds);

  const char* unit = "million/s";
  const Probe& send = best_of(probes, "send, ", Sense::kAtLeast);
  const Probe& send_lists = best_of(probes, "send in lists, ", Sense::kAtLeast);
  const Probe& write = named(probes, "write");
  bench.judge_value("R5", "send/recv 8 B, single posts", Sense::kAtLeast, 60, send, unit);
  bench.judge_value("R5", "send/recv 8 B, lists of 32", Sense::kAtLeast, 60, send_lists, unit);
  bench.judge_value("R5", "send/recv 8 B, thread domain", Sense::kAtLeast, 90,
                    best_of(probes, "domain send, ", Sense::kAtLeast), unit);
  bench.judge_value("R5", "inline write 8 B, thread domain", Sense::kAtLeast, 100,
                    named(probes, "domain write"), unit);
  // 1 / 1.05: what may be asked of the extended calls.
  constexpr double kAsCheap = 0.95;
  const auto as_cheap = [&](const char* figure, const char* value, const char* reference) {
    bench.judge_ratio("R5", figure, Sense::kAtLeast, kAsCheap, named(probes, value),
                      named(probes, reference), unit);
  };
  as_cheap("send 8 B by ibv_wr_* / filled and posted", "built send", "filled send");
  as_cheap("write 8 B by ibv_wr_* / filled and posted", "built write", "filled write");
  as_cheap("send 8 B, by ibv_start_poll / ibv_poll_cq", "cursor send", "send, pause");
  bench.judge_ratio("R5", "send/recv 8 B, single posts / UCX am_bw", Sense::kShown, 0, send,
                    named(probes, "UCX am_bw"), unit);
  bench.judge_value("R5", "inline write 8 B, single posts", Sense::kAtLeast, 100, write, unit);
  bench.judge_value("R5", "inline write 8 B, lists of 32", Sense::kAtLeast, 100,
                    named(probes, "write in lists"), unit);
  bench.judge_ratio("R5", "inline write 8 B, single posts / UCX put_bw", Sense::kAtLeast, 1.0,
                    write, named(probes, "UCX put_bw"), unit);
}

}  // namespace verbatim::perf
