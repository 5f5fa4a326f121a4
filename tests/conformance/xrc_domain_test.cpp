// SPDX-License-Identifier: BSD-2-Clause
//
// XRC domains, and queue pairs that are opened by number (man ibv_open_xrcd, ibv_open_qp,
// ibv_create_srq_ex), within one process. What the connections carry is said in xrc_test.cpp and
// xrc_sharing_test.cpp.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "tests/support/device.hpp"

namespace verbatim::harness {
namespace {

class XrcDomain : public OnDevice {
 protected:
  ~XrcDomain() override {
    if (file_ >= 0) close(file_);
  }
  /// A file of this test's own, without a name.
  int file() {
    if (file_ >= 0) return file_;
    std::string path = "/tmp/verbatim-xrcd-XXXXXX";
    file_ = mkstemp(path.data());
    if (file_ >= 0) unlink(path.c_str());
    return file_;
  }
  XrcdHandle domain(int fd, int oflags) {
    ibv_xrcd_init_attr attr{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, fd, oflags};
    return XrcdHandle(ibv_open_xrcd(context(), &attr));
  }
  QpHandle target(ibv_xrcd* of) {
    ibv_qp_init_attr_ex init{};
    init.qp_type = IBV_QPT_XRC_RECV;
    init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    init.xrcd = of;
    return QpHandle(ibv_create_qp_ex(context(), &init));
  }
  QpHandle open(ibv_xrcd* by, std::uint32_t number, ibv_qp_type type = IBV_QPT_XRC_RECV) {
    ibv_qp_open_attr attr{};
    attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    attr.qp_num = number;
    attr.xrcd = by;
    attr.qp_type = type;
    return QpHandle(ibv_open_qp(context(), &attr));
  }
  SrqHandle queue(ibv_xrcd* of, ibv_cq* completes) {
    ibv_srq_init_attr_ex init{};
    init.attr = {4, 1, 0};
    init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                     (of == nullptr ? 0u : unsigned{IBV_SRQ_INIT_ATTR_XRCD}) |
                     (completes == nullptr ? 0u : unsigned{IBV_SRQ_INIT_ATTR_CQ});
    init.srq_type = IBV_SRQT_XRC;
    init.pd = pd();
    init.xrcd = of;
    init.cq = completes;
    return SrqHandle(ibv_create_srq_ex(context(), &init));
  }

 private:
  int file_ = -1;
};
RUN_ON_EVERY_DEVICE(XrcDomain);

TEST_P(XrcDomain, IsThereWhenTheDeviceSaysThatItDoesXrc) {
  const bool says = (attr().device_cap_flags & IBV_DEVICE_XRC) != 0;
  EXPECT_EQ(lacks_type(context(), IBV_QPT_XRC_RECV).empty(), says);
}

TEST_P(XrcDomain, OfAFileIsMadeOnlyWhereOCreatSaysSo) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  expect_complaints();
  EXPECT_EQ(domain(file(), 0), nullptr) << "nobody has made it";
  EXPECT_NE(errno, 0);
  const XrcdHandle made = domain(file(), O_CREAT);
  ASSERT_NE(made, nullptr);
  EXPECT_NE(domain(file(), 0), nullptr) << "it is there now";
  EXPECT_NE(domain(file(), O_CREAT), nullptr) << "O_CREAT has no effect then";
}

TEST_P(XrcDomain, OfAFileIsMadeAloneWhereOExclSaysSo) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  expect_complaints();
  const XrcdHandle made = domain(file(), O_CREAT | O_EXCL);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(domain(file(), O_CREAT | O_EXCL), nullptr);
  EXPECT_NE(errno, 0);
}

TEST_P(XrcDomain, OfAFileEndsWithTheLastThatHasItOpen) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  expect_complaints();
  XrcdHandle first = domain(file(), O_CREAT);
  XrcdHandle second = domain(file(), 0);
  ASSERT_NE(second, nullptr);
  first.reset();
  EXPECT_NE(domain(file(), 0), nullptr);
  second.reset();
  EXPECT_EQ(domain(file(), 0), nullptr);
  EXPECT_NE(domain(file(), O_CREAT | O_EXCL), nullptr);
}

