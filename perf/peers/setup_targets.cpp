// SPDX-License-Identifier: BSD-2-Clause
// R13, set-up; R14, the size of programs; R16 and memory, what connections hold. How each is measured:
//  - connect: both ends start from an open device. The clock runs from the first ibv_create_qp to
//    the moment both have all their QPs in RTS: creation, the exchange of 1000 addresses over a
//    socket, three ibv_modify_qp each, and a last word from the peer. New processes for every
//    round, so first contact between the two is in it.
//  - registration: ibv_reg_mr and ibv_dereg_mr of malloc memory with remote access, with a
//    connected peer that is idle (judged), and one that writes into another region meanwhile
//    (shown: the price of the promise that nobody touches the range afterwards).
//  - start: from before the first posix_spawn until the second process reports the message, minus
//    the same for two processes that say hello over a socket (footprint/*.c; both static C
//    programs, in turn, each half pinned to its core).
//  - memory: footprint/memory_use.hpp says what is counted; per process means half of what the two
//    hold together.
#include <array>

#include "perf/footprint/couple.hpp"
#include "perf/footprint/program_size.hpp"
#include "perf/peers/bench.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kMany = 1000;

Probe registration(Bench& bench, const std::string& name, std::uint64_t size,
                   std::uint32_t writing) {
  return {name,
          [&bench, name, size, writing]() -> std::optional<Taken> {
            const Request request{
                .kind = Kind::kRegister, .batch = writing, .size = size, .iterations = 2000};
            const Reply reply = bench.pair().run(request, name);
            return taken(reply, reply.ns_per_operation() / 1000);
          },
          {},
          {}};
}

Blocks difference(const Blocks& value, const Blocks& reference) {
  Blocks result;
  for (std::size_t i = 0; i < value.size(); ++i) {
    result.add(value.values()[i] - reference.values()[i]);
  }
  return result;
}

void judge_connect(Bench& bench) {
  Blocks times[4];  // all, create, exchange, modify
  Probes probes;
  probes.push_back({"connect 1000 QPs",
                    [&]() -> std::optional<Taken> {
                      Pair pair(bench.cores, bench.fabric);
                      const Reply reply = pair.run(
                          {.kind = Kind::kConnectMany, .iterations = kMany}, "connect 1000 QPs");
                      for (int i = 0; i < 3; ++i) times[i + 1].add(reply.extra[i] / 1e6);
                      return taken(reply, reply.elapsed_ns / 1e6);
                    },
                    {},
                    {}});
  bench.run(probes, "set-up", bench.options.rounds);
  bench.judge_value("R13", "connect 1000 QPs", Sense::kAtMost, 20, probes[0], "ms");
  char text[96];
  std::snprintf(text, sizeof text, "create %.1f, exchange %.1f, modify %.1f ms", times[1].median(),
                times[2].median(), times[3].median());
  bench.verdicts.back().detail = text;
}

void judge_registration(Bench& bench) {
  Probes probes;
  probes.push_back(registration(bench, "4 KiB", 4096, 0));
  probes.push_back(registration(bench, "8 MiB", kAreaBytes, 0));
  probes.push_back(registration(bench, "4 KiB, peer writing", 4096, 1));
  bench.run(probes, "registration", bench.options.rounds);
  bench.judge_value("R13", "register + deregister 4 KiB, peer idle", Sense::kAtMost, 1, probes[0],
                    "us");
  bench.judge_value("R13", "register + deregister 8 MiB, peer idle", Sense::kAtMost, 1, probes[1],
                    "us");
  bench.judge_value("R13", "register + deregister 4 KiB, peer writing elsewhere", Sense::kShown, 0,
                    probes[2], "us");
}

void judge_start(Bench& bench) {
  Probes probes;
  for (const char* program : {"first_message", "hello"}) {
    probes.push_back({program,
                      [&bench, program]() -> std::optional<Taken> {
                        const StartTime time = time_to_message({path_beside_own(program), {}},
                                                               bench.cores, bench.fabric);
                        return Taken{time.ns / 1e6, time.waited_ns, time.waited_ns > time.ns / 20};
                      },
                      {},
                      {}});
  }
  bench.run(probes, "start", 3 * bench.options.rounds);
  Verdict verdict{
      "R13", "start of both processes to first message, beyond hello", "ms", Sense::kAtMost,
      3,     difference(probes[0].blocks, probes[1].blocks),           {},   {}};
  char text[96];
  std::snprintf(text, sizeof text, "first_message %.2f, hello %.2f ms", probes[0].blocks.median(),
                probes[1].blocks.median());
  verdict.detail = text;
  verdict.disturbed = probes[0].is_unreliable() || probes[1].is_unreliable();
  bench.verdicts.push_back(std::move(verdict));
}

