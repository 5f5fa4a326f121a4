// SPDX-License-Identifier: BSD-2-Clause
//
// Who sleeps in ibv_get_cq_event is woken by the process that sends to it: man ibv_get_cq_event,
// providers/shm/queues/comp_channel.hpp. `a` is this process, `b` the one that sends.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "providers/shm/wire/layout.hpp"
#include "tests/shm/cq_told.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kReceives = 64;

bool is_asleep(pid_t thread) {
  std::string stat;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/stat"), stat);
  const auto end = stat.rfind(')');
  return end != std::string::npos && stat.size() > end + 2 && stat[end + 2] == 'S';
}

/// Else the service thread wakes all: before Linux 5.16, and under valgrind.
bool peers_can_wake() {
  constexpr long kFutexWaitv = 449;
  return ::syscall(kFutexWaitv, nullptr, 0, 0, nullptr, 0) < 0 && errno == EINVAL;
}

/// What peers see of this process, where it is mapped here.
const shm::SegmentHeader* own_segment() {
  // By the kernel's hand: the mappings of others are made and unmade meanwhile.
  std::ifstream maps("/proc/self/maps"), memory("/proc/self/mem");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:") == std::string::npos || line.find(" r") == std::string::npos) continue;
    const auto* head = reinterpret_cast<const shm::SegmentHeader*>(std::stoull(line, nullptr, 16));
    const auto read = [&](const void* from, void* to, std::streamsize bytes) {
      memory.clear();
      memory.seekg(static_cast<std::streamoff>(reinterpret_cast<std::uintptr_t>(from)));
      return static_cast<bool>(memory.read(static_cast<char*>(to), bytes));
    };
    std::uint64_t magic = 0;
    decltype(head->pid) pid = 0;
    if (read(&head->magic, &magic, sizeof magic) && magic == shm::kSegmentMagic &&
        read(&head->pid, &pid, sizeof pid) && pid == ::getpid())
      return head;
  }
  return nullptr;
}

/// Nobody is shown to be about to look for events.
bool nobody_is_on_the_way() {
  const shm::SegmentHeader* const head = own_segment();
  if (head == nullptr) return false;
  for (const shm::CompChannelRecord& record : head->comp_channels)
    if (record.on_the_way != 0) return false;
  return true;
}

/// Gets `rounds` events of `told`, each while this process does nothing but sleep in the call.
void sleep_for_each(Told& told, ibv_comp_channel* channel, std::uint32_t rounds) {
  std::atomic<pid_t> id{0};
  std::atomic<std::uint32_t> asked{0};
  std::atomic<std::uint32_t> got{0};
  std::thread reader([&] {
    id = static_cast<pid_t>(::syscall(SYS_gettid));
    for (std::uint32_t i = 1; i <= rounds; ++i) {
      if (!wait_until([&] { return asked >= i; })) return;
      EXPECT_EQ(get(channel), told.cq);
      got = i;
    }
  });
  for (std::uint32_t i = 1; i <= rounds; ++i) {
    EXPECT_EQ(ibv_req_notify_cq(told.cq, 0), 0);
    asked = i;
    EXPECT_TRUE(wait_until([&] { return id != 0 && is_asleep(id); }));
    told.come();
    EXPECT_TRUE(wait_until([&] { return got >= i; })) << "nobody woke it";
    told.sent();
    told.take();
  }
  reader.join();
}

TEST(CqWake, ASleeperIsWokenByItsSenderAndNoThreadBetween) {
  if (!peers_can_wake()) GTEST_SKIP() << "a sleeper cannot wait on two words here";
  Pair pair(kApart);
  ChannelHandle channel(ibv_create_comp_channel(pair.a.here().context()));
  Told told(pair, channel.get());
  constexpr std::uint32_t kRounds = 100;
  told.post(kReceives);
  sleep_for_each(told, channel.get(), 4);  // until they have met
  const std::uint64_t before = sleeps_of_service_thread();
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t done = 0; done < kRounds; done += 20) {
    told.post(20);
    sleep_for_each(told, channel.get(), 20);
  }
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                      std::chrono::steady_clock::now() - start)
                      .count();
  // It sweeps every 50 ms, and a reader may have been seen asleep on its way into the call.
  EXPECT_LT(sleeps_of_service_thread() - before,
            kRounds / 2 + 2 * static_cast<std::uint64_t>(ms) / 50);
  EXPECT_FALSE(is_readable(channel.get(), 0));
}

TEST(CqWake, ChannelsBeyondThoseThatPeersSeeAreToldOfAsWell) {
  Pair pair(kApart);
  std::vector<ChannelHandle> channels;
  for (int i = 0; i < 300; ++i) {
    channels.emplace_back(ibv_create_comp_channel(pair.a.here().context()));
    ASSERT_NE(channels.back(), nullptr);
  }
  Told told(pair, channels.back().get());
  told.post(kReceives);
  sleep_for_each(told, channels.back().get(), 8);
  // A place that is free again serves who comes next.
  channels.erase(channels.begin());
  ChannelHandle next(ibv_create_comp_channel(pair.a.here().context()));
  Told also(pair, next.get());
  also.post(kReceives);
  sleep_for_each(also, next.get(), 8);
}

