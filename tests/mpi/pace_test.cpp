// SPDX-License-Identifier: BSD-2-Clause
// By which of two ways long messages go, by how long those before them took.
#include "mpi_shim/core/pace.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

class PaceOfMessages : public testing::Test {
 protected:
  static constexpr std::uint64_t kMiB = 1u << 20;

  /// So many messages that take so long by each way. How many of them went by RDMA.
  int send(int messages, std::uint64_t bytes, std::int64_t stream_ns, std::int64_t rdma_ns,
           std::uint64_t left = 0) {
    int by_rdma = 0;
    for (int i = 0; i < messages; ++i) {
      if (pace.prefers_rdma(bytes)) {
        pace.written(bytes, rdma_ns);
        ++by_rdma;
      } else {
        pace.streamed(bytes, left, stream_ns);
      }
      pace.count(bytes);
    }
    return by_rdma;
  }

  vmpi::Pace pace;
};

TEST_F(PaceOfMessages, StreamsWhileStreamsAreFaster) {
  EXPECT_EQ(send(12, kMiB, 100, 200), 0) << "memory is touched for the first time";
  EXPECT_LE(send(2000, kMiB, 100, 200), 24);
}

TEST_F(PaceOfMessages, LeavesSlowStreamsAfterFewMessages) {
  (void)send(12, kMiB, 100, 50);
  EXPECT_GE(send(50, kMiB, 100, 50), 30);
  EXPECT_GE(send(2000, kMiB, 100, 50), 1970);
}

TEST_F(PaceOfMessages, ComesBackWhenTheOtherWayHasBecomeFaster) {
  (void)send(1000, kMiB, 100, 50);
  (void)send(3000, kMiB, 20, 50);
  EXPECT_LE(send(1000, kMiB, 20, 50), 8);
}

TEST_F(PaceOfMessages, WhatOneSizeTakesSaysNothingOfAnother) {
  (void)send(1000, 64u << 10, 1, 50);
  EXPECT_GE(send(50, 4 * kMiB, 1000, 500), 30);
  EXPECT_LE(send(100, 64u << 10, 1, 50), 4);
}

TEST_F(PaceOfMessages, WhatTheReceiverHasNotTakenHasNotArrived) {
  (void)send(12, kMiB, 100, 200);
  EXPECT_GE(send(50, kMiB, 100, 200, kMiB * 2 / 3), 30);
}

}  // namespace