MemoryUse use_of(const Pair& pair) {
  return memory_use(std::array{pair.near_pid(), pair.far_pid()});
}

void judge_bytes(Bench& bench, const char* row, const char* figure, double target, double value,
                 const char* unit) {
  bench.verdicts.push_back({row, figure, unit, Sense::kAtMost, target, Blocks({value}), {}, {}});
}

void judge_program(Bench& bench, const char* figure, const std::string& program, double target) {
  Verdict size{"R14", figure, "MB", Sense::kAtMost, target, {}, program, {}};
  const auto bytes = stripped_size(path_beside_own(program));
  if (bytes)
    size.values.add(static_cast<double>(*bytes) / 1e6);
  else
    size.missing = program + " is not built";
  bench.verdicts.push_back(std::move(size));
}

void judge_programs(Bench& bench) {
  judge_program(bench, "static stripped C program, shm and hwloc", "first_message_shm", 1.8);
  judge_program(bench, "static stripped C program, all providers", "first_message", 2.2);
  judge_program(bench, "the tool `verbatim`, stripped", "cli/verbatim", 4);
}

void judge_idle(Bench& bench) {
  const auto hello = idle_memory({path_beside_own("hello"), {}}, bench.cores, bench.fabric);
  const auto idle =
      idle_memory({path_beside_own("first_message"), "idle"}, bench.cores, bench.fabric);
  const double beyond = static_cast<double>(idle.total()) - static_cast<double>(hello.total());
  judge_bytes(bench, "memory", "per idle process with one QP, beyond hello", 1,
              beyond / 2 / 1048576, "MiB");
  char text[96];
  std::snprintf(text, sizeof text, "shared memory files %.0f KiB of it",
                static_cast<double>(idle.shared) / 2 / 1024);
  bench.verdicts.back().detail = text;
}

/// Of what two processes with many queue pairs hold more than those with one.
double per_process(const Pair& many, const Pair& few) {
  const double more =
      static_cast<double>(use_of(many).total()) - static_cast<double>(use_of(few).total());
  return more / 2;
}

void judge_connections(Bench& bench) {
  Pair single(bench.cores, bench.fabric);
  Pair many(bench.cores, bench.fabric);
  single.run({.kind = Kind::kConnectMany, .iterations = 1}, "connect 1 QP");
  many.run({.kind = Kind::kConnectMany, .iterations = 1 + kMany}, "connect 1001 QPs");
  const auto per_qp = [&] { return per_process(many, single) / static_cast<double>(kMany) / 1024; };
  judge_bytes(bench, "R16", "per connected QP, never used (depth 128)", 4, per_qp(), "KiB");
  const auto use_all = [&](std::uint32_t messages) {
    for (Pair* pair : {&single, &many})
      pair->run({.kind = Kind::kUseMany, .batch = messages}, "use all QPs");
  };
  use_all(1);
  judge_bytes(bench, "R16", "per drained QP, one message each way (depth 128)", 12, per_qp(),
              "KiB");
  use_all(128);
  judge_bytes(bench, "memory", "per QP after 128 messages each way (depth 128)", 40, per_qp(),
              "KiB");
}

void judge_sharing(Bench& bench) {
  constexpr std::uint64_t kConnections = 256;
  constexpr std::uint32_t kMessages = 64;
  Pair few(bench.cores, bench.fabric);
  Pair many(bench.cores, bench.fabric);
  const auto connect = [](Pair& pair, std::uint64_t count) {
    pair.run({.kind = Kind::kConnectMany, .service = Service::kShared, .iterations = count},
             "connect QPs that share receives");
  };
  connect(few, 1);
  connect(many, kConnections);
  many.run({.kind = Kind::kUseMany, .batch = kMessages}, "use QPs that share receives");
  judge_bytes(bench, "R16", "256 connections on a shared receive queue of 4096, 64 messages each",
              16, per_process(many, few) / 1048576, "MiB");
}

}  // namespace

void judge_setup(Bench& bench) {
  judge_connect(bench);
  judge_registration(bench);
  judge_start(bench);
}

void judge_memory(Bench& bench) {
  if (bench.wants("R14")) judge_programs(bench);
  if (bench.wants("memory")) judge_idle(bench);
  if (bench.wants("memory") || bench.wants("R16")) judge_connections(bench);
  if (bench.wants("R16")) judge_sharing(bench);
}

}  // namespace verbatim::perf
