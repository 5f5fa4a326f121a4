// SPDX-License-Identifier: BSD-2-Clause
//
// Multicast groups (IBTA 10.5, 11.3; man ibv_attach_mcast): each member of each process gets its
// own copy; whether the sender, if it is a member, hears itself is the device's choice.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "tests/conformance/ud_post.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kGroupQpn = 0xFFFFFF;
constexpr std::uint16_t kGroupLid = 0xC123;

/// RoCE v2's groups are IP's: of the kind that the address is with which they are spoken to.
ibv_gid group_of(std::uint8_t number, const ibv_gid& address) {
  ibv_gid group{};
  if (is_mapped_ipv4(address)) {
    constexpr std::uint8_t kLocal[] = {0xff, 0xff, 239, 255, 77};
    std::memcpy(group.raw + 10, kLocal, sizeof kLocal);
  } else {
    group.raw[0] = 0xFF;
    group.raw[1] = 0x12;
  }
  group.raw[15] = number;
  return group;
}

/// Where packets of IP carry them the host must be in the group too, as a connection manager makes
/// it: while this lives.
class HostInGroup {
 public:
  HostInGroup(const ibv_gid& group, const ibv_gid& address)
      : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    ip_mreq request{};
    std::memcpy(&request.imr_multiaddr, group.raw + 12, 4);
    std::memcpy(&request.imr_interface, address.raw + 12, 4);
    EXPECT_EQ(::setsockopt(socket_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request), 0)
        << std::strerror(errno);
  }
  HostInGroup(const HostInGroup&) = delete;
  HostInGroup& operator=(const HostInGroup&) = delete;
  ~HostInGroup() { ::close(socket_); }

 private:
  int socket_;
};

class Multicast : public BetweenTwo {
 protected:
  /// `sender` at a, and as many members at b.
  std::string open(int members) {
    if (std::string why = lacks_type(device(), IBV_QPT_UD); !why.empty()) return why;
    PairWish wish;
    wish.connected = false;
    pair_ = std::make_unique<Pair>(GetParam(), wish);
    // Only a device that the kernel has is on the host's network.
    const bool is_of_host = pair_->a.here().context()->device->ibdev_path[0] != '\0';
    if (is_of_host && is_mapped_ipv4(pair_->qb.gid)) {
      host_.push_back(std::make_unique<HostInGroup>(group(1), pair_->qb.gid));
      host_.push_back(std::make_unique<HostInGroup>(group(2), pair_->qb.gid));
    }
    from_ = pair_->a.allocate(memory(), 4096);
    to_ = pair_->b.allocate(memory(), 64_KiB);
    QpWish ud;
    ud.type = IBV_QPT_UD;
    sender_ = pair_->a.create_qp(ud);
    pair_->a.connect(sender_, sender_);
    for (int i = 0; i < members; ++i) {
      members_.push_back(pair_->b.create_qp(ud));
      pair_->b.connect(members_.back(), members_.back());
    }
    const int error = join(members_[0], 1);
    if (error != 0) return unless_unsupported("ibv_attach_mcast", error);
    return {};
  }
  ibv_gid group(std::uint8_t number) { return group_of(number, pair_->qb.gid); }
  int join(const QpInfo& member, std::uint8_t number) {
    return pair_->b.call<&Endpoint::attach>(member.id, group(number), kGroupLid);
  }
  int leave(const QpInfo& member, std::uint8_t number) {
    return pair_->b.call<&Endpoint::detach>(member.id, group(number), kGroupLid);
  }
  void post(const QpInfo& member, std::uint64_t id) {
    expect_posted(pair_->b.post_receive(member, receive(id, slice(to_, id * 1024, 1024))));
  }
  void send_to(std::uint8_t number, std::uint64_t size, std::uint32_t qkey = kQkey) {
    const std::int32_t ah = pair_->a.call<&Endpoint::create_multicast_ah>(group(number), kGroupLid);
    expect_posted(
        pair_->a.post_send(sender_, datagram(9, slice(from_, 0, size), ah, kGroupQpn, qkey)));
    expect_wc(pair_->a.poll_sends(sender_, 1)[0], 9, IBV_WC_SEND, sender_);
  }
  ibv_wc next(const QpInfo& member) { return pair_->b.poll_receives(member, 1)[0]; }
  void TearDown() override {
    if (!pair_) return;
    for (const QpInfo& member : members_) leave_all(member);
  }
  void leave_all(const QpInfo& member) {
    const AllowedLog may_not_be_one("verbatim: ");
    leave(member, 1);
    leave(member, 2);
  }

