// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/segment.hpp"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/support/child.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/process_census.hpp"
#include "tests/support/role.hpp"

namespace verbatim::shm {
namespace {

using harness::AllowedLog;
using harness::Child;

std::uint64_t backed_bytes(int fd) {
  struct stat status {};
  EXPECT_EQ(fstat(fd, &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

class OwnSegmentTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(segment_->create(), 0); }
  void TearDown() override { segment_->destroy(); }
  std::unique_ptr<OwnSegment> segment_ = std::make_unique<OwnSegment>();
};

TEST_F(OwnSegmentTest, DescribesItself) {
  const SegmentHeader& head = segment_->head();
  EXPECT_EQ(head.magic, kSegmentMagic);
  EXPECT_EQ(head.layout_version, kLayoutVersion);
  EXPECT_EQ(head.segment_bytes, segment_->size());
  EXPECT_NE(head.identity, 0u);
  EXPECT_EQ(head.mr_capacity, kMaxRegions);
  EXPECT_EQ(head.qp_capacity, kMaxQps);
  EXPECT_EQ(head.block_count.load(), 0u);
}

TEST_F(OwnSegmentTest, CostsLittleWhileNothingIsUsed) {
  EXPECT_LE(backed_bytes(segment_->fd()) + backed_bytes(segment_->doorbell_fd()), 128u << 10);
}

TEST_F(OwnSegmentTest, NobodyElseCanWriteShrinkOrGrowTheSegment) {
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, segment_->fd(), 0), MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(segment_->fd(), 4096), -1);
  EXPECT_EQ(ftruncate(segment_->fd(), static_cast<off_t>(segment_->size() * 2)), -1);
  EXPECT_EQ(fallocate(segment_->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
  EXPECT_EQ(pwrite(segment_->fd(), "x", 1, 0), -1);
  EXPECT_EQ(fcntl(segment_->fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_EQ(ftruncate(segment_->doorbell_fd(), 0), -1);
}

TEST_F(OwnSegmentTest, HeapMemoryIsZeroedAndBacked) {
  const std::uint64_t before = backed_bytes(segment_->fd());
  const std::uint64_t offset = segment_->allocate(200000);
  ASSERT_NE(offset, 0u);
  EXPECT_EQ(offset % 64, 0u);
  EXPECT_GE(backed_bytes(segment_->fd()), before + 200000);
  auto* const bytes = segment_->at<unsigned char>(offset);
  for (int i = 0; i < 200000; ++i) ASSERT_EQ(bytes[i], 0);
  memset(bytes, 0xff, 200000);
  segment_->release(offset, 200000);
  ASSERT_EQ(segment_->allocate(200000), offset);
  for (int i = 0; i < 200000; ++i) ASSERT_EQ(bytes[i], 0);
}

TEST_F(OwnSegmentTest, BackingIsIdempotentAndKnowsItsFiles) {
  RegionRecord* const far = &segment_->regions()[kMaxRegions - 1];
  EXPECT_EQ(segment_->back(far, sizeof *far), 0);
  const std::uint64_t once = backed_bytes(segment_->fd());
  EXPECT_EQ(segment_->back(far, sizeof *far), 0);
  EXPECT_EQ(backed_bytes(segment_->fd()), once);
  CqDoorbells* const bell = &segment_->doorbells().cqs[kMaxCqs - 1];
  const std::uint64_t bells = backed_bytes(segment_->doorbell_fd());
  EXPECT_EQ(segment_->back(bell, sizeof *bell), 0);
  EXPECT_GT(backed_bytes(segment_->doorbell_fd()), bells);
  int elsewhere = 0;
  EXPECT_EQ(segment_->back(&elsewhere, sizeof elsewhere), EFAULT);
  EXPECT_EQ(segment_->back(far, 2 * sizeof(*far) + segment_->size()), EFAULT);
}

TEST_F(OwnSegmentTest, ManyThreadsAllocateAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 300;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const std::size_t bytes = 64u << (i % 8);
        const std::uint64_t offset = segment_->allocate(bytes);
        auto* const words = segment_->at<std::uint64_t>(offset);
        for (std::size_t w = 0; w < bytes / 8; ++w) wrong += words[w] != 0;
        for (std::size_t w = 0; w < bytes / 8; ++w) words[w] = static_cast<std::uint64_t>(t + 1);
        for (std::size_t w = 0; w < bytes / 8; ++w)
          wrong += words[w] != static_cast<std::uint64_t>(t + 1);
        segment_->release(offset, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(OwnSegment, LeavesNothingBehind) {
  auto segment = std::make_unique<OwnSegment>();
  const auto before = harness::ProcessCensus::take();
  ASSERT_EQ(segment->create(), 0);
  (void)segment->allocate(4096);
  segment->destroy();
  EXPECT_EQ(left_behind(before, harness::ProcessCensus::take()), "");
}

/// Under a limit: which, and how much. Answers the errno of create and the segment's size.
VBT_ROLE(limited_segment) {
  const auto resource = control.receive_value<std::int32_t>();
  const auto bytes = control.receive_value<std::uint64_t>();
  const rlimit limit{bytes, bytes};
  if (setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return 1;
  auto segment = std::make_unique<OwnSegment>();
  const int error = segment->create();
  control.send_value(static_cast<std::int32_t>(error));
  control.send_value(segment->size());
  const std::uint64_t offset = error == 0 ? segment->allocate(64u << 10) : 0;
  control.send_value(static_cast<std::int32_t>(offset != 0));
  segment->destroy();
  return 0;
}

struct Limited {
  std::int32_t error;
  std::uint64_t size;
  bool usable;
};
Limited create_under(int resource, std::uint64_t bytes) {
  Child child("limited_segment");
  child.control().send_value(static_cast<std::int32_t>(resource));
  child.control().send_value(bytes);
  Limited seen{};
  seen.error = child.control().receive_value<std::int32_t>();
  seen.size = child.control().receive_value<std::uint64_t>();
  seen.usable = child.control().receive_value<std::int32_t>() != 0;
  EXPECT_EQ(child.wait().exit_status, 0);
  return seen;
}

TEST(OwnSegment, ALowFileSizeLimitGivesASmallerSegment) {
  const Limited seen = create_under(RLIMIT_FSIZE, 100u << 20);
  EXPECT_EQ(seen.error, 0);
  EXPECT_LE(seen.size, 100u << 20);
  EXPECT_TRUE(seen.usable);
}

TEST(OwnSegment, AFileSizeLimitTooLowIsAnErrorAndNoSignal) {
  const AllowedLog expected("ulimit -f");
  const Limited seen = create_under(RLIMIT_FSIZE, 1u << 20);
  EXPECT_EQ(seen.error, ENOMEM);
}

#ifndef VBT_UNDER_SANITIZER  // these map terabytes themselves
TEST(OwnSegment, ALowAddressSpaceLimitGivesASmallerSegment) {
  const Limited seen = create_under(RLIMIT_AS, 2u << 30);
  EXPECT_EQ(seen.error, 0);
  EXPECT_LE(seen.size, 130u << 20);
  EXPECT_TRUE(seen.usable);
}
#endif

}  // namespace
}  // namespace verbatim::shm
