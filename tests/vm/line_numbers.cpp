// SPDX-License-Identifier: BSD-2-Clause
#include "tests/vm/line_numbers.hpp"

#include <arpa/inet.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/vm/line_end.hpp"

namespace verbatim::vm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kWindow = 16;  ///< on the way at once
constexpr std::uint64_t kReads = 8;    ///< and atomics, on the way at once
constexpr std::uint64_t kSlots = 32;   ///< of each kind of memory
constexpr std::size_t kSlot = 4096;
constexpr std::size_t kRouting = 40;  ///< before a datagram
constexpr std::size_t kSources = 0;
constexpr std::size_t kTargets = kSlots * kSlot;
constexpr std::size_t kBytes = 2 * kSlots * kSlot;
constexpr auto kPatience = std::chrono::seconds(60);  ///< without anything happening
constexpr auto kSilence = std::chrono::milliseconds(500);

/// From one packet to four of the path's 1024 bytes.
std::size_t length_of(std::uint64_t number) { return 8 + number * 977 % 3900; }
std::size_t source(std::uint64_t number) { return kSources + number % kSlots * kSlot; }
std::size_t target(std::uint64_t number) { return kTargets + number % kSlots * kSlot; }

void fill(unsigned char* at, std::uint64_t number, std::size_t length) {
  std::memcpy(at, &number, 8);
  for (std::size_t i = 8; i < length; ++i)
    at[i] = static_cast<unsigned char>(number * 7 + i * 31 + (i >> 8));
}

void need_whole(const unsigned char* at, std::uint64_t number, std::size_t length,
                const char* what) {
  std::uint64_t found = 0;
  std::memcpy(&found, at, 8);
  if (found != number)
    fail(std::string(what) + ": number " + std::to_string(found) + " in place of " +
         std::to_string(number));
  for (std::size_t i = 8; i < length; ++i)
    if (at[i] != static_cast<unsigned char>(number * 7 + i * 31 + (i >> 8)))
      fail(std::string(what) + ": byte " + std::to_string(i) + " of number " +
           std::to_string(number));
}

/// One direction: what its requester and its responder have seen.
struct Way {
  LineEnd& from;
  LineEnd& to;
  std::uint64_t posted = 0;
  std::uint64_t done = 0;
  std::uint64_t arrived = 0;
};

/// Two devices with a queue pair each, and both ways between them.
struct Line {
  Line(ibv_qp_type type, std::uint32_t depth)
      : a(on_a, type, depth, kBytes), b(on_b, type, depth, kBytes) {
    connect(a, on_a, b, on_b);
  }
  LineDevice on_a{"rxe0"};
  LineDevice on_b{"rxe1"};
  LineEnd a;
  LineEnd b;
  Way ways[2]{{a, b}, {b, a}};

  /// Has `post(way)` post what `may_go(way)` lets, and `take(way out, way in, wc)` take what
  /// completes at an end, until `count` have completed each way, and `enough()`.
  template <class MayGo, class Post, class Take, class Enough>
  void run(std::uint64_t count, MayGo may_go, Post post, Take take, Enough enough) {
    auto until = Clock::now() + kPatience;
    for (;;) {
      bool ready = true;
      for (Way& way : ways) {
        while (way.posted < count && may_go(way)) {
          post(way);
          ++way.posted;
        }
        ready = ready && way.done == count;
      }
      if (ready && enough()) return;
      for (int end = 0; end < 2; ++end) {
        for (const ibv_wc& wc : ways[end].from.poll()) {
          take(ways[end], ways[1 - end], wc);
          until = Clock::now() + kPatience;
        }
      }
      if (Clock::now() > until)
        fail("nothing happens any more: " + std::to_string(ways[0].done) + " and " +
             std::to_string(ways[1].done) + " of " + std::to_string(count) + " done, " +
             std::to_string(ways[0].arrived) + " and " + std::to_string(ways[1].arrived) +
             " arrived");
    }
  }
  bool all_arrived(std::uint64_t count) const {
    return ways[0].arrived == count && ways[1].arrived == count;
  }
};

bool has_room(const Way& way) { return way.posted < way.done + kWindow; }
bool has_room_for_reads(const Way& way) { return way.posted < way.done + kReads; }
/// The slots of both ends are free.
bool has_been_seen(const Way& way) { return has_room(way) && way.posted < way.arrived + kWindow; }

/// Requests complete in their order, once each.
void complete(Way& out, const ibv_wc& wc, const char* what) {
  need(wc.wr_id == out.done, std::string(what) + ": completion of " + std::to_string(wc.wr_id) +
                                 " in place of " + std::to_string(out.done));
  ++out.done;
}

ibv_send_wr request(std::uint64_t number, ibv_wr_opcode opcode) {
  ibv_send_wr wr{};
  wr.wr_id = number;
  wr.opcode = opcode;
  return wr;
}

/// SEND, and WRITE with immediate data: what arrives takes a receive.
template <class Post, class Check>
void messages(std::uint64_t count, const char* what, Post post, Check check) {
  Line line(IBV_QPT_RC, 64);
  for (Way& way : line.ways)
    for (std::uint64_t i = 0; i < kSlots; ++i) way.to.receive(i, target(i), kSlot);
  line.run(
      count, has_been_seen, post,
      [&](Way& out, Way& in, const ibv_wc& wc) {
        if ((wc.opcode & IBV_WC_RECV) == 0) return complete(out, wc, what);
        need(in.arrived < count, std::string(what) + ": more than was sent");
        need(wc.wr_id == in.arrived % kSlots, std::string(what) + ": not the next receive");
        check(in, wc);
        in.to.receive(wc.wr_id, target(wc.wr_id), kSlot);
        ++in.arrived;
      },
      [&] { return line.all_arrived(count); });
}

}  // namespace

