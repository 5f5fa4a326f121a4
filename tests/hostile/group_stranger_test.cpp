// SPDX-License-Identifier: BSD-2-Clause
//
// A stranger that lies about multicast groups: it shows others' queue pairs as members, shows
// members that never answer, and more of them than a group has. Who sends to the group reaches
// those who joined it, nobody else, and waits for liars only so long.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstring>

#include "providers/shm/fabric/fabric_folder.hpp"
#include "providers/shm/fabric/peer_messages.hpp"
#include "tests/fuzz/stranger.hpp"
#include "tests/hostile/datagram_end.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/handles.hpp"

namespace verbatim::hostile {
namespace {

using namespace verbatim::shm;
using fuzz::Stranger;
using harness::wait_until;

constexpr std::uint32_t kGroupNumber = 0xffffff;
constexpr std::uint32_t kGroupBlock = 0xe70;     ///< the stranger's, which has no name
constexpr auto kWait = std::chrono::seconds(1);  ///< of a sender, for a member's process

ibv_gid group() {
  ibv_gid gid{};
  gid.raw[0] = 0xff;
  gid.raw[1] = 0x12;
  gid.raw[15] = 77;
  return gid;
}

class GroupStranger : public ::testing::Test {
 protected:
  void SetUp() override {
    const ibv_gid gid = group();
    ASSERT_EQ(ibv_attach_mcast(member_.get(), &gid, 0), 0);
    ibv_ah_attr path{};
    path.port_num = path.is_global = 1;
    path.grh.dgid = gid;
    to_group_.reset(ibv_create_ah(session_.pd.get(), &path));
    path = {};
    path.port_num = 1;
    path.dlid = session_.port.lid;
    to_host_.reset(ibv_create_ah(session_.pd.get(), &path));
    // Tables with room for what an honest process has.
    stranger_.head().qp_table = kQpsAt;
    stranger_.head().qp_capacity = kQps;
    stranger_.head().groups.store(kGroupsAt);
  }
  void TearDown() override {
    const ibv_gid gid = group();
    EXPECT_EQ(ibv_detach_mcast(member_.get(), &gid, 0), 0);
  }
  /// Until our process knows the stranger.
  void meet() {
    FabricFolder folder;
    ASSERT_EQ(folder.open(), 0);
    ASSERT_TRUE(
        wait_until([&] { return folder.connect(member_.qpn() >> kQpnBlockBits, socket_) == 0; }));
    ASSERT_EQ(stranger_.introduce(socket_.get(), false), 0);
    Received answer;
    ASSERT_TRUE(wait_until([&] { return receive_message(socket_.get(), answer) == 0; }));
    ASSERT_EQ(Stranger::say_met(socket_.get()), 0);
  }
  /// What the stranger shows: a UD queue pair that receives, under any number.
  void show_queue_pair(std::uint32_t qpn) {
    QpRecord& record = stranger_.at<QpRecord>(kQpsAt)[qpn % kQpnsPerBlock];
    record.qpn = qpn;
    record.type = IBV_QPT_UD;
    record.accepts.store(1);
  }
  void show_member(std::uint32_t place, std::uint32_t qpn) {
    GroupRecord& record = stranger_.at<GroupRecord>(kGroupsAt)[place];
    const ibv_gid gid = group();
    std::memcpy(&record.prefix, gid.raw, 8);
    std::memcpy(&record.suffix, gid.raw + 8, 8);
    record.qpn.store(qpn);
    if (stranger_.head().group_end.load() <= place) stranger_.head().group_end.store(place + 1);
  }
  std::chrono::nanoseconds time_to_send() {
    const auto start = std::chrono::steady_clock::now();
    sender_.send(to_group_.get(), kGroupNumber, 8);
    return std::chrono::steady_clock::now() - start;
  }
  /// Who is in no group hears what was sent to it, and not what was sent to the group before.
  void expect_apart(DatagramEnd& other) {
    sender_.send(to_group_.get(), kGroupNumber, 8);
    EXPECT_EQ(member_.next().byte_len, kHeader + 8);
    sender_.send(to_host_.get(), other.qpn(), 9);
    EXPECT_EQ(other.next().byte_len, kHeader + 9);
  }

  static constexpr std::uint64_t kGroupsAt = 0x40000;
  static constexpr std::uint64_t kQpsAt = 0x60000;
  static constexpr std::uint32_t kQps = 1024;
  static_assert(kGroupsAt + kMaxGroups * sizeof(GroupRecord) <= kQpsAt);
  static_assert(kQpsAt + kQps * sizeof(QpRecord) <= Stranger::kBytes);

  harness::Session session_;
  DatagramEnd member_{session_}, sender_{session_}, other_{session_};
  harness::AhHandle to_group_, to_host_;
  Stranger stranger_{0x5eed, kGroupBlock};
  UniqueFd socket_;
};

TEST_F(GroupStranger, SubscribesNoQueuePairOfAnothers) {
  show_member(0, other_.qpn());
  meet();
  expect_apart(other_);
}

TEST_F(GroupStranger, SubscribesNoneThatItClaimsAsItsOwn) {
  ASSERT_LT(other_.qpn() % kQpnsPerBlock, kQps);
  stranger_.head().blocks[0].store(other_.qpn() >> kQpnBlockBits);
  show_queue_pair(other_.qpn());
  show_member(0, other_.qpn());
  meet();
  expect_apart(other_);
}

TEST_F(GroupStranger, IsWaitedForOnceWhateverItShows) {
  show_queue_pair(stranger_.qpn(3));
  show_member(0, stranger_.qpn(3));
  meet();
  EXPECT_GE(time_to_send(), kWait / 2) << "its service thread might have needed a core";
  std::chrono::nanoseconds more{};
  for (int i = 0; i < 3; ++i) more += time_to_send();
  for (std::uint32_t i = 4; i < 12; ++i) {
    show_queue_pair(stranger_.qpn(i));
    show_member(i, stranger_.qpn(i));
    more += time_to_send();
  }
  EXPECT_LT(more, kWait);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(member_.next().byte_len, kHeader + 8);
}

TEST_F(GroupStranger, CrowdsNobodyOut) {
  show_queue_pair(stranger_.qpn(3));
  for (std::uint32_t i = 0; i < kMaxGroups; ++i) show_member(i, stranger_.qpn(3));
  meet();
  (void)time_to_send();
  EXPECT_EQ(member_.next().byte_len, kHeader + 8);
}

}  // namespace
}  // namespace verbatim::hostile
