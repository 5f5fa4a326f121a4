// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "providers/shm/fabric/fabric_folder.hpp"
#include "runtime/memory/arena.hpp"
#include "tests/support/child.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/fabric_directory.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/process_census.hpp"
#include "tests/unit_shm/process_events.hpp"

namespace verbatim::shm {
namespace {

using harness::wait_until;

class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override { events().reset(); }
  static ProcessEvents& events() { return ProcessEvents::get(); }
};

/// Names of blocks in the fabric folder.
std::size_t names() {
  std::size_t count = 0;
  for (const std::string& name : harness::fabric_contents()) count += name != "lock";
  return count;
}

TEST_F(ProcessTest, LeavesNothingBehind) {
  {
    // What a process does once stays; and what the killed of other tests left goes.
    const RunningProcess warm_up;
    std::uint32_t index = 0;
    std::uint32_t qpn = 0;
    ASSERT_EQ(warm_up->take_qpn(index, qpn), 0);
  }
  EXPECT_TRUE(harness::fabric_contents().empty()) << "also the lock goes with the last";
  const auto before = harness::ProcessCensus::take();
  for (int i = 0; i < 3; ++i) {
    const RunningProcess process;
    std::uint32_t index = 0;
    std::uint32_t qpn = 0;
    ASSERT_EQ(process->take_qpn(index, qpn), 0);
    EXPECT_EQ(names(), 1u);
  }
  EXPECT_EQ(left_behind(before, harness::ProcessCensus::take()), "");
  EXPECT_TRUE(harness::fabric_contents().empty());
}

TEST_F(ProcessTest, WhoEndsLeavesNamesAloneThatAreNoLongerItsOwn) {
  const auto folder = std::make_unique<FabricFolder>();
  std::uint32_t qpn = 0;
  UniqueFd another;
  {
    const RunningProcess process;
    std::uint32_t index = 0;
    ASSERT_EQ(process->take_qpn(index, qpn), 0);
    ASSERT_EQ(folder->open(), 0);
    folder->release(qpn >> kQpnBlockBits, 0);
    ASSERT_EQ(folder->claim_again(qpn >> kQpnBlockBits, another), 0);
  }
  UniqueFd socket;
  EXPECT_EQ(folder->connect(qpn >> kQpnBlockBits, socket), 0);
  folder->release(qpn >> kQpnBlockBits, 0);
  folder->leave();
}

TEST_F(ProcessTest, SaysOnItsServiceThreadThatItsNamesWereLostAndAreBack) {
  const harness::AllowedLog is_lost("was removed");
  const harness::AllowedLog is_back("our names in it too");
  const RunningProcess process;
  std::uint32_t index = 0;
  std::uint32_t qpn = 0;
  ASSERT_EQ(process->take_qpn(index, qpn), 0);
  EXPECT_TRUE(process->can_be_met());
  std::filesystem::remove_all(getenv("VERBATIM_FABRIC"));
  EXPECT_FALSE(process->can_be_met());
  ASSERT_TRUE(wait_until([] { return events().names_back == 1; }));
  EXPECT_EQ(events().names_lost, 1u);
  EXPECT_TRUE(events().on_service_thread);
  EXPECT_TRUE(process->can_be_met());
  EXPECT_EQ(names(), 1u);
  harness::Child child("process");
  ASSERT_EQ(child.control().receive_value<int>(), 0);
  child.control().send_value(Question{Ask::kMeet, qpn});
  EXPECT_EQ(child.control().receive_value<std::uint64_t>(), 1u);
  child.control().send_value(Question{Ask::kQuit, 0});
  (void)child.control().receive_value<std::uint64_t>();
}

TEST_F(ProcessTest, IsSharedUntilTheLastStop) {
  const RunningProcess first;
  const std::uint64_t identity = first->segment().head().identity;
  {
    const RunningProcess second;
    EXPECT_EQ(second->segment().head().identity, identity);
  }
  EXPECT_EQ(first->segment().head().identity, identity);
}

TEST_F(ProcessTest, ASecondLifeHasAnotherIdentity) {
  std::set<std::uint64_t> identities;
  for (int i = 0; i < 3; ++i) {
    const RunningProcess process;
    identities.insert(process->segment().head().identity);
  }
  EXPECT_EQ(identities.size(), 3u);
}

TEST_F(ProcessTest, NumbersAreUniqueFindTheirOwnerAndTheirIndex) {
  const std::size_t names_before = names();
  const RunningProcess process;
  std::set<std::uint32_t> qpns;
  std::set<std::uint32_t> indices;
  for (int i = 0; i < 5000; ++i) {  // more than one block has
    std::uint32_t index = 0;
    std::uint32_t qpn = 0;
    ASSERT_EQ(process->take_qpn(index, qpn), 0);
    ASSERT_TRUE(qpns.insert(qpn).second);
    ASSERT_TRUE(indices.insert(index).second);
    ASSERT_GT(qpn, 4095u);
    ASSERT_LT(qpn, 0xffffffu);
    ASSERT_EQ(Process::index_in(process->self(), qpn), index);
  }
  EXPECT_EQ(names(), names_before + 2);
  EXPECT_EQ(process->find_peer(*qpns.begin()), &process->self());
  EXPECT_EQ(process->find_peer(*qpns.rbegin()), &process->self());
  EXPECT_EQ(Process::index_in(process->self(), 5), ~0u);
}

TEST_F(ProcessTest, ANumberRestsBeforeItIsUsedAgain) {
  const RunningProcess process;
  std::uint32_t index = 0;
  std::uint32_t first = 0;
  ASSERT_EQ(process->take_qpn(index, first), 0);
  process->give_qpn(index);
  for (int i = 0; i < 100; ++i) {
    std::uint32_t qpn = 0;
    ASSERT_EQ(process->take_qpn(index, qpn), 0);
    ASSERT_NE(qpn, first);
    process->give_qpn(index);
  }
}

TEST_F(ProcessTest, ARingWakesTheServiceThread) {
  const RunningProcess process;
  Doorbells& doorbells = process->self().segment.doorbells();
  doorbells.service.ring(3);
  doorbells.service.ring(4095);
  doorbells.cq_wake.ring(9);
  process->self().wake_service();
  EXPECT_TRUE(wait_until([] { return events().requests == 2 && events().cq_wakes == 1; }));
  EXPECT_EQ(events().request_bits, 4u + 4096u);
  EXPECT_EQ(events().last_cq, 9u);
  EXPECT_TRUE(events().on_service_thread);
}

TEST_F(ProcessTest, TicksOnlyWhileAsked) {
  const RunningProcess process;
  const auto start = std::chrono::steady_clock::now();
  process->want_tick(true);
  ASSERT_TRUE(wait_until([] { return events().ticks >= 20; }));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(18));
  process->want_tick(false);
  // One more may be under way; then the thread sleeps: a wake-up goes by without a tick.
  process->self().segment.doorbells().cq_wake.ring(1);
  process->self().wake_service();
  ASSERT_TRUE(wait_until([] { return events().cq_wakes == 1; }));
  const std::uint32_t ticks = events().ticks;
  process->self().segment.doorbells().cq_wake.ring(1);
  process->self().wake_service();
  ASSERT_TRUE(wait_until([] { return events().cq_wakes == 2; }));
  EXPECT_EQ(events().ticks, ticks);
  EXPECT_EQ(events().sweeps, 0u) << "no peer, no sweep";
}

