// SPDX-License-Identifier: BSD-2-Clause
// What copies, reductions and hand-overs of a cache line cost on this host. Neighbours disturb it at any
// time, but nothing makes it faster than it is: so each is the least of many short blocks. What could not
// be measured in time, or at all, is left as it was.
//
// The line goes to a thread of ours and back, which runs on another core: of the same L3 cache, then of
// another one where there is one.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/op.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/topo/host.hpp"

namespace vmpi {
namespace {

constexpr std::size_t kBytes = 64u << 10;
constexpr std::int64_t kMostNs = 500'000;  // of each part
constexpr int kBlocks = 12;

[[nodiscard]] std::int64_t clock_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// The least time of a block, in ns; 0: it has failed.
template <class Block>
[[nodiscard]] double least_of(Block block) noexcept {
  std::int64_t least = 0;
  const std::int64_t until = clock_ns() + kMostNs;
  for (int i = 0; i < kBlocks; ++i) {
    const std::int64_t begin = clock_ns();
    if (!block()) return 0;
    const std::int64_t end = clock_ns();
    // The first one touches memory that nobody has had.
    if (i != 0 && (least == 0 || end - begin < least)) least = end - begin;
    if (i != 0 && end >= until) break;
  }
  return static_cast<double>(least);
}

void measure_copies(Costs& into, unsigned char* from, unsigned char* to) noexcept {
  constexpr auto kOfAll = static_cast<double>(kBytes);
  const double put = least_of([=] {
    std::memcpy(to, from, kBytes);
    asm volatile("" : : "r"(to) : "memory");
    return true;
  });
  if (put > 0) into.set_measured(CostOf::kPut, put / kOfAll);
  const double kernel = least_of([=] {
    const iovec here = {to, kBytes};
    const iovec there = {from, kBytes};
    return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(kBytes);
  });
  if (kernel > 0) into.set_measured(CostOf::kKernel, kernel / kOfAll);
  const Op* const sum = find_op(MPI_SUM);
  const Datatype* const reals = find_datatype(MPI_DOUBLE);
  Combine* const add = sum != nullptr && reals != nullptr ? combine_of(*sum, *reals) : nullptr;
  const double combine = least_of([=] {
    if (add == nullptr) return false;
    add(from, to, kBytes / sizeof(double));
    return true;
  });
  if (combine > 0) into.set_measured(CostOf::kCombine, combine / kOfAll);
}

/// What two cores hand to each other: turns are counted, the odd ones are the thread's.
struct alignas(64) Line {
  std::atomic<std::uint32_t> turn{0};
  std::atomic<std::uint32_t> is_over{0};
  unsigned char* data = nullptr;