  std::unique_ptr<Pair> pair_;
  std::vector<std::unique_ptr<HostInGroup>> host_;
  QpInfo sender_;
  std::vector<QpInfo> members_;
  RegionInfo from_, to_;
};
RUN_OVER_SETTINGS(Multicast, on_every_device(each_way()));

TEST_P(Multicast, ReachesEveryMember) {
  SKIP_IF(open(3));
  for (std::size_t i = 1; i < 3; ++i) ASSERT_EQ(join(members_[i], 1), 0);
  pair_->a.fill(from_, 0, 200, 7);
  for (std::uint64_t i = 0; i < 3; ++i) post(members_[i], i);
  send_to(1, 200);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const ibv_wc wc = next(members_[i]);
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(wc.byte_len, kGrh + 200);
    EXPECT_EQ(wc.src_qp, sender_.qpn);
    EXPECT_EQ(pair_->b.mismatch(to_, i * 1024 + kGrh, 200, 7), -1);
  }
}

TEST_P(Multicast, CarriesTheGroupInItsRoutingHeader) {
  // IBTA 8.3: multicast packets always have one.
  SKIP_IF(open(1));
  pair_->a.fill(from_, 0, 2048, 7);
  const ibv_gid to = group(1);
  const bool ipv4 = is_mapped_ipv4(to);  // whose header ends where the GRH does
  for (const std::uint64_t size : {0, 8, 40, 41, 56, 57, 200, 900}) {
    SCOPED_TRACE(size);
    post(members_[0], 0);
    send_to(1, size);
    const ibv_wc wc = next(members_[0]);
    EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0);
    EXPECT_EQ(wc.byte_len, kGrh + size);
    const auto header = pair_->b.peek(to_, 0, kGrh);
    const int from = ipv4 ? 12 : 0;
    EXPECT_TRUE(std::equal(header.begin() + 24 + from, header.end(), to.raw + from));
    EXPECT_EQ(pair_->b.mismatch(to_, kGrh, size, 7), -1);
  }
}

TEST_P(Multicast, OfOneGroupDoesNotReachAnother) {
  SKIP_IF(open(2));
  ASSERT_EQ(join(members_[1], 2), 0);
  post(members_[0], 0);
  post(members_[1], 1);
  send_to(1, 8);
  send_to(2, 9);
  EXPECT_EQ(next(members_[0]).byte_len, kGrh + 8);
  EXPECT_EQ(next(members_[1]).byte_len, kGrh + 9);
  for (const QpInfo& member : members_) {
    EXPECT_TRUE(pair_->b.poll_once(member.receive_cq, 1).empty());
  }
}

TEST_P(Multicast, OfAnotherQkeyIsDropped) {
  SKIP_IF(open(1));
  post(members_[0], 0);
  send_to(1, 8, kQkey ^ 2);
  send_to(1, 9);
  EXPECT_EQ(next(members_[0]).byte_len, kGrh + 9);
}

TEST_P(Multicast, ReachesNobodyWhoHasLeft) {
  SKIP_IF(open(2));
  ASSERT_EQ(join(members_[1], 1), 0);
  ASSERT_EQ(leave(members_[1], 1), 0);
  post(members_[0], 0);
  post(members_[1], 1);
  send_to(1, 8);
  EXPECT_EQ(next(members_[0]).byte_len, kGrh + 8);
  EXPECT_TRUE(pair_->b.poll_once(members_[1].receive_cq, 1).empty());
}

