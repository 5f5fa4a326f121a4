// SPDX-License-Identifier: BSD-2-Clause
//
// What a process performs for its peers because only it can: WRITEs and READs of memory that nobody
// else can copy (VERBATIM_SHM_CMA=off), and atomics on ordinary memory. Its service thread does, or
// any thread of its program that polls. Source: IBTA 9.4.5 (atomics), 10.8.3.3 and 9.5 (order).
#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <atomic>
#include <fstream>
#include <future>
#include <optional>
#include <thread>

#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcServed : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcServed, between_processes());

constexpr std::uint32_t kDepth = 256;

PairWish deep() {
  PairWish wish;
  wish.a.send_depth = wish.b.send_depth = kDepth;
  return wish;
}

/// Polls the completion queues of a side's queue pair for as long as it lives.
class Poller {
 public:
  Poller(Side& side, const QpInfo& qp)
      : thread_([this, &side, qp] {
          while (!stop_) side.poll_once(qp.receive_cq, 1);
        }) {}
  ~Poller() {
    stop_ = true;
    thread_.join();
  }
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// The service thread of a child, stopped alone. Its program goes on.
class StoppedServiceThread {
 public:
  explicit StoppedServiceThread(pid_t process) : thread_(find(process)) {
    if (thread_ == 0 || ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) != 0) return;
    // Asleep it holds no lock.
    (void)wait_until([&] { return state(process) == 'S'; });
    if (ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) return;
    is_stopped_ = waitpid(thread_, nullptr, __WALL) == thread_;
  }
  ~StoppedServiceThread() {
    if (is_stopped_) ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  }
  StoppedServiceThread(const StoppedServiceThread&) = delete;
  StoppedServiceThread& operator=(const StoppedServiceThread&) = delete;
  bool is_stopped() const { return is_stopped_; }

 private:
  static std::string folder(pid_t process) { return "/proc/" + std::to_string(process) + "/task/"; }
  static pid_t find(pid_t process) {
    pid_t found = 0;
    DIR* const tasks = opendir(folder(process).c_str());
    if (tasks == nullptr) return 0;
    while (const dirent* task = readdir(tasks)) {
      std::string name;
      std::ifstream(folder(process) + task->d_name + "/comm") >> name;
      if (name == "verbatim-shm") found = std::stoi(task->d_name);
    }
    closedir(tasks);
    return found;
  }
  char state(pid_t process) const {
    std::string line;
    std::getline(std::ifstream(folder(process) + std::to_string(thread_) + "/stat"), line);
    const auto at = line.rfind(')');
    return at == std::string::npos ? '?' : line[at + 2];
  }

  pid_t thread_ = 0;
  bool is_stopped_ = false;
};

// ---- order

/// Each round writes a word, adds to it and reads it, all posted at once.
void expect_order_of_mixed_requests(Pair& pair) {
  constexpr std::uint64_t kTurns = 60;
  const RegionInfo local = pair.a.allocate(pair.setting.memory, kTurns * 24);
  const RegionInfo remote = pair.b.allocate(pair.setting.memory, 64);
  std::vector<Request> list;
  for (std::uint64_t i = 0; i < kTurns; ++i) {
    const std::uint64_t at = i * 24;
    pair.a.store(local, at, 1000 * i);
    list.push_back(write(3 * i, slice(local, at, 8), remote, 8));
    list.push_back(fetch_add(3 * i + 1, slice(local, at + 8, 8), remote, 8, i));
    list.push_back(read(3 * i + 2, slice(local, at + 16, 8), remote, 8));
  }
  expect_posted(pair.a.post_send(pair.qa, list));
  const auto done = pair.a.poll_sends(pair.qa, 3 * kTurns);
  for (std::uint64_t i = 0; i < kTurns; ++i) {
    expect_wc(done[3 * i], 3 * i, IBV_WC_RDMA_WRITE, pair.qa);
    expect_wc(done[3 * i + 1], 3 * i + 1, IBV_WC_FETCH_ADD, pair.qa);
    expect_wc(done[3 * i + 2], 3 * i + 2, IBV_WC_RDMA_READ, pair.qa);
    EXPECT_EQ(pair.a.load(local, i * 24 + 8), 1000 * i);
    EXPECT_EQ(pair.a.load(local, i * 24 + 16), 1000 * i + i);
  }
}