TEST_P(XrcDomain, NeedsAnOpenFile) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  expect_complaints();
  const int closed = dup(file());
  close(closed);
  EXPECT_EQ(domain(closed, O_CREAT), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST_P(XrcDomain, NeedsToBeToldFileAndFlags) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  expect_complaints();
  for (const std::uint32_t mask :
       {0u, unsigned{IBV_XRCD_INIT_ATTR_FD}, unsigned{IBV_XRCD_INIT_ATTR_OFLAGS}, 0x80000003u}) {
    ibv_xrcd_init_attr attr{mask, -1, O_CREAT};
    EXPECT_EQ(ibv_open_xrcd(context(), &attr), nullptr) << mask;
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_P(XrcDomain, IsNotClosedWhileSomethingIsInIt) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  expect_complaints();
  XrcdHandle of = domain(-1, O_CREAT);
  ASSERT_NE(of, nullptr);
  QpHandle made = target(of.get());
  ASSERT_NE(made, nullptr);
  SrqHandle shared = queue(of.get(), cq());
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(ibv_close_xrcd(of.get()), EBUSY);
  made.reset();
  EXPECT_EQ(ibv_close_xrcd(of.get()), EBUSY);
  QpHandle again = target(of.get());
  shared.reset();
  EXPECT_EQ(ibv_close_xrcd(of.get()), EBUSY);
  QpHandle opened = open(of.get(), again->qp_num);
  ASSERT_NE(opened, nullptr);
  again.reset();
  EXPECT_EQ(ibv_close_xrcd(of.get()), EBUSY) << "an opened one is in it too";
  opened.reset();
  EXPECT_EQ(ibv_close_xrcd(of.release()), 0);
}

TEST_P(XrcDomain, AQueueNeedsADomainAndACompletionQueue) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  expect_complaints();
  EXPECT_EQ(queue(nullptr, cq()), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(queue(xrcd(), nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_P(XrcDomain, AQueuesCompletionQueueIsInUse) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  expect_complaints();
  CqHandle own(ibv_create_cq(context(), 4, nullptr, nullptr, 0));
  SrqHandle shared = queue(xrcd(), own.get());
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(ibv_destroy_cq(own.get()), EBUSY);
  shared.reset();
  EXPECT_EQ(ibv_destroy_cq(own.release()), 0);
}

TEST_P(XrcDomain, AQueuePairIsOpenedByItsNumber) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  const XrcdHandle one = domain(file(), O_CREAT);
  const XrcdHandle same = domain(file(), 0);
  ASSERT_NE(same, nullptr);
  const QpHandle made = target(one.get());
  ASSERT_NE(made, nullptr);
  const QpHandle opened = open(same.get(), made->qp_num);
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(opened->qp_num, made->qp_num);
  EXPECT_EQ(opened->qp_type, IBV_QPT_XRC_RECV);
  EXPECT_EQ(opened->pd, nullptr);
}

TEST_P(XrcDomain, OnlyQueuePairsOfTheDomainAreOpened) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  expect_complaints();
  const XrcdHandle one = domain(-1, O_CREAT), other = domain(-1, O_CREAT);
  const QpHandle made = target(one.get());
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(open(other.get(), made->qp_num), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(open(one.get(), made->qp_num ^ 1), nullptr) << "no such number";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(open(one.get(), made->qp_num, IBV_QPT_XRC_SEND), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_qp* const plain = qp(IBV_QPT_RC, cq());
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(open(one.get(), plain->qp_num), nullptr) << "it is not of XRC";
  EXPECT_EQ(errno, EINVAL);
}

TEST_P(XrcDomain, AnOpenedQueuePairHasTheStateOfWhatItOpened) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  const XrcdHandle of = domain(-1, O_CREAT);
  const QpHandle made = target(of.get());
  ASSERT_NE(made, nullptr);
  ASSERT_EQ(lead(made.get(), IBV_QPS_RTR), 0);
  const QpHandle opened = open(of.get(), made->qp_num);
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(state(opened.get()), IBV_QPS_RTR);
  ASSERT_EQ(to_state(made.get(), IBV_QPS_ERR), 0);
  EXPECT_EQ(state(opened.get()), IBV_QPS_ERR);
}

TEST_P(XrcDomain, WhoOpensAQueuePairMayLeadIt) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  const XrcdHandle of = domain(-1, O_CREAT);
  QpHandle made = target(of.get());
  ASSERT_NE(made, nullptr);
  const QpHandle opened = open(of.get(), made->qp_num);
  ASSERT_NE(opened, nullptr);
  ASSERT_EQ(lead(opened.get(), IBV_QPS_RTS), 0);
  EXPECT_EQ(state(made.get()), IBV_QPS_RTS);
  made.reset();
  EXPECT_EQ(state(opened.get()), IBV_QPS_RTS) << "it stays while somebody has it open";
  EXPECT_EQ(to_state(opened.get(), IBV_QPS_RESET), 0);
  EXPECT_EQ(state(opened.get()), IBV_QPS_RESET);
}

TEST_P(XrcDomain, AQueuePairIsGoneWhenNobodyHasItOpen) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  expect_complaints();
  const XrcdHandle of = domain(-1, O_CREAT);
  QpHandle made = target(of.get());
  ASSERT_NE(made, nullptr);
  const std::uint32_t number = made->qp_num;
  QpHandle opened = open(of.get(), number);
  ASSERT_NE(opened, nullptr);
  made.reset();
  EXPECT_NE(open(of.get(), number), nullptr);
  opened.reset();
  EXPECT_EQ(open(of.get(), number), nullptr);
}

TEST_P(XrcDomain, TakesNoPostsAtItsReceivingEnd) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  const XrcdHandle of = domain(-1, O_CREAT);
  const QpHandle made = target(of.get());
  ASSERT_NE(made, nullptr);
  ASSERT_EQ(lead(made.get(), IBV_QPS_RTS), 0);
  const QpHandle opened = open(of.get(), made->qp_num);
  ASSERT_NE(opened, nullptr);
  for (ibv_qp* const one : {made.get(), opened.get()}) {
    EXPECT_NE(post_send(one, 1, nullptr, 0, 0), 0);
    EXPECT_NE(post_receive(one, 1, nullptr, 0, 0), 0);
  }
}

}  // namespace
}  // namespace verbatim::harness