TEST(CqWake, WhatASleeperLeavesIsToldByTheDescriptor) {
  Pair pair(kApart);
  ChannelHandle channel(ibv_create_comp_channel(pair.a.here().context()));
  Told first(pair, channel.get());
  Told second(pair, channel.get());
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    first.post(1);
    second.post(1);
    ASSERT_EQ(ibv_req_notify_cq(first.cq, 0), 0);
    ASSERT_EQ(ibv_req_notify_cq(second.cq, 0), 0);
    ibv_cq* named = nullptr;
    std::thread reader([&] { named = get(channel.get()); });
    first.come();
    second.come();
    reader.join();
    ASSERT_TRUE(is_readable(channel.get(), kDefaultWaitMs)) << "the other's event is lost";
    ibv_cq* const left = get(channel.get());
    EXPECT_TRUE((named == first.cq && left == second.cq) ||
                (named == second.cq && left == first.cq));
    EXPECT_FALSE(is_readable(channel.get(), 0)) << "readable with nothing behind it";
    for (Told* told : {&first, &second}) {
      told->sent();
      told->take();
    }
  }
}

TEST(CqWake, EachOfManySleepersGetsAnEvent) {
  Pair pair(kApart);
  ChannelHandle channel(ibv_create_comp_channel(pair.a.here().context()));
  constexpr int kSleepers = 4;
  std::vector<std::unique_ptr<Told>> all;
  for (int i = 0; i < kSleepers; ++i) all.push_back(std::make_unique<Told>(pair, channel.get()));
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> got{0};
    std::vector<std::thread> readers;
    for (auto& told : all) {
      told->post(1);
      ASSERT_EQ(ibv_req_notify_cq(told->cq, 0), 0);
    }
    for (int i = 0; i < kSleepers; ++i) {
      readers.emplace_back([&] {
        get(channel.get());
        ++got;
      });
    }
    for (auto& told : all) told->come();
    EXPECT_TRUE(wait_until([&] { return got == kSleepers; })) << got << " of " << kSleepers;
    for (std::thread& reader : readers) reader.join();
    for (auto& told : all) {
      told->sent();
      told->take();
    }
    EXPECT_FALSE(is_readable(channel.get(), 0));
  }
}

// A peer that maps our words, if only for reading, can move who sleeps on one to a word of its own.
TEST(CqWake, WhomAStrangerTakesAwayIsWokenByItsOwnProcess) {
  if (!peers_can_wake()) GTEST_SKIP() << "a sleeper cannot wait on two words here";
  Pair pair(kApart);
  ChannelHandle channel(ibv_create_comp_channel(pair.a.here().context()));
  Told told(pair, channel.get());
  told.post(kReceives);
  sleep_for_each(told, channel.get(), 4);  // from now on peers are told of sleepers
  const shm::SegmentHeader* const head = own_segment();
  ASSERT_NE(head, nullptr);
  std::atomic<std::uint32_t> elsewhere{0};
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(ibv_req_notify_cq(told.cq, 0), 0);
    std::atomic<bool> got{false};
    std::thread reader([&] {
      EXPECT_EQ(get(channel.get()), told.cq);
      got = true;
    });
    EXPECT_TRUE(wait_until([&] {
      long moved = 0;
      for (const shm::CompChannelRecord& record : head->comp_channels)
        moved += ::syscall(SYS_futex, &record.bed, FUTEX_REQUEUE, 0, INT_MAX, &elsewhere, 0);
      return moved == 1;
    })) << "nobody sleeps there";
    told.come();
    const bool woken = wait_until([&] { return got.load(); });
    EXPECT_TRUE(woken);
    if (!woken) ::syscall(SYS_futex, &elsewhere, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    reader.join();
    told.sent();
    told.take();
  }
}

TEST(CqWake, AnEventIsNotLostWithTheSleeperThatWasWokenForIt) {
#ifdef VBT_UNDER_SANITIZER
  GTEST_SKIP() << "sanitizers do not follow the stack of a cancelled thread";
#endif
  Pair pair(kApart);
  ChannelHandle channel(ibv_create_comp_channel(pair.a.here().context()));
  Told told(pair, channel.get());
  told.post(kReceives);
  sleep_for_each(told, channel.get(), 4);
  const auto body = [](void* argument) -> void* {
    ibv_cq* named = nullptr;
    void* cookie = nullptr;
    ibv_get_cq_event(static_cast<ibv_comp_channel*>(argument), &named, &cookie);
    return named;
  };
  for (int round = 0; round < 100; ++round) {
    told.post(1);
    ASSERT_EQ(ibv_req_notify_cq(told.cq, 0), 0);
    pthread_t reader;
    ASSERT_EQ(::pthread_create(&reader, nullptr, body, channel.get()), 0);
    told.come();
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    EXPECT_EQ(::pthread_cancel(reader), 0);
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(reader, &result), 0);
    if (result == PTHREAD_CANCELED) {
      ASSERT_TRUE(is_readable(channel.get(), kDefaultWaitMs));
      EXPECT_EQ(get(channel.get()), told.cq);
    } else {
      EXPECT_EQ(result, told.cq);
      ibv_ack_cq_events(told.cq, 1);
    }
    told.sent();
    told.take();
  }
  EXPECT_TRUE(nobody_is_on_the_way());
}

TEST(CqWake, NobodyIsCountedOnWhoHasGivenUp) {
  Pair pair(kApart);
  ChannelHandle channel(ibv_create_comp_channel(pair.a.here().context()));
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
  ibv_cq* named = nullptr;
  void* cookie = nullptr;
  EXPECT_EQ(ibv_get_cq_event(channel.get(), &named, &cookie), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_TRUE(nobody_is_on_the_way());
}

}  // namespace
}  // namespace verbatim::harness