TEST_P(RcServed, RequestsOfAllKindsAreServedInTheirOrder) {
  Pair pair(GetParam(), deep());
  expect_order_of_mixed_requests(pair);
}

TEST_P(RcServed, RequestsOfAllKindsAreServedInTheirOrderBesideAPollingThread) {
  Pair pair(GetParam(), deep());
  const Poller poller(pair.b, pair.qb);
  expect_order_of_mixed_requests(pair);
}

TEST_P(RcServed, AMessageComesBehindTheWritesBeforeIt) {
  constexpr std::uint64_t kBytes = 600_KiB;
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, kBytes);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, kBytes + 64);
  for (std::uint32_t round = 0; round < 10; ++round) {
    pair.a.fill(local, 0, kBytes, round);
    expect_posted(pair.b.post_receive(pair.qb, receive(round, slice(remote, kBytes, 64))));
    expect_posted(pair.a.post_send(pair.qa, {write(1, slice(local, 0, kBytes - 8), remote),
                                             fetch_add(2, slice(local, 0, 8), remote, kBytes, 1),
                                             send(3, slice(local, kBytes - 64, 64))}));
    pair.b.poll_receives(pair.qb, 1);
    EXPECT_EQ(pair.b.mismatch(remote, 0, kBytes - 8, round), -1);
    pair.a.poll_sends(pair.qa, 3);
  }
}

// ---- bytes

void expect_streams_whole(Pair& pair) {
  constexpr std::uint64_t kMost = 3_MiB;
  const RegionInfo local = pair.a.allocate(pair.setting.memory, 2 * kMost);
  const RegionInfo remote = pair.b.allocate(pair.setting.memory, 2 * kMost);
  // About the pieces and the stream rings that bytes flow through, and beyond them.
  for (const std::uint64_t size :
       {32_KiB + 1, 64_KiB + 7, 256_KiB - 64, 256_KiB, 256_KiB + 1, 512_KiB + 63, 1_MiB, kMost}) {
    SCOPED_TRACE(size);
    const auto seed = static_cast<std::uint32_t>(size);
    pair.a.fill(local, 0, size, seed);
    pair.a.set(local, kMost, size, 0);
    // There, once more beside it, and back from both places.
    expect_posted(pair.a.post_send(
        pair.qa,
        {write(1, slice(local, 0, size), remote), write(2, slice(local, 0, 5), remote, size),
         write(3, slice(local, 0, size), remote, kMost), read(4, slice(local, kMost, 100), remote),
         read(5, slice(local, kMost, size), remote, kMost)}));
    const auto done = pair.a.poll_sends(pair.qa, 5);
    for (std::uint64_t i = 0; i < 5; ++i)
      expect_wc(done[i], i + 1, i < 3 ? IBV_WC_RDMA_WRITE : IBV_WC_RDMA_READ, pair.qa);
    EXPECT_EQ(pair.a.mismatch(local, kMost, size, seed), -1);
    EXPECT_EQ(pair.b.mismatch(remote, 0, size, seed), -1);
  }
}

TEST_P(RcServed, StreamsOfAnyLengthArriveWhole) {
  Pair pair(GetParam());
  expect_streams_whole(pair);
}

TEST_P(RcServed, StreamsOfAnyLengthArriveWholeBesideAPollingThread) {
  Pair pair(GetParam());
  const Poller poller(pair.b, pair.qb);
  expect_streams_whole(pair);
}

