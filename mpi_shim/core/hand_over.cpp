// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/hand_over.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/sync/pause.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/topo/host.hpp"

namespace vmpi {
namespace {

constexpr std::size_t kBytes = 64u << 10;
constexpr std::uint64_t kMostNs = 1'000'000;  // of all blocks

constexpr std::uint32_t kTurns = 32;      // of a block of hand-overs, two each
constexpr std::uint32_t kHandOvers = 24;  // blocks
constexpr std::uint32_t kFetches = 8;     // blocks, whose turns follow
constexpr std::uint32_t kFirstFetch = 2 * kTurns * kHandOvers;

/// What two threads share. Each of them may be the last one that needs it: the other thread is not waited
/// for where its processor does something else.
struct alignas(64) Shared {
  std::atomic<std::uint32_t> turn{0};  ///< turns are counted: the odd ones are the other thread's
  std::atomic<std::uint32_t> is_over{0};
  alignas(64) std::atomic<std::uint32_t> holders{2};
  alignas(64) unsigned char theirs[kBytes];
  unsigned char ours[kBytes];

  /// False: the other one does not come.
  [[nodiscard]] bool wait_for(std::uint32_t wanted, std::uint64_t until) noexcept {
    constexpr std::uint32_t kLooks = 1024;
    for (;;) {
      for (std::uint32_t look = 0; look < kLooks; ++look) {
        // Pairs with the store in pass().
        if (turn.load(std::memory_order_acquire) == wanted) return true;
        verbatim::cpu_pause();
      }
      if (is_over.load(std::memory_order_relaxed) != 0 || verbatim::now_ns() >= until) return false;
    }
  }
  /// Gives the turn to the other, with all that was written before.
  void pass(std::uint32_t next) noexcept { turn.store(next, std::memory_order_release); }

  void drop() noexcept {
    // What the other one did with it comes before it is freed.
    if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1) std::free(static_cast<void*>(this));
  }
};

void* answer(void* argument) noexcept {
  auto& shared = *static_cast<Shared*>(argument);
  const std::uint64_t until = verbatim::now_ns() + 2 * kMostNs;
  for (std::uint32_t turn = 1; turn < kFirstFetch + 2 * kFetches; turn += 2) {
    if (!shared.wait_for(turn, until)) break;
    if (turn > kFirstFetch) std::memset(shared.theirs, static_cast<int>(turn), kBytes);
    shared.pass(turn + 1);
  }
  shared.drop();
  return nullptr;
}

void keep_less(double& least, std::uint64_t ns, double parts) noexcept {
  const double each = static_cast<double>(ns) / parts;
  if (least == 0 || each < least) least = each;
}

void ask(Shared& shared, HandOver& found) noexcept {
  const std::uint64_t until = verbatim::now_ns() + kMostNs;
  std::uint32_t turn = 0;
  for (std::uint32_t block = 0; block < kHandOvers; ++block) {
    const std::uint64_t begin = verbatim::now_ns();
    for (std::uint32_t i = 0; i < kTurns; ++i, turn += 2) {
      shared.pass(turn + 1);
      if (!shared.wait_for(turn + 2, until)) return;
    }
    keep_less(found.latency_ns, verbatim::now_ns() - begin, 2 * kTurns);
  }
  for (std::uint32_t block = 0; block < kFetches; ++block, turn += 2) {
    shared.pass(turn + 1);
    if (!shared.wait_for(turn + 2, until)) return;
    const std::uint64_t begin = verbatim::now_ns();
    std::memcpy(shared.ours, shared.theirs, kBytes);
    asm volatile("" : : "r"(shared.ours) : "memory");
    const std::uint64_t fetched = verbatim::now_ns();
    std::memcpy(shared.theirs, shared.ours, kBytes);
    asm volatile("" : : "r"(shared.theirs) : "memory");
    keep_less(found.put_ns, verbatim::now_ns() - fetched, kBytes);
    keep_less(found.fetch_ns, fetched - begin, kBytes);
  }
}

/// False: the kernel refuses it.
[[nodiscard]] bool begin_thread(int cpu, Shared& shared, pthread_t& thread) noexcept {
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(static_cast<std::size_t>(cpu), &there);
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return false;
  // Signals are the program's threads'.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  bool is_begun = false;
  if (::pthread_attr_setaffinity_np(&attributes, sizeof there, &there) == 0 &&
      ::pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
    is_begun = ::pthread_create(&thread, &attributes, answer, &shared) == 0;
    (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  (void)::pthread_attr_destroy(&attributes);
  return is_begun;
}

/// It ends when it next looks; where somebody of a higher priority has its processor, it does not.
void leave_thread(pthread_t thread) noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint64_t kPatienceNs = kSecond / 50;
  const std::uint64_t end = verbatim::wall_clock_ns() + kPatienceNs;
  const timespec until = {static_cast<time_t>(end / kSecond), static_cast<long>(end % kSecond)};
  if (::pthread_timedjoin_np(thread, nullptr, &until) != 0) (void)::pthread_detach(thread);
}

enum class Nearness : std::uint8_t { kSelf, kSameCore, kNear, kFar };

[[nodiscard]] Nearness nearness(const verbatim::topo::Machine& machine, int here,
                                int cpu) noexcept {
  if (cpu == here) return Nearness::kSelf;
  const std::uint32_t mine = machine.pu_of_cpu(static_cast<std::uint32_t>(here));
  const std::uint32_t other = machine.pu_of_cpu(static_cast<std::uint32_t>(cpu));
  if (!machine.is_this_host() || mine == verbatim::topo::kNone || other == verbatim::topo::kNone)
    return Nearness::kNear;
  const auto pus = machine.pus();
  if (pus[other].core == pus[mine].core) return Nearness::kSameCore;
  return pus[other].group == pus[mine].group ? Nearness::kNear : Nearness::kFar;
}

}  // namespace

Partners find_partners() noexcept {
  Partners found;
  Candidates of_core;
  cpu_set_t allowed;
  const int here = ::sched_getcpu();
  if (here < 0 || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return found;
  const verbatim::topo::Machine& machine = verbatim::topo::host_machine();
  const auto end = static_cast<int>(std::min<long>(::sysconf(_SC_NPROCESSORS_CONF), CPU_SETSIZE));
  for (const bool is_allowed : {true, false})
    for (int cpu = 0; cpu < end; ++cpu) {
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &allowed) != is_allowed) continue;
      switch (nearness(machine, here, cpu)) {
        case Nearness::kSelf:
          break;
        case Nearness::kSameCore:
          of_core.add(cpu);
          break;
        case Nearness::kNear:
          found.near.add(cpu);
          break;
        case Nearness::kFar:
          found.far.add(cpu);
          break;
      }
    }
  if (found.near.empty() && found.far.empty()) found.near = of_core;
  return found;
}

HandOver measure_hand_over(const Candidates& to) noexcept {
  HandOver found;
  if (to.empty()) return found;
  void* const place = std::aligned_alloc(alignof(Shared), sizeof(Shared));
  if (place == nullptr) return found;
  auto* const shared = ::new (place) Shared;
  std::memset(shared->theirs, 0, sizeof shared->theirs);
  std::memset(shared->ours, 0, sizeof shared->ours);
  pthread_t thread;
  for (int i = 0; i < to.count; ++i) {
    if (!begin_thread(to.cpus[i], *shared, thread)) continue;
    found.is_begun = true;
    ask(*shared, found);
    shared->is_over.store(1, std::memory_order_relaxed);
    shared->drop();
    leave_thread(thread);
    return found;
  }
  std::free(place);
  return found;
}

}  // namespace vmpi
