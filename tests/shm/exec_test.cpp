// SPDX-License-Identifier: BSD-2-Clause
//
// Programs that are started beside connections in service: by fork() and exec, by vfork(), by
// posix_spawn. The parent and its peers notice nothing, and the program gets nothing of ours: what
// it kept open would make its parent look alive.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>

#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

using Start = pid_t (*)(const char* const* words);

char* const* for_exec(const char* const* words) { return const_cast<char* const*>(words); }

pid_t by_fork(const char* const* words) {
  const pid_t child = fork();
  if (child == 0) {
    execv(words[0], for_exec(words));
    _exit(127);
  }
  return child;
}

pid_t by_vfork(const char* const* words) {
  const pid_t child = vfork();  // NOLINT: what is tested
  if (child == 0) {
    execv(words[0], for_exec(words));
    _exit(127);
  }
  return child;
}

pid_t by_spawn(const char* const* words) {
  pid_t child = -1;
  return posix_spawn(&child, words[0], nullptr, nullptr, for_exec(words), environ) == 0 ? child
                                                                                        : -1;
}

/// The program's exit status; -1: it was not started, or did not end by itself.
int run(Start start, const char* const* words) {
  const pid_t child = start(words);
  if (child < 0) return -1;
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr const char* kTrue[] = {"/bin/true", nullptr};
constexpr Start kEveryStart[] = {by_fork, by_vfork, by_spawn};

class Exec : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(Exec, between_processes());

#ifdef VBT_UNDER_THREAD_SANITIZER
#define SKIP_WITHOUT_FORK() \
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads"
#else
#define SKIP_WITHOUT_FORK()
#endif

/// Both ways: a write of `size` and a message; all of it under way before `meanwhile` runs.
void converse(Pair& pair, const RegionInfo& local, const RegionInfo& remote, std::uint32_t seed,
              std::uint64_t size, const std::function<void()>& meanwhile) {
  pair.a.fill(local, 0, size, seed);
  pair.b.fill(remote, size, 4096, seed + 1);
  expect_posted(pair.a.post_receive(pair.qa, receive(seed, slice(local, size, 4096))));
  expect_posted(pair.b.post_receive(pair.qb, receive(seed, slice(remote, size + 4096, 4096))));
  expect_posted(pair.a.post_send(
      pair.qa, {write(1, slice(local, 0, size), remote), send(2, slice(local, 0, 4096))}));
  expect_posted(pair.b.post_send(pair.qb, send(3, slice(remote, size, 4096))));
  meanwhile();
  const auto sent = pair.a.poll_sends(pair.qa, 2);
  expect_wc(sent[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
  expect_wc(sent[1], 2, IBV_WC_SEND, pair.qa);
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 3, IBV_WC_SEND, pair.qb);
  expect_receive(pair.a.poll_receives(pair.qa, 1)[0], seed, 4096, pair.qa);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], seed, 4096, pair.qb);
  EXPECT_EQ(pair.b.mismatch(remote, 0, size, seed), -1);
  EXPECT_EQ(pair.b.mismatch(remote, size + 4096, 4096, seed), -1);
  EXPECT_EQ(pair.a.mismatch(local, size, 4096, seed + 1), -1);
}

TEST_P(Exec, AProgramThatIsStartedDisturbsNoConnection) {
  SKIP_WITHOUT_FORK();
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 2_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 2_MiB);
  std::uint32_t seed = 1;
  converse(pair, local, remote, seed, 1_MiB, [] {});
  for (const Start start : kEveryStart) {
    SCOPED_TRACE(seed);
    converse(pair, local, remote, ++seed, 1_MiB, [&] { EXPECT_EQ(run(start, kTrue), 0); });
    converse(pair, local, remote, ++seed, 1_MiB, [] {});
    // A connection that is new since is as good.
    const auto fresh = pair.add_qps({}, {});
    expect_posted(pair.a.post_send(fresh.first, write(4, slice(local, 0, 64), remote)));
    expect_wc(pair.a.poll_sends(fresh.first, 1)[0], 4, IBV_WC_RDMA_WRITE, fresh.first);
  }
  EXPECT_EQ(pair.a.take_async_event(0).type, -1);
  EXPECT_EQ(pair.b.take_async_event(0).type, -1);
}

/// The descriptors that a started program finds open, by where they lead.
std::string inherited() {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const std::string script = "for f in /proc/$$/fd/*; do readlink $f; done > /proc/$$/fd/" +
                             std::to_string(ends[1]) + "; exec true";
  const char* const words[] = {"/bin/sh", "-c", script.c_str(), nullptr};
  EXPECT_EQ(run(by_fork, words), 0);
  close(ends[1]);
  std::string all;
  char part[4096];
  for (ssize_t got; (got = ::read(ends[0], part, sizeof part)) > 0;)
    all.append(part, static_cast<std::size_t>(got));
  close(ends[0]);
  return all;
}

/// Of pipes, which are another each time, that they are such.
std::vector<std::string> kinds(const std::string& lines) {
  std::vector<std::string> all;
  for (std::size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = lines.substr(at, end - at);
    all.push_back(line.rfind("pipe:", 0) == 0 ? "pipe" : line);
  }
  std::sort(all.begin(), all.end());  // one more is open, the numbers of the rest are others
  return all;
}

TEST_P(Exec, AProgramThatIsStartedGetsNoDescriptorOfOurs) {
  SKIP_WITHOUT_FORK();
  const auto before = kinds(inherited());
  ASSERT_FALSE(before.empty());
  PairWish wish;
  wish.a.with_channel = wish.b.with_channel = 1;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64_KiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64_KiB);
  converse(pair, local, remote, 1, 4096, [&] { EXPECT_EQ(kinds(inherited()), before); });
}

}  // namespace
}  // namespace verbatim::harness
