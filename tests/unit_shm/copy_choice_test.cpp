// SPDX-License-Identifier: BSD-2-Clause
// By which way long messages go: by the faster, also when that changes, and however rarely the other one is tried.
#include "providers/shm/queues/copy_choice.hpp"

#include <gtest/gtest.h>

namespace verbatim::shm {
namespace {

constexpr std::uint64_t kLength = 256u << 10;

/// A stream of equal messages, and how long each way takes for 64 KiB now.
class CopyChoiceTest : public testing::Test {
 protected:
  /// The share of the bytes that went by the kernel's copy.
  double send(std::uint32_t messages, std::uint64_t stream_ns, std::uint64_t kernel_ns) {
    std::uint64_t by_kernel = 0;
    for (std::uint32_t i = 0; i < messages; ++i) {
      const std::uint64_t bytes = choice_.bytes_by_kernel(kLength);
      EXPECT_LE(bytes, kLength);
      if (bytes != 0) choice_.note_kernel(bytes, kernel_ns * bytes / CopyChoice::kSample);
      if (bytes != kLength)
        choice_.note_stream(kLength - bytes, stream_ns * (kLength - bytes) / CopyChoice::kSample);
      by_kernel += bytes;
    }
    return static_cast<double>(by_kernel) / static_cast<double>(messages) / kLength;
  }

  CopyChoice choice_;
};

TEST_F(CopyChoiceTest, TheFirstMessagesTakeTheStreamRing) { EXPECT_EQ(send(8, 8000, 6000), 0); }

TEST_F(CopyChoiceTest, TheFasterWayIsTaken) {
  send(100, 8000, 6000);
  EXPECT_GT(send(10'000, 8000, 6000), 0.97);
}

TEST_F(CopyChoiceTest, TheStreamRingIsTakenWhenItIsAsFast) {
  EXPECT_LT(send(10'000, 6000, 6000), 0.03);
}

TEST_F(CopyChoiceTest, ItTurnsWhenTheOtherWayHasBecomeFaster) {
  send(2000, 2000, 6000);
  send(4000, 30'000, 6000);
  EXPECT_GT(send(5000, 30'000, 6000), 0.97);
  send(10'000, 2000, 6000);
  EXPECT_LT(send(5000, 2000, 6000), 0.03);
}

TEST_F(CopyChoiceTest, WhoLostTheCoreOnceWasNotSlow) {
  send(100, 8000, 6000);
  for (std::uint32_t i = 0; i < 20; ++i) {
    choice_.note_kernel(CopyChoice::kSample, 5'000'000);
    EXPECT_GT(send(100, 8000, 6000), 0.8);
  }
}

TEST_F(CopyChoiceTest, LookingAtAWayThatIsFarSlowerCostsAHundredth) {
  send(100, 1000, 8000);
  // Each such byte takes eight times as long.
  EXPECT_LT(send(20'000, 1000, 8000) * 7, 0.01);
}

}  // namespace
}  // namespace verbatim::shm
