// SPDX-License-Identifier: BSD-2-Clause
//
// Multicast groups over shared memory: members in several processes at once. What any device
// promises is in tests/conformance.
#include "tests/shm/datagram_group.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/handles.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kGroupQpn = 0xffffff;

class GroupOfProcesses : public ::testing::TestWithParam<Setting> {
 protected:
  struct Member {
    std::unique_ptr<Side> side;
    std::vector<QpInfo> qps;
    RegionInfo to;
  };
  static QpWish ud() {
    QpWish wish;
    wish.type = IBV_QPT_UD;
    return wish;
  }
  /// A process with so many members.
  Member join(std::size_t count) {
    Member member;
    member.side = std::make_unique<Side>(std::map<std::string, std::string>{});
    member.to = member.side->allocate(GetParam().memory, 64_KiB);
    for (std::size_t i = 0; i < count; ++i) {
      member.qps.push_back(member.side->create_qp(ud()));
      member.side->connect(member.qps[i], member.qps[i]);
      EXPECT_EQ(member.side->call<&Endpoint::attach>(member.qps[i].id, group(3), no_lid_), 0);
    }
    return member;
  }
  static void leave(Member& member) {
    for (const QpInfo& qp : member.qps)
      EXPECT_EQ(member.side->call<&Endpoint::detach>(qp.id, group(3), no_lid_), 0);
    member.qps.clear();
  }
  void send(std::uint64_t size, std::uint32_t seed) {
    a.fill(from, 0, size, seed);
    expect_posted(
        a.post_send(sender, datagram(9, slice(from, 0, size), ah, kGroupQpn, Link{}.qkey)));
    expect_wc(a.poll_sends(sender, 1)[0], 9, IBV_WC_SEND, sender);
  }
  static void post(Member& member) {
    for (std::uint64_t i = 0; i < member.qps.size(); ++i)
      expect_posted(
          member.side->post_receive(member.qps[i], {i, slice(member.to, i * 8192, 8192)}));
  }
  void expect_arrived(Member& member, std::uint64_t size, std::uint32_t seed) {
    for (std::uint64_t i = 0; i < member.qps.size(); ++i) {
      const ibv_wc wc = member.side->poll_receives(member.qps[i], 1)[0];
      expect_wc(wc, i, IBV_WC_RECV, member.qps[i]);
      EXPECT_EQ(wc.byte_len, size + kHeader);
      EXPECT_EQ(wc.src_qp, sender.qpn);
      EXPECT_EQ(member.side->mismatch(member.to, i * 8192 + kHeader, size, seed), -1);
      EXPECT_TRUE(member.side->poll_once(member.qps[i].receive_cq, 1).empty()) << "twice";
    }
  }

  static constexpr std::uint16_t no_lid_ = 0;
  Side a{std::make_shared<Session>()};
  QpInfo sender = a.create_qp(ud());
  RegionInfo from = a.allocate(GetParam().memory, 64_KiB);
  std::int32_t ah = a.call<&Endpoint::create_multicast_ah>(group(3), no_lid_);
};
RUN_OVER_SETTINGS(GroupOfProcesses, between_processes());

TEST_P(GroupOfProcesses, EachMemberOfEachProcessHasItsOwnCopy) {
  a.connect(sender, sender);
  Member b = join(2);
  Member c = join(1);
  std::uint32_t seed = 1;
  for (const std::uint64_t size : {8, 200, 4096}) {
    SCOPED_TRACE(size);
    post(b);
    post(c);
    send(size, ++seed);
    expect_arrived(b, size, seed);
    expect_arrived(c, size, seed);
  }
  leave(b);
  post(c);
  send(100, 77);
  expect_arrived(c, 100, 77);
  leave(c);
}

TEST_P(GroupOfProcesses, AKilledProcessHasLeftAndTheOthersStay) {
  a.connect(sender, sender);
  Member b = join(2);
  Member c = join(2);
  post(b);
  post(c);
  send(8, 1);
  expect_arrived(b, 8, 1);
  expect_arrived(c, 8, 1);
  b.side->child().kill_and_collect();
  for (std::uint32_t seed = 2; seed < 6; ++seed) {
    post(c);
    send(4000, seed);
    expect_arrived(c, 4000, seed);
  }
  leave(c);
}

}  // namespace
}  // namespace verbatim::harness
