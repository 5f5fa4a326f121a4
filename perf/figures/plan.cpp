// SPDX-License-Identifier: BSD-2-Clause
#include "perf/figures/plan.hpp"

#include <string>

#include "perf/figures/mpi_rows.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kSmallestForBandwidth = 4096;
constexpr Memory kMemories[] = {Memory::kShared, Memory::kPrivate};

Cell make_cell(Section section, Unit unit, std::string name, const Request& request,
               std::string floor = {}) {
  Cell cell;
  cell.name = std::move(name);
  cell.section = section;
  cell.unit = unit;
  cell.request = request;
  cell.floor = std::move(floor);
  // Single reads of a floor are not interesting by percentile; those of the tests and of F1 are.
  cell.stamped = section == Section::kLatency || request.kind == Kind::kHandover;
  return cell;
}

std::string name_for(const char* what, const Request& request) {
  const std::string through =
      request.service == Service::kReliable ? "" : std::string(name_of(request.service)) + " ";
  return std::string(what) + " " + through + name_of(request.operation) + " " +
         name_of(request.memory) + " " + size_text(request.size) +
         (request.waiting == Waiting::kSpin ? "" : std::string(" ") + name_of(request.waiting)) +
         (request.batch > 1 ? " in lists" : "");
}

void add_floor(Group& group, Unit unit, const std::string& name, const Request& request) {
  group.cells.push_back(make_cell(Section::kFloor, unit, name, request));
}

void add_latency_floors(Group& group, std::uint64_t size) {
  Request request;
  request.size = size;
  request.pace = Pace::kPause;
  request.kind = Kind::kCopyPingPong;
  if (size > 8) {
    request.mover = Mover::kMapped;
    add_floor(group, Unit::kNanoseconds, "copy ping-pong mapped", request);
  }
  request.mover = Mover::kCma;
  add_floor(group, Unit::kNanoseconds, "copy ping-pong cma", request);
  request.kind = Kind::kSingleCopy;
  request.operation = Operation::kRead;
  add_floor(group, Unit::kNanoseconds, "single read cma", request);
  request.mover = Mover::kMapped;
  add_floor(group, Unit::kNanoseconds, "single read mapped", request);
}

// As the floor: the loop that waits belongs to the program, which may choose how it polls.
void add_paced(Group& group, Request request, const std::string& floor) {
  const std::string family = name_for("latency", request);
  for (const Pace pace : kAllPaces) {
    request.pace = pace;
    group.cells.push_back(make_cell(Section::kLatency, Unit::kNanoseconds,
                                    family + " " + name_of(pace), request, floor));
    group.cells.back().variant_of = family;
  }
}

Group latency_group(std::uint64_t size, bool floors_only) {
  Group group;
  group.name = "latency " + size_text(size);
  group.size = size;
  if (size == 8) add_handovers(group);
  add_latency_floors(group, size);
  if (floors_only) return group;
  if (size == 8) {
    Request woken;
    woken.kind = Kind::kEventPingPong;
    add_floor(group, Unit::kNanoseconds, "eventfd ping-pong", woken);
  }
  const std::string reach = size == 8 ? "f1" : "copy ping-pong mapped";
  for (const Memory memory : kMemories) {
    const bool mapped = memory == Memory::kShared;
    Request request;
    request.size = size;
    request.memory = memory;
    const auto add = [&](Operation operation, Kind kind, const std::string& floor) {
      request.operation = operation;
      request.kind = kind;
      request.pace = Pace::kPause;
      if (size == 8 && kind == Kind::kPingPong) return add_paced(group, request, floor);
      group.cells.push_back(make_cell(Section::kLatency, Unit::kNanoseconds,
                                      name_for("latency", request), request, floor));
    };
    add(Operation::kSend, Kind::kPingPong, reach);
    add(Operation::kWrite, Kind::kPingPong, mapped ? reach : "copy ping-pong cma");
    // A mapped read of a few bytes is one load: its floor says nothing about a call with a
    // completion.
    add(Operation::kRead, Kind::kCompletion,
        !mapped                         ? "single read cma"
        : size >= kSmallestForBandwidth ? "single read mapped"
                                        : "");
    if (size != 8) continue;
    if (mapped) {
      request.service = Service::kEvents;
      request.waiting = Waiting::kEvent;
      request.operation = Operation::kSend;
      request.kind = Kind::kPingPong;
      request.pace = Pace::kPause;
      group.cells.push_back(make_cell(Section::kLatency, Unit::kNanoseconds,
                                      name_for("latency", request), request, "eventfd ping-pong"));
      // Beside those that spin and those that sleep, for one table of how to wait.
      for (const Waiting waiting : {Waiting::kAdaptive, Waiting::kYield}) {
        request.waiting = waiting;
        request.service = waiting == Waiting::kYield ? Service::kReliable : Service::kEvents;
        group.cells.push_back(make_cell(Section::kLatency, Unit::kNanoseconds,
                                        name_for("latency", request), request, reach));
      }
      request.waiting = Waiting::kSpin;
      for (const Service service : {Service::kDomain, Service::kShared, Service::kDatagram}) {
        request.service = service;
        add(Operation::kSend, Kind::kPingPong, reach);
        if (service == Service::kDomain) add(Operation::kWrite, Kind::kPingPong, reach);
      }
      request.service = Service::kReliable;
    }
    add(Operation::kFetchAdd, Kind::kCompletion, "");
    add(Operation::kCompareSwap, Kind::kCompletion, "");
  }
  return group;
}