void sends(std::uint64_t count) {
  messages(
      count, "SEND",
      [](Way& way) {
        fill(way.from.memory() + source(way.posted), way.posted, length_of(way.posted));
        way.from.send(request(way.posted, IBV_WR_SEND), source(way.posted), length_of(way.posted));
      },
      [](Way& in, const ibv_wc& wc) {
        need(wc.byte_len == length_of(in.arrived), "SEND: the length");
        need_whole(in.to.memory() + target(in.arrived), in.arrived, wc.byte_len, "SEND");
      });
}

void writes_with_immediate(std::uint64_t count) {
  messages(
      count, "WRITE",
      [](Way& way) {
        ibv_send_wr wr = request(way.posted, IBV_WR_RDMA_WRITE_WITH_IMM);
        wr.imm_data = htonl(static_cast<std::uint32_t>(way.posted));
        wr.wr.rdma = {way.to.address() + target(way.posted), way.to.rkey()};
        fill(way.from.memory() + source(way.posted), way.posted, length_of(way.posted));
        way.from.send(wr, source(way.posted), length_of(way.posted));
      },
      [](Way& in, const ibv_wc& wc) {
        need(ntohl(wc.imm_data) == in.arrived, "WRITE: immediate data " +
                                                   std::to_string(ntohl(wc.imm_data)) +
                                                   " in place of " + std::to_string(in.arrived));
        need_whole(in.to.memory() + target(in.arrived), in.arrived, length_of(in.arrived), "WRITE");
      });
}

void additions(std::uint64_t count) {
  Line line(IBV_QPT_RC, 64);
  line.run(
      count, has_room_for_reads,
      [](Way& way) {
        ibv_send_wr wr = request(way.posted, IBV_WR_ATOMIC_FETCH_AND_ADD);
        wr.wr.atomic = {way.to.address() + kTargets, 1, 0, way.to.rkey()};
        way.from.send(wr, source(way.posted), 8);
      },
      [](Way& out, Way&, const ibv_wc& wc) {
        std::uint64_t before = 0;
        std::memcpy(&before, out.from.memory() + source(out.done), 8);
        need(before == out.done,
             "FETCH_ADD: " + std::to_string(before) + " in place of " + std::to_string(out.done));
        complete(out, wc, "FETCH_ADD");
      },
      [] { return true; });
  for (Way& way : line.ways) {
    std::uint64_t sum = 0;
    std::memcpy(&sum, way.to.memory() + kTargets, 8);
    need(sum == count, "FETCH_ADD: the sum is " + std::to_string(sum));
  }
}

void reads(std::uint64_t count) {
  Line line(IBV_QPT_RC, 64);
  for (Way& way : line.ways)
    for (std::uint64_t i = 0; i < kSlots; ++i) fill(way.to.memory() + target(i), i, kSlot);
  line.run(
      count, has_room_for_reads,
      [](Way& way) {
        ibv_send_wr wr = request(way.posted, IBV_WR_RDMA_READ);
        wr.wr.rdma = {way.to.address() + target(way.posted), way.to.rkey()};
        std::memset(way.from.memory() + source(way.posted), 0xee, kSlot);
        way.from.send(wr, source(way.posted), length_of(way.posted));
      },
      [](Way& out, Way&, const ibv_wc& wc) {
        need_whole(out.from.memory() + source(out.done), out.done % kSlots, length_of(out.done),
                   "READ");
        complete(out, wc, "READ");
      },
      [] { return true; });
}

void datagrams(std::uint64_t count, bool whole) {
  constexpr std::size_t kLength = 512;
  // All receives are there from the start: a datagram that finds none is lost.
  need(count <= kSlots * kSlot / 1024, "no room for so many datagrams");
  Line line(IBV_QPT_UD, static_cast<std::uint32_t>(count));
  std::vector<bool> came[2];
  for (int i = 0; i < 2; ++i) {
    came[i].resize(count);
    for (std::uint64_t n = 0; n < count; ++n)
      line.ways[i].to.receive(n, kTargets + n * 1024, kRouting + kLength);
  }
  auto last = Clock::now();
  line.run(
      count, has_room,
      [](Way& way) {
        fill(way.from.memory() + source(way.posted), way.posted, kLength);
        way.from.send(request(way.posted, IBV_WR_SEND), source(way.posted), kLength);
      },
      [&](Way& out, Way& in, const ibv_wc& wc) {
        last = Clock::now();
        if ((wc.opcode & IBV_WC_RECV) == 0) return complete(out, wc, "UD");
        const unsigned char* const at = in.to.memory() + kTargets + wc.wr_id * 1024 + kRouting;
        std::uint64_t number = 0;
        std::memcpy(&number, at, 8);
        need(number < count && wc.byte_len == kRouting + kLength, "UD: no number of ours");
        need_whole(at, number, kLength, "UD");
        std::vector<bool>& seen = came[&in - line.ways];
        need(!seen[number], "UD: number " + std::to_string(number) + " came twice");
        seen[number] = true;
        ++in.arrived;
      },
      // What does not come is lost: a while in which nothing comes ends the wait. (On a whole line
      // nothing is lost, however long the machine stands still.)
      [&] { return line.all_arrived(count) || (!whole && Clock::now() > last + kSilence); });
  std::printf("datagrams: %llu and %llu of %llu\n",
              static_cast<unsigned long long>(line.ways[0].arrived),
              static_cast<unsigned long long>(line.ways[1].arrived),
              static_cast<unsigned long long>(count));
  need(line.all_arrived(count) || !whole, "UD: some were lost on a line that loses none");
  need(line.ways[0].arrived > count / 2 && line.ways[1].arrived > count / 2,
       "UD: most of them were lost");
}

}  // namespace verbatim::vm
