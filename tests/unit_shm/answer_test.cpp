// SPDX-License-Identifier: BSD-2-Clause
// When a message counts as an answer, so that no slot is asked for ahead of the peer that waits
// there: send_moves.hpp.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "providers/shm/transfer/send_moves.hpp"

namespace verbatim::shm {
namespace {

class AnswerTest : public ::testing::Test {
 protected:
  /// Sends one more; whether it was an answer.
  bool sends_answer(Qp& qp) {
    const std::uint64_t before = qp.out.heard;
    qp.out.ring.slots = ring_.data();
    qp.out.ring.mask = ring_.size() - 1;
    ++qp.out.ring.next;
    ask_for_slot(qp, *qp.received);
    return qp.out.heard != before;
  }
  std::unique_ptr<Qp> qp_ = std::make_unique<Qp>();

 private:
  std::array<Slot, 8> ring_{};
};

TEST_F(AnswerTest, AMessageAfterOneThatWasReceivedIsOne) {
  EXPECT_FALSE(sends_answer(*qp_));
  for (std::uint64_t received = 1; received != 4; ++received) {
    qp_->in.head = received;
    EXPECT_TRUE(sends_answer(*qp_));
  }
}

TEST_F(AnswerTest, OnlyTheFirstOfAStreamIsOne) {
  qp_->in.head = 5;
  EXPECT_TRUE(sends_answer(*qp_));
  EXPECT_FALSE(sends_answer(*qp_));
  EXPECT_FALSE(sends_answer(*qp_));
}

}  // namespace
}  // namespace verbatim::shm
