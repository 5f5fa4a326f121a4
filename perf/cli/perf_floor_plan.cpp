// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_floor_plan.hpp"

#include <algorithm>
#include <utility>

#include "perf/floors/floors.hpp"

namespace verbatim::cli {
namespace {

using perf::Floor;
using perf::Kind;
using perf::Mover;
using perf::Operation;
using perf::Request;

constexpr std::uint64_t kWord = 8, kLine = 64, kPage = 4096, kLongestChunk = 65536;

std::uint64_t rounded_up(std::uint64_t size, std::uint64_t unit) {
  return (std::max<std::uint64_t>(size, 1) + unit - 1) / unit * unit;
}

class Planner {
 public:
  Planner(const PerfOptions& options, bool by_memory) : o_{options}, by_memory_{by_memory} {}

  PerfFloorPlan take() { return std::move(plan_); }

  void of_two_hosts() {
    plan_.sizes.push_back({0, {}});
    add(hand_over(), PerfLimit::kNone);
    add(memcpy_of(std::max<std::uint64_t>(o_.all_sizes ? kLongestChunk : o_.size, kPage)),
        PerfLimit::kNone);
  }

  void of_collective(const PerfFloorOfCollective& one, bool is_first) {
    plan_.sizes.push_back({one.size, {}});
    // Beside each of many sizes it would say nothing that the first have not said.
    if (is_first || one.moved <= kLine) add(hand_over(), PerfLimit::kAlways);
    // A copy of less takes no longer.
    copies_both_ways(Mover::kMapped, std::min(one.moved, perf::kAreaBytes));
  }

  void of_this_host(std::uint32_t size) {
    plan_.sizes.push_back({size, {}});
    if (o_.test.latency())
      latency(size);
    else
      bandwidth(size);
  }

 private:
  bool one_process() const { return o_.ends == PerfEnds::kProcess; }

  /// In nanoseconds. No message comes from another core sooner than one of its cache lines.
  void latency(std::uint32_t size) {
    // What is fetched within one process may be in the caches of who fetches it.
    const bool comes_from_there = !o_.test.fetches() || !one_process();
    const bool has_others = by_memory_ && size <= perf::kAreaBytes;
    // Beside each of many sizes it would say nothing that the first have not said.
    if (!o_.all_sizes || size <= kLine || !has_others)
      add(hand_over(), comes_from_there ? PerfLimit::kAlways : PerfLimit::kNone);
    if (!has_others) return;
    if (o_.events && o_.test.verb == PerfVerb::kSend) {
      return add({"", "eventfd ping-pong", true, false, {of(Kind::kEventPingPong, kWord)}},
                 PerfLimit::kAlways);
    }
    // What no other process has written before is in the caches of the core that copies it.
    if (one_process() && o_.test.verb != PerfVerb::kAtomic) {
      if (size >= kPage) add(memcpy_of(size, true), PerfLimit::kAlways);
      return;
    }
    switch (o_.test.verb) {
      case PerfVerb::kSend:
        return copies_both_ways(Mover::kMapped, size);
      case PerfVerb::kWrite:
        return copies_both_ways(Mover::kCma, size);
      case PerfVerb::kRead:
        return add(kernel_copy(Operation::kRead, size, true), PerfLimit::kAlways);
      case PerfVerb::kAtomic:
        return;
    }
  }

  /// In GB/s of one direction.
  void bandwidth(std::uint32_t size) {
    if (o_.test.verb == PerfVerb::kAtomic) return add(hand_over(), PerfLimit::kNone);
    add(memcpy_of(size), PerfLimit::kAlways);
    if (!by_memory_ || one_process()) return;
    const std::uint64_t copied = std::min<std::uint64_t>(size, perf::kAreaBytes);
    const bool sends = o_.test.verb == PerfVerb::kSend;
    const Operation operation =
        o_.test.verb == PerfVerb::kRead ? Operation::kRead : Operation::kWrite;
    add(kernel_copy(operation, copied, false), sends ? PerfLimit::kOneOf : PerfLimit::kAlways);
    if (!sends) return;
    Request ring = of(Kind::kFloor, std::clamp(rounded_up(size, kLine), kLine, kLongestChunk));
    ring.floor = Floor::kPipeline;
    add({"F5", "copied in and out through a ring of 8 chunks", false, true, {ring}},
        PerfLimit::kOneOf);
  }

  void copies_both_ways(Mover mover, std::uint64_t size) {
    // Of one word that is the hand-over.
    if (mover == Mover::kMapped && size <= kWord) return;
    Request request = of(Kind::kCopyPingPong, rounded_up(size, kWord));
    request.mover = mover;
    request.pace = perf::Pace::kPause;
    const char* const name = mover == Mover::kCma ? "copy ping-pong cma" : "copy ping-pong mapped";
    add({"", name, true, true, {request}}, PerfLimit::kAlways);
  }

  static Request of(Kind kind, std::uint64_t size) {
    Request request;
    request.kind = kind;
    request.size = size;
    return request;
  }
  static Request single(Mover mover, Operation operation, std::uint64_t size) {
    Request request = of(Kind::kSingleCopy, size);
    request.mover = mover;
    request.operation = operation;
    return request;
  }
  static PerfFloor hand_over() {
    PerfFloor floor{"F1", "cache line from core to core", true, true, {}};
    for (const perf::Pace pace : perf::kAllPaces) {
      Request request = of(Kind::kHandover, kWord);
      request.pace = pace;
      floor.ways.push_back(request);
    }
    return floor;
  }
  static PerfFloor memcpy_of(std::uint64_t size, bool is_time = false) {
    Request request = of(Kind::kFloor, std::min(size, perf::kLargestMemcpy));
    request.floor = Floor::kMemcpy;
    request.batch = 0;
    return {"F2", "memcpy, one core", is_time, false, {request}};
  }
  static PerfFloor kernel_copy(Operation operation, std::uint64_t size, bool is_time) {
    const char* const name = operation == Operation::kRead ? "one copy by the kernel (CMA)"
                                                           : "one copy by the kernel (CMA), write";
    return {"F4", name, is_time, false, {single(Mover::kCma, operation, size)}};
  }

  /// The same floor of two sizes of the test is measured once.
  void add(PerfFloor floor, PerfLimit limit) {
    const auto same = std::ranges::find_if(plan_.floors, [&](const PerfFloor& other) {
      return other.name == floor.name && other.size() == floor.size() &&
             other.is_time == floor.is_time;
    });
    const auto place = static_cast<std::size_t>(same - plan_.floors.begin());
    if (same == plan_.floors.end()) plan_.floors.push_back(std::move(floor));
    plan_.sizes.back().lines.push_back({place, limit});
  }

  const PerfOptions& o_;
  bool by_memory_;
  PerfFloorPlan plan_;
};

}  // namespace

PerfFloorPlan plan_floors(const PerfOptions& options, bool by_memory,
                          const std::vector<std::uint32_t>& sizes) {
  Planner planner(options, by_memory);
  if (options.ends == PerfEnds::kOne) {
    planner.of_two_hosts();
  } else {
    for (const std::uint32_t size : sizes) planner.of_this_host(size);
  }
  return planner.take();
}

PerfFloorPlan plan_collective_floors(std::span<const PerfFloorOfCollective> sizes) {
  const PerfOptions messages({PerfVerb::kSend, PerfMeasure::kLatency});
  Planner planner(messages, true);
  for (const PerfFloorOfCollective& one : sizes) planner.of_collective(one, &one == sizes.data());
  return planner.take();
}

}  // namespace verbatim::cli
