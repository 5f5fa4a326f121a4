// SPDX-License-Identifier: BSD-2-Clause
// Lists of work requests, and receives that are posted.
#include "runtime/verbs/software/posted_receives.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace verbatim {
namespace {

TEST(RequestList, HasNoMoreSgesThanGrantedAndNoFewerThanItSays) {
  ibv_sge sge{};
  ibv_recv_wr wr{};
  EXPECT_TRUE(has_sound_list(wr, 2)) << "none at all";
  wr.num_sge = 2;
  EXPECT_FALSE(has_sound_list(wr, 2)) << "there are none where they should be";
  wr.sg_list = &sge;
  EXPECT_TRUE(has_sound_list(wr, 2));
  EXPECT_FALSE(has_sound_list(wr, 1));
  wr.num_sge = -1;
  EXPECT_FALSE(has_sound_list(wr, 2));
}

TEST(RequestList, IsPostedInOrderUpToTheFirstThatIsRefused) {
  ibv_send_wr wrs[4] = {};
  for (std::uint64_t i = 0; i < 4; ++i) {
    wrs[i].wr_id = i;
    wrs[i].next = i == 3 ? nullptr : &wrs[i + 1];
  }
  std::vector<std::uint64_t> posted;
  std::uint64_t refused = 2;
  const auto post = [&](const ibv_send_wr& wr) {
    if (wr.wr_id == refused) return ENOMEM;
    posted.push_back(wr.wr_id);
    return 0;
  };
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(post_in_order(wrs, &bad, post), ENOMEM);
  EXPECT_EQ(bad, &wrs[2]);
  EXPECT_EQ(posted, (std::vector<std::uint64_t>{0, 1}));
  bad = nullptr;
  refused = 9;
  EXPECT_EQ(post_in_order(bad, &bad, post), 0) << "no request is no error";
  EXPECT_EQ(post_in_order(&wrs[2], &bad, post), 0);
  EXPECT_EQ(posted, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(bad, nullptr) << "nothing is named where nothing was refused";
}

/// Four places of two SGEs, of which three may be taken.
class Posted : public ::testing::Test {
 protected:
  Posted() {
    receives_.mask = 3;
    receives_.max = 3;
    receives_.max_sge = 2;
    receives_.sges = sges_;
    receives_.wr_ids = wr_ids_;
  }
  ibv_recv_wr wr(std::uint64_t wr_id, std::vector<ibv_sge> list) {
    list_ = std::move(list);
    return {wr_id, nullptr, list_.data(), static_cast<int>(list_.size())};
  }
  std::vector<std::uint32_t> keys(std::uint64_t index) const {
    std::vector<std::uint32_t> keys;
    const PostedReceive<ibv_sge> receive = receives_.receive(index);
    for (std::uint32_t i = 0; i < receive.num_sge; ++i) keys.push_back(receive.sges[i].lkey);
    return keys;
  }
  using Keys = std::vector<std::uint32_t>;

  PostedReceives<ibv_sge> receives_;
  ibv_sge sges_[8] = {};
  std::uint64_t wr_ids_[4] = {};
  std::vector<ibv_sge> list_;
};

TEST_F(Posted, AreRefusedWhenTheQueueIsFullAndWhenTheyHaveTooManySges) {
  const ibv_sge sge{0, 1, 1};
  EXPECT_EQ(receives_.check(wr(1, {sge, sge}), 2), 0);
  EXPECT_EQ(receives_.check(wr(1, {sge, sge}), 3), ENOMEM) << "not when the places are used up";
  EXPECT_EQ(receives_.check(wr(1, {sge, sge, sge}), 0), EINVAL);
  EXPECT_EQ(receives_.check(wr(1, {sge, sge, sge}), 3), EINVAL) << "waiting would not help";
}

TEST_F(Posted, KeepTheirIdentifiersAndTheirSgesInOrder) {
  EXPECT_EQ(receives_.keep(6, wr(60, {{0x1000, 10, 1}, {0x2000, 20, 2}})), 2u);
  EXPECT_EQ(receives_.keep(7, wr(70, {{0x3000, 30, 3}})), 1u);
  EXPECT_EQ(receives_.keep(8, wr(80, {})), 0u);
  EXPECT_EQ(receives_.receive(6).wr_id, 60u);
  EXPECT_EQ(receives_.receive(6).sges[1].addr, 0x2000u);
  EXPECT_EQ(receives_.receive(6).sges[1].length, 20u);
  EXPECT_EQ(keys(6), (Keys{1, 2}));
  EXPECT_EQ(receives_.receive(7).wr_id, 70u);
  EXPECT_EQ(keys(7), (Keys{3}));
  EXPECT_EQ(receives_.receive(8).wr_id, 80u);
  EXPECT_EQ(keys(8), Keys{});
}

TEST_F(Posted, KeepNoSgeWithoutBytes) {
  EXPECT_EQ(receives_.keep(0, wr(1, {{0x1000, 0, 1}, {0x2000, 20, 2}})), 1u);
  EXPECT_EQ(keys(0), (Keys{2}));
}

TEST_F(Posted, HaveNothingOfWhatLayInTheirPlaceBefore) {
  receives_.keep(1, wr(1, {{0x1000, 10, 1}, {0x2000, 20, 2}}));
  receives_.keep(5, wr(5, {{0x3000, 30, 3}}));
  EXPECT_EQ(keys(5), (Keys{3}));
  EXPECT_EQ(receives_.receive(5).wr_id, 5u);
}

TEST(SharedLimit, IsToldOfOnceWhenFewerAreLeftAndThenUnarmed) {
  std::uint32_t limit = 2;
  EXPECT_FALSE(falls_below(limit, 3));
  EXPECT_FALSE(falls_below(limit, 2)) << "as many as the limit are enough";
  EXPECT_TRUE(falls_below(limit, 1));
  EXPECT_EQ(limit, 0u);
  EXPECT_FALSE(falls_below(limit, 0)) << "until it is armed again";
}

}  // namespace
}  // namespace verbatim