TEST_P(Multicast, IsASuccessWithoutMembersToo) {
  SKIP_IF(open(1));
  send_to(2, 8);
}

TEST_P(Multicast, MembersWithoutAReceiveMissItAndOthersDoNot) {
  SKIP_IF(open(2));
  ASSERT_EQ(join(members_[1], 1), 0);
  post(members_[1], 1);
  send_to(1, 8);
  EXPECT_EQ(next(members_[1]).byte_len, kGrh + 8);
  post(members_[0], 0);
  post(members_[1], 1);
  send_to(1, 9);
  EXPECT_EQ(next(members_[0]).byte_len, kGrh + 9);
  EXPECT_EQ(next(members_[1]).byte_len, kGrh + 9);
}

TEST_P(Multicast, ASenderThatIsAMemberHearsItselfOrNotButOnceAtMost) {
  SKIP_IF(open(1));
  ASSERT_EQ(pair_->a.call<&Endpoint::attach>(sender_.id, group(1), kGroupLid), 0);
  expect_posted(pair_->a.post_receive(sender_, std::vector{receive(1, slice(from_, 1024, 512)),
                                                           receive(2, slice(from_, 2048, 512))}));
  post(members_[0], 0);
  send_to(1, 8);
  EXPECT_EQ(next(members_[0]).byte_len, kGrh + 8);
  const auto heard = pair_->a.poll_once(sender_.receive_cq, 2);
  EXPECT_LE(heard.size(), 1u);
  EXPECT_EQ(pair_->a.call<&Endpoint::detach>(sender_.id, group(1), kGroupLid), 0);
}

TEST_P(Multicast, WhoIsNoMemberCannotLeave) {
  SKIP_IF(open(1));
  const AllowedLog says_so("verbatim: ");
  EXPECT_NE(leave(members_[0], 2), 0);
}

TEST_P(Multicast, AMemberIsNotDestroyed) {
  // man ibv_destroy_qp: "fails if the QP is attached to a multicast group".
  SKIP_IF(open(1));
  const AllowedLog says_so("verbatim: ");
  EXPECT_EQ(pair_->b.call<&Endpoint::destroy_qp>(members_[0].id), EBUSY);
  EXPECT_EQ(leave(members_[0], 1), 0);
}

TEST_P(Multicast, AConnectionCannotJoin) {
  Pair pair(GetParam());
  const AllowedLog says_so("verbatim: ");
  EXPECT_NE(pair.a.call<&Endpoint::attach>(pair.qa.id, group_of(1, pair.qa.gid), kGroupLid), 0);
}

TEST_P(Multicast, AnAddressThatIsNoGroupsCannotBeJoined) {
  SKIP_IF(open(1));
  const AllowedLog says_so("verbatim: ");
  EXPECT_NE(pair_->b.call<&Endpoint::attach>(members_[0].id, pair_->qb.gid, kGroupLid), 0);
}

class MulticastLimit : public OnDevice {};
RUN_ON_EVERY_DEVICE(MulticastLimit);

