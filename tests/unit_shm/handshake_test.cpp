// SPDX-License-Identifier: BSD-2-Clause
// Two processes and more: how they meet, what they hand each other, how they notice each other's
// end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "providers/shm/fabric/peer_life.hpp"
#include "providers/shm/fabric/segment.hpp"
#include "runtime/memory/arena.hpp"
#include "tests/support/child.hpp"
#include "tests/support/fabric_directory.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/process_census.hpp"
#include "tests/support/role.hpp"
#include "tests/unit_shm/process_events.hpp"

namespace verbatim::shm {
namespace {

using harness::Child;
using harness::wait_until;

/// The role "process" in another process.
class Other {
 public:
  explicit Other(const std::map<std::string, std::string>& environment = {})
      : child_(std::make_unique<Child>("process", environment)) {
    EXPECT_EQ(child_->control().receive_value<int>(), 0);
  }
  void tell(Ask what, std::uint64_t value = 0) {
    child_->control().send_value(Question{what, value});
  }
  std::uint64_t answer() { return child_->control().receive_value<std::uint64_t>(); }
  std::uint64_t ask(Ask what, std::uint64_t value = 0) {
    tell(what, value);
    return answer();
  }
  std::uint32_t take_qpn() { return static_cast<std::uint32_t>(ask(Ask::kTakeQpn)); }
  Child& child() { return *child_; }
  ~Other() {
    if (!quit_) child_->kill_and_collect();
  }
  void quit() {
    quit_ = true;
    (void)ask(Ask::kQuit);
    EXPECT_EQ(child_->wait().exit_status, 0);
  }

