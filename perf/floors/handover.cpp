// SPDX-License-Identifier: BSD-2-Clause
// Floor F1: the time one cache line needs from one core to another. Each end writes its own line
// and polls the other's; half a round trip is one hand-over. No message between two cores of this
// machine can be faster than the best of the four polling styles. Some processors need longer when
// who polls a line may not write it, which is how a process of the library sees what others send.
#include "perf/ends/end.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::perf {
namespace {

template <Pace kPace>
void await(const std::atomic<std::uint64_t>& line, std::uint64_t value) {
  while (line.load(std::memory_order_acquire) != value) pace_once<kPace>();
}

template <Pace kPace>
void answer(End& end, const std::atomic<std::uint64_t>& line, std::uint64_t rounds) {
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    await<kPace>(line, i);
    end.own_line().store(i, std::memory_order_release);
  }
}

template <Pace kPace>
void ask(End& end, const std::atomic<std::uint64_t>& line, std::uint64_t rounds) {
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    end.own_line().store(i, std::memory_order_release);
    await<kPace>(line, i);
  }
}

template <Pace kPace>
void ask_stamped(End& end, const std::atomic<std::uint64_t>& line, std::uint64_t rounds) {
  Histogram& stamps = end.shared().stamps;
  std::uint64_t before = ticks();
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    end.own_line().store(i, std::memory_order_release);
    await<kPace>(line, i);
    const std::uint64_t after = ticks();
    stamps.record(after - before);
    before = after;
  }
}

}  // namespace

void run_handover(End& end, const Request& request, Reply& reply) {
  const std::atomic<std::uint64_t>& line = end.peer_line(request.read_only != 0);
  end.own_line().store(0, std::memory_order_release);
  if (end.is_near()) end.shared().stamps.clear();
  end.meet();
  with_pace(request.pace, [&](auto pace) {
    if (!end.is_near()) return answer<pace()>(end, line, request.iterations);
    const std::uint64_t start = now_ns();
    if (request.stamped != 0) {
      ask_stamped<pace()>(end, line, request.iterations);
    } else {
      ask<pace()>(end, line, request.iterations);
    }
    reply.elapsed_ns = static_cast<double>(now_ns() - start);
  });
  reply.operations = 2.0 * static_cast<double>(request.iterations);
  reply.bytes = 8 * reply.operations;
  reply.ns_per_stamp = request.stamped != 0 ? ns_per_tick() / 2 : 0;
}

}  // namespace verbatim::perf
