// SPDX-License-Identifier: BSD-2-Clause
// A peer's segment is a stranger's file: whatever it says, what we accept lies inside it.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <random>

#include "providers/shm/fabric/segment.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::shm {
namespace {

using harness::AllowedLog;

class PeerSegmentTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(own_->create(), 0); }
  void TearDown() override {
    peer_.unmap();
    own_->destroy();
  }

  /// A file with this header, sealed as asked.
  static UniqueFd forged(const SegmentHeader& header, std::uint64_t size,
                         int seals = F_SEAL_SHRINK) {
    UniqueFd fd(memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    EXPECT_EQ(pwrite(fd.get(), static_cast<const void*>(&header), sizeof header, 0),
              static_cast<ssize_t>(sizeof header));
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    return fd;
  }
  /// A byte copy of our header, to be spoilt.
  std::unique_ptr<SegmentHeader> header() {
    auto copy = std::make_unique<SegmentHeader>();
    std::memcpy(static_cast<void*>(copy.get()), static_cast<const void*>(&own_->head()),
                sizeof(SegmentHeader));
    return copy;
  }

  std::unique_ptr<OwnSegment> own_ = std::make_unique<OwnSegment>();
  PeerSegment peer_;
};

TEST_F(PeerSegmentTest, SeesWhatTheOwnerWrites) {
  ASSERT_EQ(peer_.map(own_->fd(), own_->doorbell_fd()), 0);
  EXPECT_EQ(peer_.identity(), own_->head().identity);
  const std::uint64_t offset = own_->allocate(64);
  *own_->at<std::uint64_t>(offset) = 0x1234;
  ASSERT_NE(peer_.at<std::uint64_t>(offset, 8), nullptr);
  EXPECT_EQ(*peer_.at<std::uint64_t>(offset, 8), 0x1234u);
  peer_.doorbells().service.ring(77);
  EXPECT_EQ(own_->doorbells().service.words[1].load(), std::uint64_t{1} << 13);
}

TEST_F(PeerSegmentTest, PointersStayInsideAndAligned) {
  ASSERT_EQ(peer_.map(own_->fd(), own_->doorbell_fd()), 0);
  const std::uint64_t size = own_->size();
  EXPECT_NE(peer_.at<std::uint64_t>(size - 8, 8), nullptr);
  EXPECT_EQ(peer_.at<std::uint64_t>(size, 8), nullptr);
  EXPECT_EQ(peer_.at<std::uint64_t>(size - 8, 16), nullptr);
  EXPECT_EQ(peer_.at<std::uint64_t>(~std::uint64_t{0} - 7, 8), nullptr);
  EXPECT_EQ(peer_.at<std::uint64_t>(8, ~std::uint64_t{0}), nullptr);
  EXPECT_EQ(peer_.at<std::uint64_t>(4, 8), nullptr);
}

TEST_F(PeerSegmentTest, AFileThatCouldShrinkIsRefused) {
  const UniqueFd fd = forged(*header(), own_->size(), F_SEAL_GROW);
  EXPECT_EQ(peer_.map(fd.get(), own_->doorbell_fd()), EPROTO);
}

TEST_F(PeerSegmentTest, WhatIsNoMemoryFileIsRefused) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd a(ends[0]);
  const UniqueFd b(ends[1]);
  EXPECT_EQ(peer_.map(a.get(), own_->doorbell_fd()), EPROTO);
  EXPECT_EQ(peer_.map(own_->fd(), b.get()), EPROTO);
  EXPECT_NE(peer_.map(-1, -1), 0);
  EXPECT_FALSE(peer_.mapped());
}

