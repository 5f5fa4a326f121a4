// SPDX-License-Identifier: BSD-2-Clause
// System calls that a thread makes are counted, and do what they do without that.
#include "perf/support/call_count.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

class CallsOfAThread : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CallCount().calls()) GTEST_SKIP() << "no syscall user dispatch here (Linux 5.11, x86-64)";
  }
};

TEST_F(CallsOfAThread, AreCountedOneByOne) {
  const CallCount count;
  EXPECT_EQ(count.calls(), 0u);
  for (int i = 0; i < 5; ++i) (void)getppid();
  const auto found = count.calls();
  EXPECT_EQ(found, 5u);
}

TEST_F(CallsOfAThread, DoWhatTheyDo) {
  const pid_t parent = getppid();
  auto [out, in] = pipe_pair();
  char byte = 0;
  pid_t counted_parent = 0;
  ssize_t written = 0, got = 0;
  int closed = 0, error = 0;
  void* mapped = nullptr;
  std::optional<std::uint64_t> found;
  {
    const CallCount count;
    counted_parent = getppid();
    written = write(in.get(), "x", 1);
    got = read(out.get(), &byte, 1);
    closed = close(-1);
    error = errno;
    // Six arguments.
    mapped = reinterpret_cast<void*>(::syscall(SYS_mmap, nullptr, 4096, 3, 0x22, -1, 0));
    found = count.calls();
  }
  EXPECT_EQ(counted_parent, parent);
  EXPECT_EQ(written, 1);
  EXPECT_EQ(got, 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(closed, -1);
  EXPECT_EQ(error, EBADF);
  ASSERT_NE(mapped, reinterpret_cast<void*>(-1));
  *static_cast<char*>(mapped) = 1;  // writable, as was asked for
  EXPECT_EQ(::syscall(SYS_munmap, mapped, 4096), 0);
  EXPECT_GE(found, 5u) << "a sanitizer has some of its own";
}

TEST_F(CallsOfAThread, AreNotCountedInAPauseNorBehindTheEnd) {
  std::optional<std::uint64_t> found;
  {
    const CallCount count;
    (void)getppid();
    {
      const CallCountPause pause;
      (void)getppid();
    }
    (void)getppid();
    found = count.calls();
  }
  (void)getppid();
  EXPECT_EQ(found, 2u);
  const CallCount again;
  EXPECT_EQ(again.calls(), 0u);
}

TEST_F(CallsOfAThread, AreUnknownWhereItStartsAnotherThreadOrProcessWhichRunsAllTheSame) {
  std::optional<std::uint64_t> with_thread, with_process;
  bool ran = false;
  {
    const CallCount count;
    std::thread([&] { ran = getppid() > 0; }).join();
    with_thread = count.calls();
  }
  int status = -1;
  {
    const CallCount count;
    const pid_t child = fork();
    if (child == 0) _exit(getppid() > 0 ? 7 : 8);
    waitpid(child, &status, 0);
    with_process = count.calls();
  }
  EXPECT_TRUE(ran);
  EXPECT_FALSE(with_thread);
  EXPECT_FALSE(with_process);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace verbatim::perf
