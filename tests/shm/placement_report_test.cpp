// SPDX-License-Identifier: BSD-2-Clause
//
// Where the pages of a region lie, as vbt_query_mr tells it, and the warning about memory that is
// far from the thread that posts it. The linker leads the library's questions to the kernel here:
// this machine has two nodes, the thread runs on node 0, and the pages are where a test says,
// except where it says that they are real.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <verbatim/memory.h>
#include <verbatim/query.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace {

constexpr int kReal = -1;     // the kernel is asked
constexpr int kByTurns = -2;  // pages alternate between the two nodes
constexpr int kUntouched = -3;

std::atomic<int> answer{kReal};  // or the node that all pages are on
std::atomic<int> refusal{0};     // an errno
std::atomic<unsigned> questions{0};
std::atomic<bool> is_old_kernel{false};  // without questions about single mappings
std::atomic<unsigned long> pages_asked{0};

}  // namespace

extern "C" long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
extern "C" long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
extern "C" long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (number == SYS_getcpu) *reinterpret_cast<unsigned*>(b) = 0;
  if (number == SYS_getcpu) return 0;
  if (number != SYS_move_pages) return __real_syscall(number, a, b, c, d, e, f);
  ++questions;
  pages_asked += static_cast<unsigned long>(b);
  if (d != 0) std::abort();  // a list of nodes: pages would move
  if (refusal != 0) {
    errno = refusal;
    return -1;
  }
  if (answer == kReal) return __real_syscall(number, a, b, c, d, e, f);
  void** const addresses = reinterpret_cast<void**>(c);
  int* const status = reinterpret_cast<int*>(e);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (long i = 0; i < b; ++i) {
    const std::uintptr_t number_of_page = reinterpret_cast<std::uintptr_t>(addresses[i]) / page;
    status[i] = answer == kByTurns     ? static_cast<int>(number_of_page % 2)
                : answer == kUntouched ? -ENOENT
                                       : answer.load();
  }
  return 0;
}

extern "C" int __real_ioctl(int file, unsigned long request, void* argument);
extern "C" int __wrap_ioctl(int file, unsigned long request, void* argument);
extern "C" int __wrap_ioctl(int file, unsigned long request, void* argument) {
  if (!is_old_kernel) return __real_ioctl(file, request, argument);
  errno = ENOTTY;
  return -1;
}

extern "C" int __real_open(const char* path, int flags, mode_t mode);
extern "C" int __wrap_open(const char* path, int flags, mode_t mode);
extern "C" int __wrap_open(const char* path, int flags, mode_t mode) {
  if (std::strcmp(path, "/sys/devices/system/node/online") != 0)
    return __real_open(path, flags, mode);
  const int file = memfd_create("nodes", MFD_CLOEXEC);
  if (write(file, "0-1\n", 4) != 4 || lseek(file, 0, SEEK_SET) != 0) std::abort();
  return file;
}

namespace verbatim::harness {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PlacementReport : public ::testing::Test {
 protected:
  PlacementReport() { told_.nodes = nodes_, told_.node_room = 4; }
  ~PlacementReport() override {
    answer = kReal;
    refusal = 0;
    is_old_kernel = false;
  }
  /// Of `pages` pages of memory, the first `touched` of them touched.
  void query(std::size_t pages, std::size_t touched, std::size_t size = sizeof(vbt_mr_attr)) {
    const std::size_t bytes = pages * page_;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ASSERT_EQ(madvise(memory, bytes, MADV_NOHUGEPAGE), 0);
    std::memset(memory, 1, touched * page_);
    {
      const MrHandle mr(ibv_reg_mr(session_.pd.get(), memory, bytes, IBV_ACCESS_LOCAL_WRITE));
      ASSERT_NE(mr.get(), nullptr);
      questions = 0;
      pages_asked = 0;
      EXPECT_EQ(vbt_query_mr(mr.get(), &told_, size), 0);
    }
    munmap(memory, bytes);
  }

