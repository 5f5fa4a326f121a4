// SPDX-License-Identifier: BSD-2-Clause
#include "perf/footprint/memory_use.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20;

MemoryUse own_use() { return memory_use(std::array{getpid()}); }

TEST(MemoryUse, CountsAFileThatIsAllocatedButNotTouched) {
  const auto before = own_use();
  const Fd file(memfd_create("some-segment", MFD_CLOEXEC));
  ASSERT_EQ(posix_fallocate(file.get(), 0, kBytes), 0);
  EXPECT_GE(own_use().shared, before.shared + kBytes);
}

TEST(MemoryUse, CountsAMappedFileOnceAlsoWhenItIsClosedOrMappedTwice) {
  const auto before = own_use();
  Fd file(memfd_create("some-segment", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kBytes), 0);
  void* once = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(once, MAP_FAILED);
  std::memset(once, 1, kBytes);
  const std::array both = {getpid(), getpid()};
  EXPECT_EQ(memory_use(both).shared, own_use().shared) << "two processes, one file";
  file.reset();
  const auto closed = own_use();
  EXPECT_GE(closed.shared, before.shared + kBytes);
  EXPECT_LE(closed.shared, before.shared + kBytes + 65536);
  munmap(once, kBytes);
}

TEST(MemoryUse, LeavesTheMeasurementsOwnFileOut) {
  const auto before = own_use();
  const Fd file(memfd_create("verbatim-perf", MFD_CLOEXEC));
  ASSERT_EQ(posix_fallocate(file.get(), 0, kBytes), 0);
  EXPECT_EQ(own_use().shared, before.shared);
}

TEST(MemoryUse, AProcessThatIsGoneIsAnError) {
  Child child({"/bin/true"}, {});
  const pid_t pid = child.pid();
  child.wait();
  EXPECT_THROW(memory_use(std::array{pid}), std::runtime_error);
}

}  // namespace
}  // namespace verbatim::perf