 private:
  std::unique_ptr<Child> child_;
  bool quit_ = false;
};

class HandshakeTest : public ::testing::Test {
 protected:
  void SetUp() override { events().reset(); }
  static ProcessEvents& events() { return ProcessEvents::get(); }
  /// Held: a dead peer stays as it was.
  static Peer* meet(std::uint32_t qpn) {
    Peer* peer = nullptr;
    EXPECT_TRUE(wait_until([&] {
      Process::get().want_peer(qpn);
      peer = Process::get().hold_peer(qpn);
      return peer != nullptr;
    }));
    return peer;
  }
};

TEST_F(HandshakeTest, AProcessIsFoundByItsNumberAndItsSegmentRead) {
  const RunningProcess process;
  Other other;
  const std::uint32_t qpn = other.take_qpn();
  ASSERT_NE(qpn, 0u);
  Peer* const peer = meet(qpn);
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(peer->pid, other.child().pid());
  EXPECT_TRUE(peer->alive);
  EXPECT_FALSE(peer->self);
  EXPECT_EQ(peer->segment.live_head().magic, kSegmentMagic);
  EXPECT_EQ(peer->segment.identity(), peer->identity);
  EXPECT_EQ(Process::index_in(*peer, qpn), qpn % kQpnsPerBlock);
  EXPECT_TRUE(wait_until([] { return events().peers_ready == 1; }));
  // The other side knows us too, although it asked for nothing.
  EXPECT_TRUE(wait_until([&] { return other.ask(Ask::kEvents) >> 32 == 1; }));
  other.quit();
}

TEST_F(HandshakeTest, TakesMicrosecondsNotTimeouts) {
  const RunningProcess process;
  Other other;
  const std::uint32_t qpn = other.take_qpn();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_NE(meet(qpn), nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
  other.quit();
}

TEST_F(HandshakeTest, APeerThatComesLaterIsMetWhileAskedFor) {
  const RunningProcess process;
  std::uint32_t index = 0;
  std::uint32_t own = 0;
  ASSERT_EQ(process->take_qpn(index, own), 0);
  Other other;
  // It asks before the number exists anywhere: nothing is found, and nothing breaks.
  other.tell(Ask::kMeet, own);
  EXPECT_EQ(other.answer(), 1u);
  EXPECT_EQ(other.ask(Ask::kAlive, own), 1u);
  other.quit();
}

TEST_F(HandshakeTest, DirectCopiesAreTriedOrRefusedAsAsked) {
  const RunningProcess process;
  Other willing;
  const Peer* const peer = meet(willing.take_qpn());
  ASSERT_NE(peer, nullptr);
  EXPECT_NE(peer->cma.load(), Cma::kUntried);
  setenv("VERBATIM_SHM_CMA", "off", 1);
  Other another;
  const Peer* const refused = meet(another.take_qpn());
  unsetenv("VERBATIM_SHM_CMA");
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->cma.load(), Cma::kRefused);
  willing.quit();
  another.quit();
}

TEST_F(HandshakeTest, BothConnectAtTheSameMomentAndAreOnePeerEach) {
  for (int round = 0; round < 20; ++round) {
    events().reset();
    const RunningProcess process;
    std::uint32_t index = 0;
    std::uint32_t own = 0;
    ASSERT_EQ(process->take_qpn(index, own), 0);
    Other other;
    const std::uint32_t qpn = other.take_qpn();
    other.tell(Ask::kMeet, own);
    Peer* const peer = meet(qpn);
    ASSERT_NE(peer, nullptr);
    EXPECT_EQ(other.answer(), 1u);
    // Whichever socket is closed as a double: nobody takes that for an end, and questions are
    // answered.
    const auto number = static_cast<std::uint32_t>(other.ask(Ask::kAllocate, 1u << 20));
    (void)other.ask(Ask::kShare, number);
    process->want_arena(*peer, number);
    EXPECT_TRUE(wait_until([&] { return peer->arenas[number].base.load() != nullptr; }));
    EXPECT_TRUE(peer->alive);
    EXPECT_EQ(other.ask(Ask::kAlive, own), 1u);
    EXPECT_EQ(events().peers_dead, 0u);
    EXPECT_EQ(other.ask(Ask::kEvents) & 0xffffffff, 0u);
    int others = 0;
    for (Peer* p = peer; p != nullptr; p = p->next) others += !p->self;
    EXPECT_EQ(others, 1);
    other.quit();
  }
}

TEST_F(HandshakeTest, ManyProcessesMeetAll) {
  constexpr int kProcesses = 6;
  std::vector<std::unique_ptr<Other>> others;
  std::vector<std::uint32_t> qpns;
  for (int i = 0; i < kProcesses; ++i) {
    others.push_back(std::make_unique<Other>());
    qpns.push_back(others.back()->take_qpn());
  }
  for (int target = 0; target < kProcesses; ++target) {
    for (int i = 0; i < kProcesses; ++i) {
      if (i != target)
        others[static_cast<std::size_t>(i)]->tell(Ask::kMeet,
                                                  qpns[static_cast<std::size_t>(target)]);
    }
    for (int i = 0; i < kProcesses; ++i) {
      if (i != target) {
        EXPECT_EQ(others[static_cast<std::size_t>(i)]->answer(), 1u);
      }
    }
  }
  for (auto& other : others) EXPECT_EQ(other->ask(Ask::kEvents) & 0xffffffff, 0u);
  for (auto& other : others) other->quit();
}

TEST_F(HandshakeTest, SharedArenasAreMappedAndOthersRefused) {
  const RunningProcess process;
  Other other;
  Peer* const peer = meet(other.take_qpn());
  ASSERT_NE(peer, nullptr);
  const auto number = static_cast<std::uint32_t>(other.ask(Ask::kAllocate, 3u << 20));
  process->want_arena(*peer, number);
  EXPECT_TRUE(wait_until([&] { return process->arena_refused(*peer, number); }))
      << "it is not shared yet";
  EXPECT_EQ(peer->arenas[number].base.load(), nullptr);
  (void)other.ask(Ask::kShare, number);
  events().arenas_ready = 0;
  process->want_arena(*peer, number);
  ASSERT_TRUE(wait_until([] { return events().arenas_ready == 1; }));
  unsigned char* const base = peer->arenas[number].base.load();
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(peer->arenas[number].size, 3u << 20);
  EXPECT_EQ(base[12345], 0x5a);
  base[777] = 0x42;
  EXPECT_EQ(other.ask(Ask::kByteAt, 777), 0x42u);
  EXPECT_EQ(peer->wanted_arena_count.load(), 0u);
  other.quit();
  EXPECT_EQ(base[777], 0x42) << "a mapping outlives its owner";
}

TEST_F(HandshakeTest, ARefusalIsForgottenAfterAWhile) {
  const RunningProcess process;
  Other other;
  Peer* const peer = meet(other.take_qpn());
  ASSERT_NE(peer, nullptr);
  process->want_arena(*peer, 900);
  ASSERT_TRUE(wait_until([&] { return process->arena_refused(*peer, 900); }));
  EXPECT_TRUE(wait_until([&] { return !process->arena_refused(*peer, 900); }));
  EXPECT_GT(events().sweeps, 0u);
  other.quit();
}

TEST_F(HandshakeTest, AKilledPeerIsDeadWithinFiftyMilliseconds) {
  const RunningProcess process;
  Other other;
  const std::uint32_t qpn = other.take_qpn();
  Peer* const peer = meet(qpn);
  ASSERT_NE(peer, nullptr);
  const std::uint64_t published = peer->segment.live_head().identity;
  const auto start = std::chrono::steady_clock::now();
  other.child().signal(SIGKILL);
  ASSERT_TRUE(wait_until([&] { return !peer->alive.load(); }));
  const auto took = std::chrono::steady_clock::now() - start;
#ifndef VBT_UNDER_SANITIZER
  EXPECT_LT(took, std::chrono::milliseconds(50));
#else
  EXPECT_LT(took, std::chrono::seconds(2));
#endif
  EXPECT_TRUE(wait_until([] { return events().peers_dead == 1; }));
  EXPECT_EQ(peer->segment.live_head().identity, published)
      << "what it had published stays readable";
  EXPECT_EQ(process->find_peer(qpn), peer);
  EXPECT_FALSE(peer->alive);
}

TEST_F(HandshakeTest, AKilledPeerIsDeadAlthoughItsChildHoldsTheSockets) {
  const RunningProcess process;
  Other other;
  Peer* const peer = meet(other.take_qpn());
  ASSERT_NE(peer, nullptr);
  const auto sleeper = static_cast<pid_t>(other.ask(Ask::kFork));
  other.child().signal(SIGKILL);
  EXPECT_TRUE(wait_until([&] { return !peer->alive.load(); }));
  kill(sleeper, SIGKILL);
}

TEST_F(HandshakeTest, APeerThatStopsButLivesOnIsGoneToo) {
  const RunningProcess process;
  Other other;
  Peer* const peer = meet(other.take_qpn());
  ASSERT_NE(peer, nullptr);
  const auto sleeper = static_cast<pid_t>(other.ask(Ask::kFork));  // it holds the sockets
  (void)other.ask(Ask::kStopProcess);
  EXPECT_TRUE(wait_until([&] { return !peer->alive.load(); }));
  EXPECT_TRUE(wait_until([] { return events().peers_dead == 1; }));
  kill(sleeper, SIGKILL);
  other.quit();
}

/// Is the name of the block of `qpn` in the folder?
bool is_named(std::uint32_t qpn) {
  char name[8];
  std::snprintf(name, sizeof name, "q%03x", qpn >> kQpnBlockBits);
  const auto contents = harness::fabric_contents();
  return std::find(contents.begin(), contents.end(), name) != contents.end();
}

TEST_F(HandshakeTest, TheNamesOfTheKilledAreRemovedByWhoAsksForThem) {
  const RunningProcess process;
  Other other;
  const std::uint32_t qpn = other.take_qpn();
  other.child().kill_and_collect();
  ASSERT_TRUE(is_named(qpn));
  EXPECT_TRUE(wait_until([&] {
    process->want_peer(qpn);
    return !is_named(qpn);
  }));
}

TEST_F(HandshakeTest, TheNamesOfTheKilledAreRemovedByThoseWhoKnewThem) {
  const RunningProcess process;
  for (const bool has_child : {false, true}) {
    Other other;
    const std::uint32_t qpn = other.take_qpn();
    Peer* const peer = meet(qpn);
    ASSERT_NE(peer, nullptr);
    process->release_peer(*peer);
    // A forked child has the listening socket too, as far as it can.
    const pid_t sleeper = has_child ? static_cast<pid_t>(other.ask(Ask::kFork)) : 0;
    ASSERT_TRUE(is_named(qpn));
    other.child().kill_and_collect();
    EXPECT_TRUE(wait_until([&] { return !is_named(qpn); }, 2000)) << has_child;
    if (sleeper != 0) kill(sleeper, SIGKILL);
  }
}

TEST_F(HandshakeTest, RetiredPeersGiveEverythingBack) {
  const RunningProcess process;
  { Other warm_up; }
  const auto before = harness::ProcessCensus::take();
  const auto nothing_left = [&] {
    return left_behind(before, harness::ProcessCensus::take()).empty();
  };
  for (int round = 0; round < 3; ++round) {
    auto other = std::make_unique<Other>();
    Peer* const held = meet(other->take_qpn());
    ASSERT_NE(held, nullptr);
    const auto number = static_cast<std::uint32_t>(other->ask(Ask::kAllocate, 1u << 20));
    (void)other->ask(Ask::kShare, number);
    process->want_arena(*held, number);
    ASSERT_TRUE(wait_until([&] { return held->arenas[number].base.load() != nullptr; }));
    other->quit();
    other.reset();
    ASSERT_TRUE(wait_until([&] { return !held->alive.load(); }));
    EXPECT_FALSE(wait_until(nothing_left, 500)) << "somebody holds it";
    EXPECT_EQ(held->segment.live_head().magic, kSegmentMagic);
    process->release_peer(*held);
    EXPECT_TRUE(wait_until(nothing_left, 2000))
        << left_behind(before, harness::ProcessCensus::take());
  }
}

TEST_F(HandshakeTest, TheAddressesOfARetiredPeersSegmentReadAsZerosAndServeTheNext) {
  const RunningProcess process;
  const unsigned char* addresses = nullptr;
  for (int round = 0; round < 3; ++round) {
    Other other;
    Peer* const held = meet(other.take_qpn());
    ASSERT_NE(held, nullptr);
    const auto* const head = &held->segment.live_head();
    if (addresses == nullptr) addresses = reinterpret_cast<const unsigned char*>(head);
    EXPECT_EQ(reinterpret_cast<const unsigned char*>(head), addresses);
    EXPECT_EQ(head->magic, kSegmentMagic);
    other.quit();
    ASSERT_TRUE(wait_until([&] { return !held->alive.load(); }));
    process->release_peer(*held);
    // What a poll does that is late: it looks where the next message would have appeared.
    EXPECT_TRUE(
        wait_until([&] { return __atomic_load_n(&head->magic, __ATOMIC_RELAXED) == 0; }, 2000));
  }
}

TEST_F(HandshakeTest, StoppingForgetsThePeersAndLeavesNothing) {
  { const RunningProcess warm_up; }
  Other other;
  const std::uint32_t qpn = other.take_qpn();
  const std::uint64_t descriptors = other.ask(Ask::kDescriptors);
  const auto before = harness::ProcessCensus::take();
  for (int i = 0; i < 3; ++i) {
    const RunningProcess process;
    ASSERT_NE(meet(qpn), nullptr);
  }
  EXPECT_EQ(left_behind(before, harness::ProcessCensus::take()), "");
  // More than three where it answered one that had connected twice, and was gone in between.
  EXPECT_TRUE(wait_until([&] {
    const std::uint64_t events = other.ask(Ask::kEvents);
    const std::uint64_t ended = events & 0xffffffff;
    return ended >= 3 && ended == events >> 32;
  }));
  EXPECT_TRUE(wait_until([&] { return other.ask(Ask::kDescriptors) == descriptors; }))
      << "what it had of the gone is given back";
  other.quit();
}

/// Starts the role "process" in a pid namespace of its own and passes questions and answers
/// through.
VBT_ROLE(namespaced_node) {
  const bool apart = unshare(CLONE_NEWPID) == 0;
  control.send_value(static_cast<std::int32_t>(apart));
  if (!apart) return 0;
  Child inner("process");
  control.send_value(inner.control().receive_value<int>());
  for (;;) {
    const auto question = control.receive_value<Question>();
    inner.control().send_value(question);
    control.send_value(inner.control().receive_value<std::uint64_t>());
    if (question.ask == Ask::kQuit) return inner.wait().exit_status;
  }
}

TEST_F(HandshakeTest, AcrossPidNamespacesTheyMeetWithoutDirectCopiesAndNoticeTheEnd) {
  const harness::AllowedLog apart("a process of another pid namespace was met");
  // LeakSanitizer cannot start its tracer once new processes belong to another namespace.
  Child inner("namespaced_node", {{"ASAN_OPTIONS", "detect_leaks=0"}});
  if (inner.control().receive_value<std::int32_t>() == 0) {
    GTEST_SKIP() << "a pid namespace needs privileges";
  }
  ASSERT_EQ(inner.control().receive_value<int>(), 0);
  const auto ask = [&](Ask what, std::uint64_t value = 0) {
    inner.control().send_value(Question{what, value});
    return inner.control().receive_value<std::uint64_t>();
  };
  Other outer;
  const std::uint32_t qpn = outer.take_qpn();
  ASSERT_EQ(ask(Ask::kMeet, qpn), 1u);
  EXPECT_EQ(ask(Ask::kAlive, qpn), 1u);
  EXPECT_EQ(ask(Ask::kCma, qpn), static_cast<std::uint64_t>(Cma::kRefused));
  // No pid, no pidfd, and no end of file while a forked child holds the socket: the lock tells.
  EXPECT_EQ(ask(Ask::kHasPidfd, qpn), 0u);
  const auto sleeper = static_cast<pid_t>(outer.ask(Ask::kFork));
  [[maybe_unused]] const auto start = std::chrono::steady_clock::now();
  outer.child().signal(SIGKILL);
  EXPECT_TRUE(wait_until([&] { return ask(Ask::kAlive, qpn) == 0; }));
#ifndef VBT_UNDER_SANITIZER
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
#endif
  kill(sleeper, SIGKILL);
  (void)ask(Ask::kQuit);
  EXPECT_EQ(inner.wait().exit_status, 0);
}

/// Where no pidfd is to be had, the record lock on the segment tells.
TEST(PeerLife, TheLockOnASegmentEndsWithItsProcess) {
  const RunningProcess process;
  auto own = std::make_unique<OwnSegment>();
  ASSERT_EQ(own->create(), 0);
  EXPECT_FALSE(life_lock_held(own->fd())) << "one's own lock is no conflict";
  own->destroy();

  Other other;
  std::uint32_t qpn = other.take_qpn();
  ASSERT_TRUE(wait_until([&] {
    process->want_peer(qpn);
    return process->find_peer(qpn) != nullptr;
  }));
  const std::string path = "/proc/" + std::to_string(other.child().pid()) + "/fd/";
  UniqueFd segment;
  for (int fd = 3; fd < 64 && !segment.valid(); ++fd) {
    char target[64] = "";
    const ssize_t n = readlink((path + std::to_string(fd)).c_str(), target, sizeof target - 1);
    if (n > 0 && std::string(target).find("verbatim-segment") != std::string::npos) {
      segment.reset(open((path + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC));
    }
  }
  if (!segment.valid()) GTEST_SKIP() << "no look into the other's descriptors here";
  EXPECT_TRUE(life_lock_held(segment.get()));
  other.child().kill_and_collect();
  EXPECT_TRUE(wait_until([&] { return !life_lock_held(segment.get()); }));
}

}  // namespace
}  // namespace verbatim::shm
