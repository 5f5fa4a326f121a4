// SPDX-License-Identifier: BSD-2-Clause
// ibv_start_poll and its companions over a queue that gives one completion after the other.
#include "runtime/verbs/software/copying_cursor.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <future>

namespace verbatim {
namespace {

struct ListedCq : Cq {
  std::deque<ibv_wc> waiting;
  CopiedCompletion cursor;
};

bool take_first(ListedCq& cq, ibv_wc& to) noexcept {
  if (cq.waiting.empty()) return false;
  to = cq.waiting.front();
  cq.waiting.pop_front();
  return true;
}

class Cursors : public ::testing::Test {
 protected:
  Cursors() { CopyingCursor<ListedCq, take_first>::wire(cq_); }
  void complete(std::uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS) {
    ibv_wc wc{};
    wc.wr_id = wr_id;
    wc.status = status;
    wc.byte_len = static_cast<std::uint32_t>(wr_id * 10);
    cq_.waiting.push_back(wc);
  }
  ibv_cq_ex* handle() { return &cq_.extended; }
  int start() {
    ibv_poll_cq_attr attr{};
    return ibv_start_poll(handle(), &attr);
  }

  ListedCq cq_;
};

TEST_F(Cursors, StandOnOneCompletionAfterTheOther) {
  complete(1);
  complete(2, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(handle()->wr_id, 1u);
  EXPECT_EQ(handle()->status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_wc_read_byte_len(handle()), 10u);
  ASSERT_EQ(ibv_next_poll(handle()), 0);
  EXPECT_EQ(handle()->wr_id, 2u);
  EXPECT_EQ(handle()->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(ibv_next_poll(handle()), ENOENT);
  ibv_end_poll(handle());
}

TEST_F(Cursors, ThatFindNothingNeedNoEnd) {
  EXPECT_EQ(start(), ENOENT);
  complete(1);
  EXPECT_EQ(start(), 0) << "the turn that found nothing keeps nobody out";
  ibv_end_poll(handle());
}

TEST_F(Cursors, RefuseWhatTheyDoNotKnow) {
  complete(1);
  ibv_poll_cq_attr attr{};
  attr.comp_mask = 1;
  EXPECT_EQ(ibv_start_poll(handle(), &attr), EINVAL);
  EXPECT_EQ(cq_.waiting.size(), 1u);
  ASSERT_EQ(start(), 0) << "the turn that was refused keeps nobody out";
  ibv_end_poll(handle());
}

TEST_F(Cursors, ReadTheirCompletionAlsoWhenTheQueueHasGoneOn) {
  complete(1);
  ASSERT_EQ(start(), 0);
  for (std::uint64_t n = 2; n < 100; ++n) complete(n);
  ibv_wc other;
  while (take_first(cq_, other)) continue;
  EXPECT_EQ(ibv_wc_read_byte_len(handle()), 10u);
  ibv_end_poll(handle());
}

TEST_F(Cursors, BelongToOneThreadFromStartToEnd) {
  complete(1);
  complete(2);
  ASSERT_EQ(start(), 0);
  std::promise<void> begun;
  auto other = std::async(std::launch::async, [&] {
    begun.set_value();
    const int error = start();
    const std::uint64_t wr_id = handle()->wr_id;
    ibv_end_poll(handle());
    return error == 0 ? wr_id : 0;
  });
  begun.get_future().wait();
  // It has all the time to come in between, and does not.
  EXPECT_EQ(other.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_EQ(handle()->wr_id, 1u);
  ibv_end_poll(handle());
  EXPECT_EQ(other.get(), 2u);
}

TEST(CompletionFields, ThatNoWorkCompletionCarriesAreRefusedWhenTheQueueIsMade) {
  ibv_cq_init_attr_ex attr{};
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  EXPECT_EQ(check_wc_fields(attr, "tiny"), 0);
  attr.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  EXPECT_EQ(check_wc_fields(attr, "tiny"), EOPNOTSUPP);
}

}  // namespace
}  // namespace verbatim