TEST_P(MulticastLimit, IsTheReportedOneForTheQueuePairsOfAGroup) {
  // man ibv_query_device: max_mcast_qp_attach. Where it is beyond what can be made here, some.
  SKIP_IF(lacks_type(context(), IBV_QPT_UD));
  constexpr std::size_t kReachable = 1500, kSome = 200;
  const auto most = static_cast<std::size_t>(std::max(attr().max_mcast_qp_attach, 0));
  const std::size_t count = most <= kReachable ? most : kSome;
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq(8);
  init.qp_type = IBV_QPT_UD;
  init.cap = {1, 1, 1, 1, 0};
  std::vector<QpHandle> qps(count + 1);
  for (QpHandle& each : qps) {
    each.reset(ibv_create_qp(pd(), &init));
    ASSERT_NE(each, nullptr) << std::strerror(errno);
  }
  const ibv_gid one = group_of(1, session().gid);
  const ibv_gid two = group_of(2, session().gid);
  for (std::size_t i = 0; i < count; ++i) {
    const int error = ibv_attach_mcast(qps[i].get(), &one, kGroupLid);
    if (i == 0 && error != 0) SKIP_IF(unless_unsupported("ibv_attach_mcast", error));
    ASSERT_EQ(error, 0) << i << " of " << most;
  }
  ibv_qp* const more = qps[count].get();
  if (count == most) {
    expect_complaints();
    const int error = ibv_attach_mcast(more, &one, kGroupLid);
    EXPECT_TRUE(error == ENOMEM || error == EINVAL) << error;
    EXPECT_EQ(ibv_attach_mcast(more, &two, kGroupLid), 0) << "another group has room";
    EXPECT_EQ(ibv_detach_mcast(more, &two, kGroupLid), 0);
  }
  EXPECT_EQ(ibv_detach_mcast(qps[0].get(), &one, kGroupLid), 0);
  EXPECT_EQ(ibv_attach_mcast(more, &one, kGroupLid), 0) << "a place is free again";
  for (std::size_t i = 1; i <= count; ++i)
    EXPECT_EQ(ibv_detach_mcast(qps[i].get(), &one, kGroupLid), 0);
}

/// One group of very many, all others than those of other tests.
ibv_gid group_of_many(std::size_t number, const ibv_gid& address) {
  ibv_gid group = group_of(static_cast<std::uint8_t>(number), address);
  group.raw[14] = static_cast<std::uint8_t>(100 + (number >> 8));
  return group;
}

/// Memberships, the i-th of queue pair `i % members` in group `i / members`: as many as `most`, and
/// not one more; or some where there may be more than can be had here.
class MulticastTotal : public MulticastLimit {
 protected:
  void expect_room_for(int most, std::size_t members) {
    SKIP_IF(lacks_type(context(), IBV_QPT_UD));
    constexpr std::size_t kReachable = 5000, kSome = 200;
    ASSERT_GT(most, 0);
    const auto all = static_cast<std::size_t>(most);
    const std::size_t count = all <= kReachable ? all : kSome;
    ibv_cq* const both = cq(8);
    for (std::size_t i = 0; i < members; ++i) qps_.push_back(qp(IBV_QPT_UD, both));
    for (std::size_t i = 0; i < count; ++i) {
      const int error = join(i);
      if (i == 0 && error != 0) SKIP_IF(unless_unsupported("ibv_attach_mcast", error));
      ASSERT_EQ(error, 0) << i << " of " << most;
    }
    if (count == all) {
      expect_complaints();
      const int error = join(count);
      EXPECT_TRUE(error == ENOMEM || error == EINVAL) << error;
      EXPECT_EQ(leave(count / 2), 0);
      EXPECT_EQ(join(count), 0) << "a place is free again";
      EXPECT_EQ(join(count / 2), error) << "and taken";
      EXPECT_EQ(leave(count), 0);
      EXPECT_EQ(join(count / 2), 0);
    }
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(leave(i), 0);
  }

 private:
  int join(std::size_t i) {
    const ibv_gid group = group_of_many(i / qps_.size(), session().gid);
    return ibv_attach_mcast(qps_[i % qps_.size()], &group, kGroupLid);
  }
  int leave(std::size_t i) {
    const ibv_gid group = group_of_many(i / qps_.size(), session().gid);
    return ibv_detach_mcast(qps_[i % qps_.size()], &group, kGroupLid);
  }
  std::vector<ibv_qp*> qps_;
};
RUN_ON_EVERY_DEVICE(MulticastTotal);

TEST_P(MulticastTotal, OfGroupsIsTheReportedOne) {
  // man ibv_query_device: max_mcast_grp. Who has fewer memberships than groups reaches those.
  expect_room_for(std::min(attr().max_mcast_grp, attr().max_total_mcast_qp_attach), 1);
}

TEST_P(MulticastTotal, OfMembershipsInAllGroupsIsTheReportedOne) {
  // man ibv_query_device: max_total_mcast_qp_attach.
  expect_room_for(attr().max_total_mcast_qp_attach, 2);
}

}  // namespace
}  // namespace verbatim::harness
