// SPDX-License-Identifier: BSD-2-Clause
//
// Which byte of a range is missing and what it lacks, on kernels that can be asked about single
// mappings and on those that cannot; and copies that answer where an instruction would be killed.
#include "runtime/memory/address_space.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <numeric>
#include <ostream>
#include <thread>
#include <vector>

namespace verbatim {
namespace {

/// What this thread's kernel has from here on.
enum class Kernel { kThis, kNoQuestion, kNoPopulate, kNoCma };

void PrintTo(Kernel kernel, std::ostream* out) {
  *out << (kernel == Kernel::kThis         ? "This"
           : kernel == Kernel::kNoQuestion ? "Before6_11"
           : kernel == Kernel::kNoPopulate ? "Before5_14"
                                           : "WithoutCma");
}

bool refuse(long call, unsigned argument, unsigned least, unsigned most, unsigned error) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
               static_cast<unsigned>(offsetof(seccomp_data, args) + 8 * argument)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, least, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, most, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool become(Kernel kernel) {
  constexpr unsigned kAny = ~0u;
  bool possible = true;
  if (kernel == Kernel::kNoQuestion || kernel == Kernel::kNoPopulate)
    possible = refuse(SYS_ioctl, 1, 0, kAny, ENOTTY);
  if (kernel == Kernel::kNoPopulate) possible = possible && refuse(SYS_madvise, 2, 22, 23, EINVAL);
  if (kernel == Kernel::kNoCma)
    possible = refuse(SYS_process_vm_readv, 5, 0, kAny, EPERM) &&
               refuse(SYS_process_vm_writev, 5, 0, kAny, EPERM);
  return possible;
}

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which older headers do not have

class AddressSpace : public ::testing::TestWithParam<Kernel> {
 protected:
  void SetUp() override {
    map(kPages);
    if (memory_ == MAP_FAILED) FAIL() << std::strerror(errno);
  }
  void TearDown() override { ::munmap(memory_, kPages * page_); }
  void map(std::size_t pages, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int file = -1) {
    memory_ = static_cast<unsigned char*>(
        ::mmap(nullptr, pages * page_, PROT_READ | PROT_WRITE, flags, file, 0));
  }
  std::uint64_t at(std::size_t page, std::size_t offset = 0) const {
    return reinterpret_cast<std::uintptr_t>(memory_) + page * page_ + offset;
  }
  void protect(std::size_t page, int rights) {
    ASSERT_EQ(::mprotect(memory_ + page * page_, page_, rights), 0);
  }
  std::size_t resident() const {
    std::vector<unsigned char> there(kPages);
    EXPECT_EQ(::mincore(memory_, kPages * page_, there.data()), 0);
    return static_cast<std::size_t>(std::accumulate(there.begin(), there.end(), 0));
  }
  /// An emulator of a kernel (qemu-user) takes advice that it does not know, and does nothing: then
  /// all memory seems to be there.
  bool is_emulated() const { return ::madvise(nullptr, page_, kPopulateRead) == 0; }
  /// In a thread whose kernel is the parameter's.
  template <class F>
  void there(F f) {
    if (is_emulated()) GTEST_SKIP() << "an emulator, which takes any advice";
    bool possible = false;
    std::thread([&] {
      possible = become(GetParam());
      if (possible) f();
    }).join();
    if (!possible) GTEST_SKIP() << "system calls cannot be filtered here";
  }
  static void expect(MissingByte missing, std::uint64_t address, Lack lack) {
    EXPECT_EQ(missing.lack, lack) << words_of(missing.lack);
    if (lack == Lack::kNothing) return;
    EXPECT_EQ(missing.at, address);
  }

