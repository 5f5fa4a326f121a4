// SPDX-License-Identifier: BSD-2-Clause
// Floors that move bytes: a ping-pong of `size` bytes by a copy into the peer's memory (mapped, or
// through the kernel), single copies to and from it, and memcpy on one core. The last eight bytes
// of a message carry its number, written last, as a program that polls its buffer would have it.
#include <cstring>

#include "perf/ends/end.hpp"
#include "perf/floors/cma.hpp"
#include "perf/floors/pieces.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::perf {
namespace {

std::atomic_ref<std::uint64_t> flag_of(std::byte* buffer, std::uint64_t size) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(buffer + size - 8));
}

struct Route {
  std::byte* from;  // ours
  std::byte* to;    // the peer's: an address here (mapped) or there (CMA)
  std::byte* in;    // ours, written by the peer
};

Route route_of(End& end, Mover mover) {
  if (mover == Mover::kCma) return {end.local().out, end.peer_local().in, end.local().in};
  return {end.local().out, end.peer_mapped().in, end.mapped().in};
}

template <Mover kMover>
void put(End& end, const Route& route, std::uint64_t size, std::uint64_t number) {
  if constexpr (kMover == Mover::kMapped) {
    copy_in_pieces(route.to, route.from, size - 8);
    flag_of(route.to, size).store(number, std::memory_order_release);
  } else {
    flag_of(route.from, size).store(number, std::memory_order_relaxed);
    cma_write(end.peer_pid(), route.to, route.from, size);
  }
}

template <Mover kMover, Pace kPace>
void exchange(End& end, const Request& request) {
  const Route route = route_of(end, kMover);
  const auto flag = flag_of(route.in, request.size);
  for (std::uint64_t i = 1; i <= request.iterations; ++i) {
    if (end.is_near()) put<kMover>(end, route, request.size, i);
    while (flag.load(std::memory_order_acquire) != i) pace_once<kPace>();
    if (!end.is_near()) put<kMover>(end, route, request.size, i);
  }
}

}  // namespace

void run_copy_ping_pong(End& end, const Request& request, Reply& reply) {
  if (request.mover == Mover::kCma) {
    // Both ends find the same answer: the rules are symmetric for two processes of one user.
    if (cma_refusal(end.peer_pid(), end.peer_local().in) != 0) {
      reply.unavailable = 1;
      return;
    }
  }
  flag_of(route_of(end, request.mover).in, request.size).store(0, std::memory_order_relaxed);
  end.meet();
  const std::uint64_t start = now_ns();
  with_pace(request.pace, [&](auto pace) {
    if (request.mover == Mover::kCma) {
      exchange<Mover::kCma, pace()>(end, request);
    } else {
      exchange<Mover::kMapped, pace()>(end, request);
    }
  });
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = 2.0 * static_cast<double>(request.iterations);
  reply.bytes = reply.operations * static_cast<double>(request.size);
}

void run_single_copy(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;  // asleep meanwhile
  const bool kernel = request.mover == Mover::kCma;
  if (kernel && cma_refusal(end.peer_pid(), end.peer_local().in) != 0) {
    reply.unavailable = 1;
    return;
  }
  const bool read = request.operation == Operation::kRead;
  const Area own = kernel ? end.local() : end.mapped();
  const Area peer = kernel ? end.peer_local() : end.peer_mapped();
  std::byte* to = read ? own.in : peer.in;
  const std::byte* from = read ? peer.out : own.out;
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    if (!kernel) {
      copy_in_pieces(to, from, request.size);
      asm volatile("" : : "r"(to) : "memory");
    } else if (read) {
      cma_read(end.peer_pid(), to, from, request.size);
    } else {
      cma_write(end.peer_pid(), to, from, request.size);
    }
  }
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = static_cast<double>(request.iterations);
  reply.bytes = reply.operations * static_cast<double>(request.size);
}

void run_local_copy(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;
  const Area area = end.local();
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    std::memcpy(area.in, area.out, request.size);
    asm volatile("" : : "r"(area.in) : "memory");  // each copy is made
  }
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = static_cast<double>(request.iterations);
  reply.bytes = reply.operations * static_cast<double>(request.size);
}

}  // namespace verbatim::perf