TEST_P(RcServed, StreamsOfBothDirectionsDoNotWaitForEachOther) {
  constexpr std::uint64_t kBytes = 2_MiB;
  Pair pair(GetParam());
  const RegionInfo at_a = pair.a.allocate(GetParam().memory, 2 * kBytes);
  const RegionInfo at_b = pair.b.allocate(GetParam().memory, 2 * kBytes);
  pair.a.fill(at_a, 0, kBytes, 1);
  pair.b.fill(at_b, 0, kBytes, 2);
  expect_posted(pair.a.post_send(pair.qa, {write(1, slice(at_a, 0, kBytes), at_b, kBytes),
                                           read(2, slice(at_a, kBytes, kBytes), at_b)}));
  expect_posted(pair.b.post_send(pair.qb, write(1, slice(at_b, 0, kBytes), at_a, kBytes)));
  pair.b.poll_sends(pair.qb, 1);
  pair.a.poll_sends(pair.qa, 2);
  EXPECT_EQ(pair.b.mismatch(at_b, kBytes, kBytes, 1), -1);
  EXPECT_EQ(pair.a.mismatch(at_a, kBytes, kBytes, 2), -1);
}

// ---- once each

TEST_P(RcServed, EachOfManyInitiatorsAddsIsCountedOnceWhoeverServesIt) {
  constexpr std::uint32_t kInitiators = 6;
  constexpr std::uint64_t kAdds = 200;
  constexpr std::uint32_t kTurns = 5;
  Pair pair(GetParam(), deep());
  const RegionInfo local = pair.a.allocate(GetParam().memory, kInitiators * kAdds * 8);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  std::vector<QpInfo> initiators;
  for (std::uint32_t i = 0; i < kInitiators; ++i)
    initiators.push_back(pair.add_qps(deep().a, deep().b).first);
  const Poller poller(pair.b, pair.qb);
  std::vector<bool> seen(kTurns * kInitiators * kAdds);
  for (std::uint32_t round = 0; round < kTurns; ++round) {
    for (std::uint32_t i = 0; i < kInitiators; ++i) {
      std::vector<Request> list;
      for (std::uint64_t n = 0; n < kAdds; ++n)
        list.push_back(fetch_add(n, slice(local, (i * kAdds + n) * 8, 8), remote, 0, 1));
      expect_posted(pair.a.post_send(initiators[i], list));
    }
    for (const QpInfo& qp : initiators) pair.a.poll_sends(qp, kAdds);
    for (std::uint64_t n = 0; n < kInitiators * kAdds; ++n) {
      const std::uint64_t old = pair.a.load(local, n * 8);
      ASSERT_LT(old, seen.size());
      EXPECT_FALSE(seen[old]) << "two found " << old;
      seen[old] = true;
    }
  }
  EXPECT_EQ(pair.b.load(remote, 0), seen.size());
}

TEST_P(RcServed, AThreadThatPollsServesWithoutTheServiceThread) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
  // Both have met.
  expect_posted(pair.a.post_send(pair.qa, fetch_add(0, slice(local, 0, 8), remote, 0, 1)));
  pair.a.poll_sends(pair.qa, 1);
  const StoppedServiceThread stopped(pair.b.child().pid());
  if (!stopped.is_stopped()) GTEST_SKIP() << "a thread of a child cannot be stopped here";
  const Poller poller(pair.b, pair.qb);
  pair.a.fill(local, 0, 300_KiB, 7);
  expect_posted(pair.a.post_send(pair.qa, {fetch_add(1, slice(local, 512_KiB, 8), remote, 0, 1),
                                           write(2, slice(local, 0, 300_KiB), remote, 8),
                                           read(3, slice(local, 600_KiB, 300_KiB), remote, 8)}));
  const auto done = pair.a.poll_sends(pair.qa, 3);
  expect_wc(done[0], 1, IBV_WC_FETCH_ADD, pair.qa);
  expect_wc(done[1], 2, IBV_WC_RDMA_WRITE, pair.qa);
  expect_wc(done[2], 3, IBV_WC_RDMA_READ, pair.qa);
  EXPECT_EQ(pair.a.load(local, 512_KiB), 1u);
  EXPECT_EQ(pair.a.mismatch(local, 600_KiB, 300_KiB, 7), -1);
}