Group rate_group(std::uint64_t size) {
  Group group;
  group.name = "message rate " + size_text(size);
  group.size = size;
  Request request;
  request.size = size;
  if (size == 8) {
    request.kind = Kind::kEmptyCalls;
    add_floor(group, Unit::kNanoseconds, kEmptyCall, request);
  }
  request.kind = Kind::kStream;
  const auto add = [&](Operation operation, Memory memory) {
    request.operation = operation;
    request.memory = memory;
    for (const std::uint32_t batch : {1u, 32u}) {
      request.batch = batch;
      request.calls = Calls::kClassic;
      const std::string classic = name_for("rate", request);
      group.cells.push_back(make_cell(Section::kRate, Unit::kMillionPerSecond, classic, request));
      // The same by the extended calls, which should cost no more: those that build a request, than
      // filling it in and posting it. Those that wait poll; a WRITE waits for so little that its
      // cursor says nothing.
      if (size != 8 || memory != Memory::kShared || operation > Operation::kWrite) continue;
      const std::string filled = classic + " " + name_of(Calls::kFilled);
      for (const Calls calls : {Calls::kFilled, Calls::kBuilt, Calls::kCursor}) {
        if (calls == Calls::kCursor && operation != Operation::kSend) continue;
        request.calls = calls;
        group.cells.push_back(make_cell(Section::kRate, Unit::kMillionPerSecond,
                                        classic + " " + name_of(calls), request,
                                        calls == Calls::kBuilt ? filled : classic));
      }
      request.calls = Calls::kClassic;
      request.service = Service::kDomain;
      group.cells.push_back(make_cell(Section::kRate, Unit::kMillionPerSecond,
                                      name_for("rate", request), request, classic));
      request.service = Service::kReliable;
    }
    request.calls = Calls::kClassic;
  };
  add(Operation::kSend, Memory::kShared);
  add(Operation::kSend, Memory::kPrivate);
  add(Operation::kWrite, Memory::kShared);
  add(Operation::kWrite, Memory::kPrivate);
  add(Operation::kRead, Memory::kShared);
  add(Operation::kRead, Memory::kPrivate);
  if (size == 8) {
    add(Operation::kFetchAdd, Memory::kShared);
    add(Operation::kCompareSwap, Memory::kShared);
  }
  return group;
}

Group bandwidth_group(std::uint64_t size, bool floors_only) {
  Group group;
  group.name = "bandwidth " + size_text(size);
  group.size = size;
  Request request;
  request.size = size;
  request.kind = Kind::kLocalCopy;
  add_floor(group, Unit::kGigabytesPerSecond, "memcpy one core", request);
  request.kind = Kind::kTrain;
  for (const Operation operation : {Operation::kWrite, Operation::kRead}) {
    request.operation = operation;
    request.mover = Mover::kMapped;
    add_floor(group, Unit::kGigabytesPerSecond, std::string("train mapped ") + name_of(operation),
              request);
    request.mover = Mover::kCma;
    add_floor(group, Unit::kGigabytesPerSecond, std::string("train cma ") + name_of(operation),
              request);
  }
  if (floors_only) return group;
  request.mover = Mover::kVerbs;
  for (const Memory memory : kMemories) {
    for (const Operation operation : {Operation::kSend, Operation::kWrite, Operation::kRead}) {
      request.memory = memory;
      request.operation = operation;
      const char* floor_operation = operation == Operation::kRead ? "read" : "write";
      const std::string floor = (memory == Memory::kShared ? "train mapped " : "train cma ");
      request.kind = Kind::kTrain;
      group.cells.push_back(make_cell(Section::kBandwidth, Unit::kGigabytesPerSecond,
                                      name_for("fresh", request), request,
                                      floor + floor_operation));
      request.kind = Kind::kStream;
      group.cells.push_back(make_cell(Section::kBandwidth, Unit::kGigabytesPerSecond,
                                      name_for("stream", request), request));
    }
  }
  return group;
}

}  // namespace

void add_handovers(Group& group) {
  for (const std::string family : {"f1", "f1 read-only"}) {
    for (const Pace pace : kAllPaces) {
      Request request;
      request.kind = Kind::kHandover;
      request.pace = pace;
      request.read_only = family != "f1";
      add_floor(group, Unit::kNanoseconds, family + " " + name_of(pace), request);
      group.cells.back().variant_of = family;
    }
  }
}

std::deque<Group> make_plan(const PlanOptions& options) {
  std::deque<Group> plan;
  for (const std::uint64_t size : options.sizes) {
    plan.push_back(latency_group(size, options.floors_only));
  }
  for (const std::uint64_t size : options.sizes) {
    if (options.floors_only || size > 1024) continue;
    plan.push_back(rate_group(size));
  }
  for (const std::uint64_t size : options.sizes) {
    if (size < kSmallestForBandwidth) continue;
    plan.push_back(bandwidth_group(size, options.floors_only));
  }
  if (!options.floors_only) plan.push_back(mpi_group(options.sizes));
  return plan;
}

}  // namespace verbatim::perf