TEST_F(PeerSegmentTest, TooShortAndTooLargeFilesAreRefused) {
  EXPECT_EQ(peer_.map(forged(*header(), sizeof(SegmentHeader) - 1).get(), own_->doorbell_fd()),
            EPROTO);
  EXPECT_EQ(peer_.map(forged(*header(), std::uint64_t{1} << 40).get(), own_->doorbell_fd()),
            EPROTO);
  UniqueFd bells(memfd_create("bells", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(bells.get(), 4096), 0);
  ASSERT_EQ(fcntl(bells.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(peer_.map(own_->fd(), bells.get()), EPROTO);
}

TEST_F(PeerSegmentTest, HasDoorbellsForAsManyQueuesAsItsOwnerSaysAndItsFileHolds) {
  UniqueFd bells(memfd_create("bells", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(bells.get(), static_cast<off_t>(Doorbells::bytes_for(3))), 0);
  ASSERT_EQ(fcntl(bells.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  auto limited = header();
  limited->cq_capacity = 4;
  EXPECT_EQ(peer_.map(forged(*limited, own_->size()).get(), bells.get()), EPROTO);
  limited->cq_capacity = 3;
  ASSERT_EQ(peer_.map(forged(*limited, own_->size()).get(), bells.get()), 0);
  EXPECT_EQ(peer_.cq_capacity(), 3u);
  peer_.doorbells().cqs[2].ring(CqDoorbells::kBells - 1);
  EXPECT_TRUE(peer_.doorbells().cqs[2].is_rung(CqDoorbells::kBells - 1));
}

TEST_F(PeerSegmentTest, ForeignVersionsAreRefusedWithAWord) {
  const AllowedLog expected("version");
  auto spoilt = header();
  spoilt->layout_version = kLayoutVersion + 1;
  EXPECT_EQ(peer_.map(forged(*spoilt, own_->size()).get(), own_->doorbell_fd()), EPROTO);
  spoilt = header();
  spoilt->magic = 0;
  EXPECT_EQ(peer_.map(forged(*spoilt, own_->size()).get(), own_->doorbell_fd()), EPROTO);
}

TEST_F(PeerSegmentTest, NoSpoiltHeaderLeadsOutOfTheFile) {
  const AllowedLog expected("version");
  constexpr std::uint64_t kSize = 2u << 20;
  std::mt19937_64 random(20);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    // Small tables that fit, so that some survive; then one word of it spoilt.
    auto spoilt = header();
    spoilt->mr_capacity = 1024;
    spoilt->qp_capacity = 1024;
    spoilt->mr_table = 64u << 10;
    spoilt->qp_table = 512u << 10;
    spoilt->cq_table = 4096;
    constexpr std::size_t kWords = offsetof(SegmentHeader, block_count) / 4;
    auto* const words = reinterpret_cast<unsigned char*>(spoilt.get());
    const std::uint32_t value = random() % 2 == 0
                                    ? static_cast<std::uint32_t>(random())
                                    : static_cast<std::uint32_t>(random() % (4u << 20)) & ~63u;
    std::memcpy(words + 4 * (random() % kWords), &value, 4);
    PeerSegment peer;
    if (peer.map(forged(*spoilt, kSize).get(), own_->doorbell_fd()) != 0) continue;
    ++accepted;
    const auto* const base = reinterpret_cast<const unsigned char*>(&peer.live_head());
    const auto inside = [&](const void* table, std::uint64_t bytes) {
      const auto* const p = static_cast<const unsigned char*>(table);
      return p >= base && p + bytes <= base + kSize;
    };
    ASSERT_TRUE(
        inside(peer.regions(), std::uint64_t{peer.region_capacity()} * sizeof(RegionRecord)));
    ASSERT_TRUE(inside(peer.qps(), std::uint64_t{peer.qp_capacity()} * sizeof(QpRecord)));
    ASSERT_TRUE(inside(peer.cqs(), kMaxCqs * sizeof(CqRecord)));
    // The first and the last entry can be read without a fault.
    if (peer.region_capacity() != 0) {
      EXPECT_EQ(peer.regions()[peer.region_capacity() - 1].serial.load(), 0u);
    }
    peer.unmap();
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 2900);
}

}  // namespace
}  // namespace verbatim::shm