TEST_F(ProcessTest, ItsOwnArenasAreMappedWhereTheyLie) {
  const RunningProcess process;
  int error = 0;
  auto* const memory = static_cast<unsigned char*>(alloc_shared(2u << 20, error));
  ASSERT_NE(memory, nullptr);
  ArenaView view;
  ASSERT_TRUE(arena_of(memory, 1, view));
  process->want_arena(process->self(), view.number);
  EXPECT_EQ(process->self().arenas[view.number].base.load(), memory);
  EXPECT_EQ(process->self().arenas[view.number].size, view.size);
  EXPECT_TRUE(wait_until([] { return events().arenas_ready >= 1; }));
  EXPECT_FALSE(process->arena_refused(process->self(), view.number));
  process->want_arena(process->self(), kMaxArenas - 1);
  EXPECT_TRUE(process->arena_refused(process->self(), kMaxArenas - 1));
  EXPECT_EQ(free_shared(memory), 0);
}

TEST_F(ProcessTest, AWantForNobodyIsForgotten) {
  const RunningProcess process;
  process->want_peer(0xabc123);
  process->want_peer(7);
  EXPECT_EQ(process->find_peer(0xabc123), nullptr);
  process->fence_everyone();
}

TEST_F(ProcessTest, ManyThreadsTakeAndGiveNumbers) {
  const RunningProcess process;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  std::vector<std::atomic<int>> taken(kMaxQps);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        std::uint32_t index = 0;
        std::uint32_t qpn = 0;
        if (process->take_qpn(index, qpn) != 0 || taken[index].fetch_add(1) != 0) {
          ++wrong;
          continue;
        }
        if (process->find_peer(qpn) != &process->self()) ++wrong;
        taken[index].fetch_sub(1);
        process->give_qpn(index);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace verbatim::shm