// ---- ends

TEST_P(RcServed, WhatWaitsInATargetThatIsKilledEnds) {
  constexpr std::uint64_t kBytes = 4_MiB;
  Pair pair(GetParam(), deep());
  const RegionInfo local = pair.a.allocate(GetParam().memory, kBytes);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, kBytes);
  expect_posted(pair.a.post_send(pair.qa, fetch_add(0, slice(local, 0, 8), remote, 0, 1)));
  pair.a.poll_sends(pair.qa, 1);
  const auto second = pair.add_qps(deep().a, deep().b);
  kill(pair.b.child().pid(), SIGSTOP);
  ASSERT_TRUE(wait_until([&] { return pair.b.child().is_stopped(); }));
  std::vector<Request> adds;
  for (std::uint64_t i = 0; i < 100; ++i)
    adds.push_back(fetch_add(i, slice(local, 0, 8), remote, 0, 1));
  expect_posted(pair.a.post_send(pair.qa, adds));
  expect_posted(pair.a.post_send(second.first, {write(1, slice(local, 0, kBytes), remote),
                                                read(2, slice(local, 0, kBytes), remote)}));
  pair.b.child().kill_and_collect();
  // What lies in memory that is mapped may have been done before.
  for (const ibv_wc& wc : pair.a.poll_sends(pair.qa, 100))
    EXPECT_TRUE(wc.status == IBV_WC_RETRY_EXC_ERR || wc.status == IBV_WC_WR_FLUSH_ERR ||
                (wc.status == IBV_WC_SUCCESS && GetParam().memory == MemoryKind::kMapped));
  pair.a.poll_sends(second.first, 2);
}

TEST_P(RcServed, ARequesterThatIsKilledInTheMiddleLeavesTheOthersServed) {
  constexpr std::uint64_t kBytes = 4_MiB;
  Pair pair(GetParam(), deep());
  Pair other(GetParam(), deep());
  const RegionInfo target = pair.a.allocate(GetParam().memory, kBytes);
  const RegionInfo source = pair.b.allocate(GetParam().memory, kBytes);
  std::vector<Request> list{write(0, slice(source, 0, kBytes), target)};
  for (std::uint64_t i = 1; i < 100; ++i)
    list.push_back(fetch_add(i, slice(source, 0, 8), target, 0, 1));
  expect_posted(pair.b.post_send(pair.qb, list));
  pair.b.child().kill_and_collect();
  const RegionInfo counted = other.a.allocate(GetParam().memory, 64);
  const RegionInfo local = other.b.allocate(GetParam().memory, 64);
  for (std::uint64_t i = 0; i < 20; ++i) {
    expect_posted(other.b.post_send(other.qb, fetch_add(i, slice(local, 0, 8), counted, 0, 1)));
    expect_wc(other.b.poll_sends(other.qb, 1)[0], i, IBV_WC_FETCH_ADD, other.qb);
  }
  EXPECT_EQ(other.a.load(counted, 0), 20u);
}

