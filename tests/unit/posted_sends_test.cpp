// SPDX-License-Identifier: BSD-2-Clause
// The memory of requests that wait in a send queue.
#include "runtime/verbs/software/posted_sends.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace verbatim {
namespace {

constexpr std::uint32_t kMost = 100;
constexpr std::uint32_t kSges = 3;
constexpr std::uint32_t kInline = 60;

struct Request {
  std::uint64_t wr_id;
  std::uint64_t length;
  std::uint32_t flags;
  std::uint16_t opcode;
  std::uint16_t num_sge;
  bool is_inline;
  bool is_ours;

  void clear() { *this = {}; }
};

class PostedSendsTest : public ::testing::Test {
 protected:
  ~PostedSendsTest() override { sends_.free(memory_); }
  bool has_place(std::uint32_t head, std::uint32_t tail) {
    return sends_.has_place(memory_, kMost, kSges, head, tail);
  }
  /// Request `i` has as many SGEs, with as many bytes, as it can; every third is inline.
  void keep(std::uint32_t i) {
    unsigned char bytes[kInline];
    std::memset(bytes, static_cast<int>(i), sizeof bytes);
    ibv_sge list[kSges];
    for (std::uint32_t j = 0; j < kSges; ++j)
      list[j] = {reinterpret_cast<std::uint64_t>(bytes + 20 * j), 20, i + j};
    ibv_send_wr wr{};
    wr.wr_id = i;
    wr.sg_list = list;
    wr.num_sge = kSges;
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.send_flags = IBV_SEND_SIGNALED | (i % 3 == 0 ? unsigned{IBV_SEND_INLINE} : 0u);
    sends_.keep(i, wr, std::memcpy).is_ours = true;
  }
  void expect_kept(std::uint32_t i) const {
    const Request& request = sends_.at(i);
    const ibv_sge* const list = sends_.sges_of(i);
    EXPECT_EQ(request.wr_id, i);
    EXPECT_EQ(request.opcode, IBV_WR_SEND_WITH_IMM);
    EXPECT_NE(request.flags & IBV_SEND_SIGNALED, 0u);
    EXPECT_EQ(request.length, 60u);
    EXPECT_TRUE(request.is_ours) << "the provider's own words move along";
    EXPECT_EQ(request.is_inline, i % 3 == 0);
    if (!request.is_inline) {
      EXPECT_EQ(request.num_sge, kSges);
      EXPECT_EQ(list[kSges - 1].lkey, i + kSges - 1);
      return;
    }
    ASSERT_EQ(request.num_sge, 1u);
    EXPECT_EQ(list->length, 60u);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(list->addr);
    EXPECT_GT(bytes, reinterpret_cast<const unsigned char*>(list)) << "they are in its own place";
    EXPECT_LT(bytes, reinterpret_cast<const unsigned char*>(list) + 200);
    for (std::uint32_t byte = 0; byte < kInline; ++byte)
      EXPECT_EQ(bytes[byte], static_cast<unsigned char>(i));
  }

  QueueMemory memory_;
  PostedSends<Request, kInline> sends_;
};

TEST_F(PostedSendsTest, HaveNoMemoryBeforeTheFirstWaits) { EXPECT_FALSE(sends_.is_made()); }

TEST_F(PostedSendsTest, StayWhatTheyWereWhileTheirMemoryGrows) {
  for (std::uint32_t tail = 0; tail < kMost; ++tail) {
    ASSERT_TRUE(has_place(0, tail));
    keep(tail);
    for (std::uint32_t i = 0; i <= tail; ++i) expect_kept(i);
  }
}

TEST_F(PostedSendsTest, HaveNumbersThatBeginAnywhereAndPassTheEndOfTheirRange) {
  std::uint32_t head = ~std::uint32_t{0} - 5, tail = head;
  for (int waiting = 0; waiting < 40; ++waiting) {
    ASSERT_TRUE(has_place(head, tail));
    keep(tail++);
    if (waiting % 4 == 3) ++head;
    for (std::uint32_t i = head; i != tail; ++i) expect_kept(i);
  }
}

TEST_F(PostedSendsTest, NeverGrowWhereNothingPilesUp) {
  ASSERT_TRUE(has_place(0, 0));
  const Request* const first = &sends_.at(0);
  for (std::uint32_t i = 0; i < 3 * kMost; ++i) {
    ASSERT_TRUE(has_place(i, i + 1));
    EXPECT_LT(&sends_.at(i + 1), first + 64) << "of the few places that they began with";
  }
}

TEST_F(PostedSendsTest, DoNotMoveAgainWhenAllPlacesWereMade) {
  ASSERT_TRUE(sends_.make(memory_, kMost, kSges));
  const Request* const first = &sends_.at(0);
  for (std::uint32_t tail = 0; tail < kMost; ++tail) {
    ASSERT_TRUE(has_place(0, tail));
    keep(tail);
  }
  EXPECT_EQ(&sends_.at(0), first);
  for (std::uint32_t i = 0; i < kMost; ++i) expect_kept(i);
}

TEST_F(PostedSendsTest, OfNoBytesAreNotInline) {
  ASSERT_TRUE(has_place(0, 0));
  ibv_send_wr wr{};
  wr.send_flags = IBV_SEND_INLINE;
  EXPECT_FALSE(sends_.keep(0, wr, std::memcpy).is_inline);
  EXPECT_EQ(sends_.at(0).num_sge, 0u);
}

}  // namespace
}  // namespace verbatim