  const std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  Session session_;
  vbt_node_pages nodes_[4] = {};
  vbt_mr_attr told_{};
};

TEST_F(PlacementReport, CountsPagesByNodeAndThoseFarFromTheCallingThread) {
  answer = kByTurns;
  query(10, 10);
  EXPECT_EQ(told_.placement, static_cast<unsigned>(VBT_PLACEMENT_KNOWN));
  EXPECT_EQ(told_.local_node, 0u);
  EXPECT_EQ(told_.page_unit, page_);
  EXPECT_EQ(told_.page_count, 10u);
  EXPECT_EQ(told_.pages_looked_at, 10u);
  EXPECT_EQ(told_.pages_present, 10u);
  EXPECT_EQ(told_.pages_remote, 5u);
  ASSERT_EQ(told_.node_count, 2u);
  for (unsigned node = 0; node < 2; ++node) {
    EXPECT_EQ(nodes_[node].node, node);
    EXPECT_EQ(nodes_[node].pages, 5u);
  }
  EXPECT_EQ(told_.pinned_bytes, 0u);
}

TEST_F(PlacementReport, WithoutAnArrayThereAreSumsAndWithAShortOneTheFirst) {
  answer = kByTurns;
  told_.node_room = 1;
  query(4, 4);
  EXPECT_EQ(told_.node_count, 1u);
  EXPECT_EQ(told_.pages_remote, 2u);
  told_.nodes = nullptr;
  query(4, 4);
  EXPECT_EQ(told_.node_count, 0u);
  EXPECT_EQ(told_.pages_remote, 2u);
}

TEST_F(PlacementReport, OfALargeRegionASampleIsTakenThatNoPatternOfPagesEscapes) {
  answer = kByTurns;
  query(1 << 17, 0);
  EXPECT_EQ(told_.page_count, 1u << 17);
  EXPECT_EQ(told_.pages_looked_at, 16384u);
  EXPECT_EQ(pages_asked, 16384u);
  ASSERT_EQ(told_.node_count, 2u);
  EXPECT_NEAR(static_cast<double>(nodes_[0].pages), 8192, 600);
}

TEST_F(PlacementReport, ReallyTellsTouchedPagesFromUntouchedOnes) {
  query(32, 3);  // of so many, registering touches none
  if (told_.placement == VBT_PLACEMENT_UNKNOWN) GTEST_SKIP() << "the kernel does not tell";
  EXPECT_EQ(told_.pages_looked_at, 32u);
  EXPECT_EQ(told_.pages_present, 3u);
  ASSERT_EQ(told_.node_count, 1u);
  EXPECT_EQ(nodes_[0].pages, 3u);
}

// Of interleaved pages every second one has one node: 512 of them, at an even stride, would.
TEST_F(PlacementReport, WhatIsAllocatedLiesOnSeveralNodesThoughEverySecondPageLiesOnOne) {
  answer = kByTurns;
  vbt_alloc_attr attr{};
  attr.size = 512 * page_;
  vbt_alloc_facts facts;
  void* const memory = vbt_alloc(&attr, sizeof attr, &facts, sizeof facts);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(facts.node, VBT_NODE_SEVERAL);
  EXPECT_EQ(vbt_free(memory), 0);
}

class PageSizes : public PlacementReport, public ::testing::WithParamInterface<bool> {
 protected:
  PageSizes() { is_old_kernel = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Kernel, PageSizes, ::testing::Bool(), [](const auto& kernel) {
  return std::string(kernel.param ? "Old" : "This");
});

TEST_P(PageSizes, AreReallyTold) {
  query(8, 8);
  if (told_.least_page_size == 0) GTEST_SKIP() << "it would take too long (a sanitizer's shadow)";
  EXPECT_EQ(told_.least_page_size, page_);
  EXPECT_EQ(told_.most_page_size, page_);
  EXPECT_EQ(told_.huge_bytes, 0u);
}

TEST_P(PageSizes, TransparentHugePagesAreReallyTold) {
  constexpr std::size_t kHuge = 2_MiB;
  char* const memory = static_cast<char*>(mmap(nullptr, 3 * kHuge, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  char* const aligned = memory + (kHuge - reinterpret_cast<std::uintptr_t>(memory) % kHuge);
  (void)madvise(aligned, kHuge, MADV_HUGEPAGE);
  std::memset(aligned, 1, kHuge);
  const bool got = madvise(aligned, kHuge, 25 /* MADV_COLLAPSE, Linux 6.1 */) == 0;
  {
    const MrHandle mr(ibv_reg_mr(session_.pd.get(), aligned, kHuge, IBV_ACCESS_LOCAL_WRITE));
    ASSERT_EQ(vbt_query_mr(mr.get(), &told_, sizeof told_), 0);
  }
  munmap(memory, 3 * kHuge);
  if (!got) GTEST_SKIP() << "no huge page to be had";
  if (told_.least_page_size == 0) GTEST_SKIP() << "it would take too long (a sanitizer's shadow)";
  EXPECT_EQ(told_.huge_bytes, kHuge);
  EXPECT_EQ(told_.least_page_size, page_) << "the mapping's own";
}

TEST_F(PlacementReport, OfHalfAHugePageTheHalfIsTold) {
  constexpr std::size_t kHuge = 2_MiB;
  char* const memory = static_cast<char*>(
      mmap(nullptr, 2 * kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  char* const aligned = memory + (kHuge - reinterpret_cast<std::uintptr_t>(memory) % kHuge);
  std::memset(memory, 1, 2 * kHuge);
  const bool got = madvise(aligned, kHuge, 25 /* MADV_COLLAPSE */) == 0;
  {
    const MrHandle mr(ibv_reg_mr(session_.pd.get(), aligned, kHuge / 2, IBV_ACCESS_LOCAL_WRITE));
    ASSERT_EQ(vbt_query_mr(mr.get(), &told_, sizeof told_), 0);
  }
  munmap(memory, 2 * kHuge);
  if (!got || told_.huge_bytes == 0) GTEST_SKIP() << "no huge page, or a kernel before 6.11";
  EXPECT_EQ(told_.huge_bytes, kHuge / 2);
}

TEST_F(PlacementReport, IsUnknownWhereTheKernelDoesNotAnswer) {
  for (const int error : {ENOSYS, EPERM}) {
    refusal = error;
    query(8, 8);
    EXPECT_EQ(told_.placement, static_cast<unsigned>(VBT_PLACEMENT_UNKNOWN));
    EXPECT_EQ(told_.page_count, 8u);
    EXPECT_EQ(told_.length, 8 * page_);
    EXPECT_EQ(told_.pages_looked_at + told_.pages_present + told_.pages_remote, 0u);
    EXPECT_EQ(told_.node_count, 0u);
  }
}

TEST_F(PlacementReport, IsNotAskedForWhoeverHasAnOlderStructure) {
  answer = 0;
  query(8, 8, offsetof(vbt_mr_attr, nodes));
  EXPECT_EQ(questions, 0u);
  EXPECT_EQ(told_.length, 8 * page_);
  EXPECT_EQ(told_.nodes, nodes_) << "beyond the end of what it was told of";
}

TEST_F(PlacementReport, OfMemoryWithoutAddressesIsUnknown) {
  const MrHandle null(ibv_alloc_null_mr(session_.pd.get()));
  ASSERT_NE(null.get(), nullptr);
  ASSERT_EQ(vbt_query_mr(null.get(), &told_, sizeof told_), 0);
  EXPECT_EQ(told_.placement, static_cast<unsigned>(VBT_PLACEMENT_UNKNOWN));
  EXPECT_EQ(told_.page_count, 0u);
}

class RemoteBuffer : public PlacementReport {
 protected:
  enum class By { kPostSend, kWorkCalls };
  /// Three requests from memory that lies there, on a new queue pair.
  static void post(By by, int where) {
    PairWish wish;
    if (by == By::kWorkCalls) wish.a.send_ops = IBV_QP_EX_WITH_RDMA_WRITE;
    Pair pair(Setting{Placement::kOneContext, MemoryKind::kMapped}, wish);
    const RegionInfo memory = pair.a.allocate(MemoryKind::kMapped, 64_KiB);
    const RegionInfo remote = pair.b.allocate(MemoryKind::kMapped, 64_KiB);
    answer = where;
    questions = 0;
    for (std::uint64_t i = 0; i < 3; ++i) {
      if (by == By::kWorkCalls) {
        ibv_qp_ex* const work = ibv_qp_to_qp_ex(pair.a.here().qp(pair.qa.id));
        ibv_wr_start(work);
        work->wr_id = i;
        work->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(work, remote.rkey, remote.address);
        ibv_wr_set_sge(work, memory.lkey, memory.address, 64);
        ASSERT_EQ(ibv_wr_complete(work), 0);
      } else {
        expect_posted(pair.a.post_send(pair.qa, write(i, slice(memory, 0, 64), remote)));
      }
      expect_wc(pair.a.poll_sends(pair.qa, 1)[0], i, IBV_WC_RDMA_WRITE, pair.qa);
    }
  }
};

TEST_F(RemoteBuffer, IsWarnedOfOnceWhenItIsFirstPosted) {
  if (LogWatch::instance() == nullptr) GTEST_SKIP() << "VERBATIM_LOG is set";
  const AllowedLog expected("NUMA node");
  const auto said = [] { return LogWatch::instance()->complaints(); };
  post(By::kPostSend, 0);
  EXPECT_EQ(questions, 1u) << "of three posts, the first";
  post(By::kWorkCalls, 0);
  EXPECT_EQ(questions, 1u) << "also where there is a queue from the beginning";
  EXPECT_THAT(said(), IsEmpty()) << "it is near";
  post(By::kPostSend, kByTurns);
  post(By::kPostSend, kUntouched);
  EXPECT_THAT(said(), IsEmpty()) << "half of it is near; nobody knows";
  post(By::kWorkCalls, 1);
  EXPECT_THAT(said(), ElementsAre(AllOf(HasSubstr("64 KiB"),
                                        HasSubstr("is posted by a thread on NUMA node 0"),
                                        HasSubstr("lies on node 1 (16 of the 16 pages"),
                                        HasSubstr("numactl --cpunodebind=1"))));
  post(By::kPostSend, 1);
  EXPECT_EQ(said().size(), 1u) << "once";
  EXPECT_EQ(questions, 0u) << "and then it is not even asked";
}

}  // namespace
}  // namespace verbatim::harness