  static constexpr std::size_t kPages = 64;
  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  unsigned char* memory_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Kernels, AddressSpace,
                         ::testing::Values(Kernel::kThis, Kernel::kNoQuestion, Kernel::kNoPopulate,
                                           Kernel::kNoCma),
                         ::testing::PrintToStringParamName());

TEST_P(AddressSpace, WhatIsThereIsNotMissing) {
  there([this] {
    for (const std::size_t pages : {std::size_t{1}, std::size_t{16}, kPages}) {
      expect(find_missing_to_register(at(0), pages * page_, true), 0, Lack::kNothing);
      expect(find_missing(at(0), pages * page_, true), 0, Lack::kNothing);
    }
  });
}

TEST_P(AddressSpace, AHoleIsNamedByItsFirstByte) {
  ASSERT_EQ(::munmap(memory_ + 8 * page_, page_), 0);
  there([this] {
    expect(find_missing_to_register(at(0, 5), 10 * page_, false), at(8), Lack::kMapping);
    expect(find_missing_to_register(at(0, 5), 60 * page_, false), at(8), Lack::kMapping);
    expect(find_missing_to_register(at(8, 100), 10, false), at(8, 100), Lack::kMapping);
  });
}

TEST_P(AddressSpace, MissingRightsAreNamed) {
  protect(8, PROT_READ);
  protect(9, PROT_NONE);
  there([this] {
    expect(find_missing_to_register(at(7), 2 * page_, true), at(8), Lack::kWriting);
    expect(find_missing_to_register(at(7), 2 * page_, false), 0, Lack::kNothing);
    expect(find_missing_to_register(at(7), 3 * page_, false), at(9), Lack::kRights);
    expect(find_missing(at(0), kPages * page_, true), at(8), Lack::kWriting);
    expect(find_missing(at(0), kPages * page_, false), at(9), Lack::kRights);
  });
}

TEST_P(AddressSpace, RightsInTheMiddleOfManyPagesAreSeenWhereTheKernelCanBeAsked) {
  protect(30, PROT_NONE);
  there([this] {
    const MissingByte missing = find_missing_to_register(at(0), kPages * page_, false);
    if (GetParam() == Kernel::kNoQuestion && missing.lack == Lack::kNothing) return;
    if (missing.lack == Lack::kNothing) GTEST_SKIP() << "no PROCMAP_QUERY (Linux 6.11)";
    expect(missing, at(30), Lack::kRights);
  });
}

TEST_P(AddressSpace, PastTheEndOfItsFileIsNamed) {
  const int file = ::memfd_create("short", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, static_cast<off_t>(20 * page_ + 1)), 0);
  TearDown();
  map(kPages, MAP_SHARED, file);
  ::close(file);
  there([this] {
    expect(find_missing_to_register(at(0), kPages * page_, false), at(21), Lack::kPage);
    expect(find_missing_to_register(at(20), 2 * page_, false), at(21), Lack::kPage);
    expect(find_missing_to_register(at(30, 3), 4, false), at(30, 3), Lack::kPage);
    expect(find_missing_to_register(at(0), 21 * page_, true), 0, Lack::kNothing);
  });
}

TEST_P(AddressSpace, WhatIsNoProcessesOwnIsNamed) {
  constexpr std::uint64_t kKernels = 0xffff888000000000;
  there([] {
    expect(find_missing_to_register(kKernels + 8, 100, false), kKernels + 8, Lack::kUser);
    expect(find_missing_to_register(~std::uint64_t{0} - 99, 100, false), ~std::uint64_t{0} - 99,
           Lack::kUser);
    expect(find_missing_to_register(0, 100, false), 0, Lack::kMapping);
  });
}

TEST_P(AddressSpace, OfManyPagesFewAreBroughtIn) {
  if (::madvise(memory_, kPages * page_, MADV_NOHUGEPAGE) != 0) GTEST_SKIP() << "no advice";
  there([this] {
    expect(find_missing_to_register(at(0), kPages * page_, true), 0, Lack::kNothing);
    EXPECT_LE(resident(), 2u);
  });
}

TEST_P(AddressSpace, CopiesOfWhatIsNotThereAreRefusedAndOthersArrive) {
  protect(8, PROT_NONE);
  protect(10, PROT_READ);
  there([this] {
    std::vector<unsigned char> ours(7 * page_), back(7 * page_);
    std::iota(ours.begin(), ours.end(), 3);
    EXPECT_TRUE(copy_to_doubtful(at(1, 9), ours.data(), ours.size() - 9));
    EXPECT_TRUE(copy_from_doubtful(back.data(), at(1, 9), back.size() - 9));
    EXPECT_EQ(std::memcmp(ours.data(), back.data(), ours.size() - 9), 0);
    EXPECT_FALSE(copy_to_doubtful(at(1, 10), ours.data(), ours.size()));
    EXPECT_FALSE(copy_from_doubtful(back.data(), at(8), 1));
    EXPECT_FALSE(copy_from_doubtful(back.data(), 0, 8));
    EXPECT_FALSE(copy_to_doubtful(at(10), ours.data(), 1));
    EXPECT_TRUE(copy_from_doubtful(back.data(), at(10), 1));
  });
}

}  // namespace
}  // namespace verbatim