TEST_P(RcServed, ATargetThatDeregistersInTheMiddleEndsWhatIsBehindIt) {
  constexpr std::uint64_t kBytes = 1_MiB;
  Pair pair(GetParam(), deep());
  const RegionInfo local = pair.a.allocate(GetParam().memory, kBytes);
  const RegionInfo whole = pair.b.allocate(GetParam().memory, 2 * kBytes);
  pair.a.set(local, 0, kBytes, 0x55);
  for (std::uint32_t round = 0; round < 4; ++round) {
    const RegionInfo target = pair.b.register_part(whole, 0, kBytes);
    pair.b.set(whole, 0, 2 * kBytes, 0);
    std::vector<Request> list;
    for (std::uint64_t i = 0; i < 20; ++i)
      list.push_back(write(2 * i, slice(local, 0, kBytes), target));
    for (std::uint64_t i = 0; i < 20; ++i)
      list.push_back(fetch_add(i, slice(local, 0, 8), target, 0, 0));
    expect_posted(pair.a.post_send(pair.qa, list));
    ASSERT_EQ(pair.b.deregister(target), 0);
    pair.b.set(whole, 0, kBytes, 0x77);
    const auto done = pair.a.poll_sends(pair.qa, 40);
    // Successes, then the one that was refused, then those behind it.
    std::size_t first = 0;
    while (first < done.size() && done[first].status == IBV_WC_SUCCESS) ++first;
    if (first < done.size()) {
      EXPECT_EQ(done[first].status, IBV_WC_REM_ACCESS_ERR);
      for (std::size_t i = first + 1; i < done.size(); ++i)
        EXPECT_EQ(done[i].status, IBV_WC_WR_FLUSH_ERR);
    }
    const auto bytes = pair.b.peek(whole, 0, kBytes);
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](auto b) { return b == 0x77; }));
    if (first < done.size()) {
      // The target hears of it as an asynchronous event.
      pair.b.take_async_event();
      pair.reconnect();
    }
  }
}

/// Whoever closes a window of type 2 waits for what is being served through it, and without the lock
/// under which requests are served.
TEST_P(RcServed, NothingIsServedThroughAWindowThatWasInvalidated) {
  constexpr std::uint64_t kBytes = 32_KiB;  // one piece: its end is written last
  constexpr std::uint64_t kMark = 0x5555;
  constexpr std::uint32_t kWindows = 300;
  Pair pair(GetParam());
  const RegionInfo whole =
      pair.a.allocate(GetParam().memory, kBytes, kAllAccess | IBV_ACCESS_MW_BIND);
  const RegionInfo local = pair.b.allocate(GetParam().memory, kBytes);
  pair.b.set(local, 0, kBytes, 0x99);
  const WindowInfo window = pair.a.allocate_window(IBV_MW_TYPE_2);
  std::uint32_t closed = 0;
  for (std::uint32_t round = 0; round < kWindows; ++round) {
    SCOPED_TRACE(round);
    WindowBind bind;
    bind.window = window.id;
    bind.region = whole.id;
    bind.rkey = ibv_inc_rkey(pair.a.call<&Endpoint::window_key>(window.id));
    bind.address = whole.address;
    bind.length = kBytes;
    bind.access = IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(pair.a.bind_window(pair.qa, bind), 0);
    ASSERT_EQ(pair.a.poll_sends(pair.qa, 1)[0].status, IBV_WC_SUCCESS);
    RegionInfo shown = whole;
    shown.rkey = pair.a.call<&Endpoint::window_key>(window.id);
    pair.a.store(whole, kBytes - 8, 0);
    auto storm = std::async(std::launch::async, [&] {
      return pair.b.call<&Endpoint::storm>(pair.qb.id, write(1, slice(local, 0, kBytes), shown), 8u,
                                           ~std::uint64_t{0});
    });
    ASSERT_TRUE(wait_until([&] { return pair.a.load(whole, kBytes - 8) != 0; }));
    expect_posted(pair.a.post_send(pair.qa, local_invalidate(6, shown.rkey)));
    const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
    pair.a.store(whole, kBytes - 8, kMark);
    const auto failures = storm.get();
    // The writer's next request may already have ended the queue pair: then nothing is promised.
    if (wc.status == IBV_WC_SUCCESS) {
      ++closed;
      ASSERT_FALSE(failures.empty());
      EXPECT_EQ(failures[0].status, IBV_WC_REM_ACCESS_ERR);
      ASSERT_EQ(pair.a.load(whole, kBytes - 8), kMark) << "written to after it was closed";
    }
    pair.reconnect();
  }
  EXPECT_NE(closed, 0u);
}

}  // namespace
}  // namespace verbatim::harness
