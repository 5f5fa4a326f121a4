// SPDX-License-Identifier: BSD-2-Clause
// The floors F1 to F13, each under the number that the documents give it. Those of one group are
// taken in turn.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "perf/figures/plan.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::uint64_t kDatagram = 4140, kIcrcPacket = 4096;

void add(Group& group, const char* number, Unit unit, const char* name, const Request& request) {
  Cell cell;
  cell.number = number;
  cell.name = name;
  cell.unit = unit;
  cell.request = request;
  group.cells.push_back(std::move(cell));
}

Request of(Floor floor, std::uint64_t size, std::uint32_t batch = 0) {
  Request request;
  request.kind = Kind::kFloor;
  request.floor = floor;
  request.size = size;
  request.batch = batch;
  return request;
}

Group waking() {
  Group group;
  group.name = "hand-over and waking";
  add_handovers(group);
  for (Cell& cell : group.cells) {
    cell.number = "F1";
    cell.stamped = true;
  }
  add(group, "F6", Unit::kNanoseconds, "UDP over loopback, polling, one way",
      of(Floor::kDatagramSpin, 64));
  add(group, "F7", Unit::kNanoseconds, "UDP over loopback, asleep, one way",
      of(Floor::kDatagramBlock, 64));
  add(group, "F10", Unit::kNanoseconds, "futex wait and wake, one way", of(Floor::kFutex, 0));
  add(group, "F10", Unit::kNanoseconds, "sched_yield", of(Floor::kYield, 0));
  return group;
}

Group copies_of_one_core() {
  Group group;
  group.name = "memcpy";
  for (const std::uint64_t size : {4 * kKiB, 64 * kKiB, kMiB, 32 * kMiB}) {
    add(group, "F2", Unit::kGigabytesPerSecond, "memcpy, one core", of(Floor::kMemcpy, size));
    add(group, "F2", Unit::kGigabytesPerSecond, "copy past the caches, one core",
        of(Floor::kMemcpy, size, 1));
  }
  for (const std::uint64_t size : {64 * kKiB, kMiB, 16 * kMiB}) {
    add(group, "F13", Unit::kGigabytesPerSecond, "sum of two vectors of floats",
        of(Floor::kSum, size));
  }
  return group;
}

Group copies_between_processes() {
  Group group;
  group.name = "copies between processes";
  for (const std::uint64_t size : {4 * kKiB, 64 * kKiB, kMiB, 4 * kMiB}) {
    Request request;
    request.kind = Kind::kTrain;
    request.mover = Mover::kMapped;
    request.operation = Operation::kRead;
    request.size = size;
    add(group, "F3", Unit::kGigabytesPerSecond, "one copy of what the peer just wrote, mapped",
        request);
  }
  for (const std::uint64_t size : {std::uint64_t{8}, 4 * kKiB, 64 * kKiB, kMiB, 4 * kMiB}) {
    Request request;
    request.kind = Kind::kSingleCopy;
    request.mover = Mover::kCma;
    request.operation = Operation::kRead;
    request.size = size;
    if (size <= 4 * kKiB)
      add(group, "F4", Unit::kNanoseconds, "one copy by the kernel (CMA)", request);
    if (size >= 4 * kKiB)
      add(group, "F4", Unit::kGigabytesPerSecond, "one copy by the kernel (CMA)", request);
  }
  for (const std::uint64_t chunk : {4 * kKiB, 16 * kKiB, 64 * kKiB}) {
    add(group, "F5", Unit::kGigabytesPerSecond, "copied in and out through a ring of 8 chunks",
        of(Floor::kPipeline, chunk));
  }
  return group;
}

/// AF_XDP has no loopback device.
std::string why_no_bypass() {
  constexpr int kAfXdp = 44;
  const int fd = socket(kAfXdp, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return std::string("AF_XDP: ") + std::strerror(errno) +
           "; it needs CAP_NET_RAW and a pair of veth devices";
  }
  close(fd);
  return "AF_XDP needs a pair of veth devices, which this program does not make";
}

Group bulk() {
  Group group;
  group.name = "datagrams and checksums";
  add(group, "F8", Unit::kGigabytesPerSecond, "UDP over loopback, one datagram a call",
      of(Floor::kDatagramPlain, kDatagram));
  add(group, "F9", Unit::kGigabytesPerSecond, "UDP over loopback, trains of 15 (GSO, GRO)",
      of(Floor::kDatagramTrains, kDatagram));
  add(group, "F11", Unit::kGigabytesPerSecond, "CRC-32 by tables",
      of(Floor::kChecksum, kIcrcPacket));
  add(group, "F11", Unit::kGigabytesPerSecond, "CRC-32 by carry-less multiplication",
      of(Floor::kChecksum, kIcrcPacket, 1));
  add(group, "F12", Unit::kGigabytesPerSecond, "past the kernel (AF_XDP)", {});
  group.cells.back().unavailable = true;
  group.cells.back().why = why_no_bypass();
  return group;
}

}  // namespace

std::deque<Group> make_floor_plan() {
  std::deque<Group> plan;
  plan.push_back(waking());
  plan.push_back(copies_of_one_core());
  plan.push_back(copies_between_processes());
  plan.push_back(bulk());
  return plan;
}

}  // namespace verbatim::perf