  /// False: the other one does not come.
  [[nodiscard]] bool wait_for(std::uint32_t wanted, std::int64_t until) noexcept {
    constexpr std::uint32_t kLooks = 1024;
    for (;;) {
      for (std::uint32_t look = 0; look < kLooks; ++look) {
        // Pairs with the store in pass().
        if (turn.load(std::memory_order_acquire) == wanted) return true;
        verbatim::cpu_pause();
      }
      if (is_over.load(std::memory_order_relaxed) != 0 || clock_ns() >= until) return false;
    }
  }
  /// Gives the turn to the other, with all that was written before.
  void pass(std::uint32_t next) noexcept { turn.store(next, std::memory_order_release); }
};

constexpr std::uint32_t kTurns = 32;      // of a block of hand-overs, two each
constexpr std::uint32_t kHandOvers = 24;  // blocks
constexpr std::uint32_t kFetches = 8;     // blocks, whose turns follow
constexpr std::uint32_t kFirstFetch = 2 * kTurns * kHandOvers;

void* answer(void* shared) noexcept {
  auto& line = *static_cast<Line*>(shared);
  const std::int64_t until = clock_ns() + 4 * kMostNs;
  for (std::uint32_t turn = 1; turn < kFirstFetch + 2 * kFetches; turn += 2) {
    if (!line.wait_for(turn, until)) break;
    if (turn > kFirstFetch) std::memset(line.data, static_cast<int>(turn), kBytes);
    line.pass(turn + 1);
  }
  return nullptr;
}

/// A hand-over one way, and copies of kBytes from what the other has written and to what it has had, in ns;
/// 0: not known.
struct Pair {
  double latency = 0;
  double fetch = 0;
  double put = 0;
};

void keep_less(double& least, std::int64_t ns) noexcept {
  if (least == 0 || static_cast<double>(ns) < least) least = static_cast<double>(ns);
}

void ask(Line& line, unsigned char* to, Pair& found) noexcept {
  const std::int64_t until = clock_ns() + 2 * kMostNs;
  std::uint32_t turn = 0;
  for (std::uint32_t block = 0; block < kHandOvers; ++block) {
    const std::int64_t begin = clock_ns();
    for (std::uint32_t i = 0; i < kTurns; ++i, turn += 2) {
      line.pass(turn + 1);
      if (!line.wait_for(turn + 2, until)) return;
    }
    keep_less(found.latency, (clock_ns() - begin) / (2 * kTurns));
  }
  for (std::uint32_t block = 0; block < kFetches; ++block, turn += 2) {
    line.pass(turn + 1);
    if (!line.wait_for(turn + 2, until)) return;
    const std::int64_t begin = clock_ns();
    std::memcpy(to, line.data, kBytes);
    asm volatile("" : : "r"(to) : "memory");
    const std::int64_t fetched = clock_ns();
    std::memcpy(line.data, to, kBytes);
    asm volatile("" : : "r"(to) : "memory");
    keep_less(found.put, clock_ns() - fetched);
    keep_less(found.fetch, fetched - begin);
  }
}

/// With a thread on that processor, which the kernel may refuse.
[[nodiscard]] Pair measure_pair(int cpu, unsigned char* from, unsigned char* to) noexcept {
  Pair found;
  Line line;
  line.data = from;
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(cpu, &there);
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return found;
  // Signals are the program's threads'.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  pthread_t thread;
  if (::pthread_attr_setaffinity_np(&attributes, sizeof there, &there) == 0 &&
      ::pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
    const bool is_begun = ::pthread_create(&thread, &attributes, answer, &line) == 0;
    (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (is_begun) {
      ask(line, to, found);
      line.is_over.store(1, std::memory_order_relaxed);
      (void)::pthread_join(thread, nullptr);
    }
  }
  (void)::pthread_attr_destroy(&attributes);
  return found;
}

/// Of processors that the kernel lets this thread run on: another core than `here`, of its L3 cache or of
/// another. -1: there is none.
[[nodiscard]] int find_processor(const verbatim::topo::Machine& machine, const cpu_set_t& allowed,
                                 int here, bool is_near) noexcept {
  const auto mine = static_cast<std::uint32_t>(here);
  const std::uint32_t pu = machine.pu_of_cpu(mine);
  const bool is_known = machine.is_this_host() && pu != verbatim::topo::kNone;
  if (!is_known && !is_near) return -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (cpu == here || !CPU_ISSET(cpu, &allowed)) continue;
    if (!is_known) return cpu;
    const std::uint32_t other = machine.pu_of_cpu(static_cast<std::uint32_t>(cpu));
    if (other == verbatim::topo::kNone) continue;
    const auto pus = machine.pus();
    if (pus[other].core != pus[pu].core && (pus[other].group == pus[pu].group) == is_near)
      return cpu;
  }
  return -1;
}

/// REQUIRES: `from` and `to` have kBytes each.
void measure_hand_overs(Costs& into, unsigned char* from, unsigned char* to) noexcept {
  cpu_set_t allowed;
  const int here = ::sched_getcpu();
  if (here < 0 || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  // Where a rank is bound to one core, the host has others all the same.
  if (CPU_COUNT(&allowed) < 2) {
    CPU_ZERO(&allowed);
    const long processors = std::min<long>(::sysconf(_SC_NPROCESSORS_ONLN), CPU_SETSIZE);
    for (int cpu = 0; cpu < processors; ++cpu) CPU_SET(cpu, &allowed);
  }
  if (CPU_COUNT(&allowed) < 2) return;
  const verbatim::topo::Machine& machine = verbatim::topo::host_machine();
  const int near_cpu = find_processor(machine, allowed, here, true);
  const int far_cpu = find_processor(machine, allowed, here, false);
  const Pair near = near_cpu >= 0 ? measure_pair(near_cpu, from, to) : Pair{};
  const Pair far = far_cpu >= 0 ? measure_pair(far_cpu, from, to) : Pair{};
  if (near.latency > 0) into.set_measured(CostOf::kNearLatency, near.latency);
  // Where there is one cache, all are near.
  const double farthest = far_cpu >= 0 ? far.latency : near.latency;
  if (farthest > 0) into.set_measured(CostOf::kFarLatency, std::max(farthest, near.latency));
  const double fetch = std::max(near.fetch, far.fetch);
  const double put = std::max(near.put, far.put);
  if (fetch > 0) into.set_measured(CostOf::kFetch, fetch / static_cast<double>(kBytes));
  if (put > 0) into.set_measured(CostOf::kPut, put / static_cast<double>(kBytes));
}

}  // namespace

void measure_costs(Costs& into) noexcept {
  auto* const memory = static_cast<unsigned char*>(std::aligned_alloc(64, 2 * kBytes));
  if (memory == nullptr) return;
  // As doubles they are zero: nothing that a sum would be slow with.
  std::memset(memory, 0, 2 * kBytes);
  measure_copies(into, memory, memory + kBytes);
  measure_hand_overs(into, memory, memory + kBytes);
  std::free(memory);
}

}  // namespace vmpi
