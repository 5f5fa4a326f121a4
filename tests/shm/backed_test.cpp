// SPDX-License-Identifier: BSD-2-Clause
//
// A verb that succeeds is backed: what the shared memory of a process has no room for is refused by
// the verb that asks for it, and where nobody could know then, the request that fails says what is
// lacking, never that the peer did not answer. Processes that may have files of a few MiB only stand
// for those that use up what any process has.
#include <gmock/gmock.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/condition.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/handles.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/role.hpp"

namespace verbatim::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Leaves a process 2 MiB for its connections.
const std::map<std::string, std::string> kVeryShort{{kCondition, "limit fsize 6000000"}};
const std::map<std::string, std::string> kCopiesNothing{{"VERBATIM_SHM_CMA", "off"}};
constexpr const char* kSaid = "of shared memory for connections";

Link at_once() {
  Link link;
  link.timeout = 10;
  link.retry_count = 1;
  return link;
}

/// Connections of `sender` to receives that `receiver` shares, each with room for a first message.
class ToAShallowSea {
 public:
  ToAShallowSea(Side& sender, Side& receiver) : sender_(sender), receiver_(receiver) {
    SrqWish wish;
    wish.depth = 16384;
    wish.max_sge = 1;
    srq_ = receiver.call<&Endpoint::create_srq>(wish);
    wish_.send_depth = wish_.receive_depth = wish_.max_sge = 1;
    wish_.send_cq = wish_.receive_cq = sender.call<&Endpoint::create_cq>(16, 0);
    wished_ = wish_;
    wished_.send_cq = wished_.receive_cq = receiver.call<&Endpoint::create_cq>(4096, 0);
    wished_.srq = srq_.id;
  }
  /// Two queue pairs, the sender's first.
  std::pair<QpInfo, QpInfo> add() {
    return {sender_.create_qp(wish_), receiver_.create_qp(wished_)};
  }
  /// The last of the verbs' answers.
  int connect_sender(const QpInfo& from, const QpInfo& to) {
    EXPECT_EQ(sender_.call<&Endpoint::to_init>(from.id, at_once()), 0);
    EXPECT_EQ(sender_.call<&Endpoint::to_rtr>(from.id, to, at_once()), 0);
    return sender_.call<&Endpoint::to_rts>(from.id, at_once());
  }
  ibv_wc send_on(const QpInfo& from) {
    const std::vector<Receive> one{receive(1)};
    EXPECT_EQ(receiver_.call<&Endpoint::post_srq_receive>(srq_.id, one).error, 0);
    expect_posted(sender_.post_send(from, send(1, SliceList{})));
    return sender_.poll_sends(from, 1)[0];
  }
  /// Connects until the sender is refused; to a peer that it has met, or that nobody meets.
  void fill(bool has_met) {
    for (std::uint32_t i = 0; i < kConnections; ++i) {
      const auto [from, to] = add();
      if (has_met) receiver_.connect(to, from, at_once());
      const int error = connect_sender(from, to);
      if (error != 0) {
        EXPECT_EQ(error, ENOMEM);
        EXPECT_EQ(sender_.state(from), IBV_QPS_RTR);
        ++refused;
        if (refused == kRefusals) return;
        continue;
      }
      if (!has_met) receiver_.connect(to, from, at_once());
      connected.push_back(from);
    }
  }

  static constexpr std::uint32_t kConnections = 2000;
  static constexpr std::uint32_t kRefusals = 4;
  std::vector<QpInfo> connected;
  std::uint32_t refused = 0;

 private:
  Side& sender_;
  Side& receiver_;
  QpWish wish_, wished_;
  SrqInfo srq_;
};

TEST(Backed, WhoeverIsConnectedCanSendAndOthersAreRefused) {
  const AllowedLog announced(kSaid);
  Side sender(kVeryShort);
  Side receiver(kAnotherProcess);
  ToAShallowSea sea(sender, receiver);
  sea.fill(true);
  EXPECT_EQ(sea.refused, ToAShallowSea::kRefusals);
  EXPECT_GE(sea.connected.size(), 500u);
  for (const QpInfo& from : sea.connected)
    ASSERT_EQ(sea.send_on(from).status, IBV_WC_SUCCESS) << &from - sea.connected.data();
}

TEST(Backed, SoIsWhoeverIsConnectedToAStranger) {
  const AllowedLog announced(kSaid);
  Side sender(kVeryShort);
  Side receiver(kAnotherProcess);
  ToAShallowSea sea(sender, receiver);
  sea.fill(false);
  EXPECT_EQ(sea.refused, ToAShallowSea::kRefusals);
  EXPECT_GE(sea.connected.size(), 500u);
  for (const QpInfo& from : sea.connected)
    ASSERT_EQ(sea.send_on(from).status, IBV_WC_SUCCESS) << &from - sea.connected.data();
}

/// Trains of messages between two processes, of which the sender has memory for half of one.
class Trains {
 public:
  static constexpr std::uint32_t kBytes = 1000;

  explicit Trains(std::uint32_t messages) : messages_(messages) {
    wish_.send_depth = wish_.receive_depth = messages;
    wish_.max_sge = 1;
    wish_.cq_depth = static_cast<std::int32_t>(2 * messages);
    source_ = sender.allocate(MemoryKind::kOrdinary, kBytes);
    target_ = receiver.allocate(MemoryKind::kOrdinary, std::uint64_t{messages} * kBytes);
    sender.fill(source_, 0, kBytes, 7);
  }
  std::pair<QpInfo, QpInfo> connect() {
    const QpInfo from = sender.create_qp(wish_), to = receiver.create_qp(wish_);
    receiver.connect(to, from);
    sender.connect(from, to);
    return {from, to};
  }
  void send_all(const QpInfo& from, const QpInfo& to) {
    for (std::uint32_t i = 0; i < messages_; ++i)
      expect_posted(receiver.post_receive(
          to, {receive(i, slice(target_, std::uint64_t{i} * kBytes, kBytes))}));
    for (std::uint32_t i = 0; i < messages_; ++i)
      expect_posted(sender.post_send(from, send(i, slice(source_, 0, kBytes))));
  }
  void take_all(const QpInfo& to) {
    for (std::uint32_t i = 0; i < messages_; ++i) {
      const ibv_wc wc = receiver.poll_receives(to, 1)[0];
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, i);
      ASSERT_EQ(receiver.mismatch(target_, std::uint64_t{i} * kBytes, kBytes, 7), -1) << i;
    }
  }
  void all_are_sent(const QpInfo& from) {
    for (const ibv_wc& wc : sender.poll_sends(from, messages_))
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
  }

  Side sender{kVeryShort};
  Side receiver{kAnotherProcess};

 private:
  std::uint32_t messages_;
  QpWish wish_;
  RegionInfo source_, target_;
};

TEST(Backed, MessagesForWhichTheSenderHasNoMemoryWaitUntilOthersAreTaken) {
  const AllowedLog announced(kSaid);
  Trains trains(4096);
  const auto [from, to] = trains.connect();
  trains.send_all(from, to);
  trains.take_all(to);
  trains.all_are_sent(from);
}

TEST(Backed, WhatOneConnectionHadUnderWayServesAnotherWhenItIsTaken) {
  // Each takes a half of the sender's memory: the third has none but that of those before it.
  const AllowedLog announced(kSaid);
  Trains trains(700);
  std::vector<std::pair<QpInfo, QpInfo>> connections;
  for (int i = 0; i < 5; ++i) {
    SCOPED_TRACE(i);
    const auto [from, to] = connections.emplace_back(trains.connect());
    trains.send_all(from, to);
    trains.all_are_sent(from);  // though nobody takes them
    trains.take_all(to);
    if (::testing::Test::HasFatalFailure()) return;
  }
  // Those before it go on all the same.
  for (const auto& [from, to] : connections) {
    trains.send_all(from, to);
    trains.take_all(to);
    trains.all_are_sent(from);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// Makes receive queues, one for each queue pair or shared, until one is refused, and posts to all
/// of them. Answers how many, the errno of the refusal, and the first of a post.
VBT_ROLE(makes_receive_queues) {
  const bool shares = control.receive_value<int>() != 0;
  constexpr std::uint32_t kDeep = 8192;
  const Session session;
  const CqHandle cq(ibv_create_cq(session.context.get(), 16, nullptr, nullptr, 0));
  std::vector<SrqHandle> queues;
  std::vector<QpHandle> pairs;
  ibv_srq_init_attr srq_wish{};
  srq_wish.attr = {kDeep, 1, 0};
  ibv_qp_init_attr qp_wish{};
  qp_wish.qp_type = IBV_QPT_UD;
  qp_wish.send_cq = qp_wish.recv_cq = cq.get();
  qp_wish.cap = {1, kDeep, 1, 1, 0};
  int refusal = 0;
  for (int i = 0; i < 64 && refusal == 0; ++i) {
    errno = 0;
    if (shares) {
      queues.emplace_back(ibv_create_srq(session.pd.get(), &srq_wish));
      if (queues.back() == nullptr) refusal = errno;
    } else {
      qp_wish.qp_type = i % 2 == 0 ? IBV_QPT_RC : IBV_QPT_UD;
      pairs.emplace_back(ibv_create_qp(session.pd.get(), &qp_wish));
      if (pairs.back() == nullptr) refusal = errno;
    }
  }
  if (refusal != 0) shares ? queues.pop_back() : pairs.pop_back();
  int post_error = 0;
  ibv_recv_wr wr{};
  ibv_recv_wr* bad;
  for (const SrqHandle& queue : queues)
    if (post_error == 0) post_error = ibv_post_srq_recv(queue.get(), &wr, &bad);
  for (const QpHandle& pair : pairs) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                     (pair->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    if (post_error == 0) post_error = ibv_modify_qp(pair.get(), &attr, mask);
    if (post_error == 0) post_error = ibv_post_recv(pair.get(), &wr, &bad);
  }
  control.send_value(static_cast<int>(queues.size() + pairs.size()));
  control.send_value(refusal);
  control.send_value(post_error);
  return 0;
}

TEST(Backed, ReceivesCanBePostedToWhateverQueueWasMade) {
  const AllowedLog announced(kSaid);
  for (const int shares : {0, 1}) {
    Child child("makes_receive_queues", kVeryShort);
    child.control().send_value(shares);
    const int made = child.control().receive_value<int>();
    EXPECT_GE(made, 4);
    EXPECT_LT(made, 64);
    EXPECT_EQ(child.control().receive_value<int>(), ENOMEM);
    EXPECT_EQ(child.control().receive_value<int>(), 0);
    EXPECT_EQ(child.wait().exit_status, 0);
  }
}

TEST(Backed, ARequesterIsToldOfTheMemoryThatTheResponderLacks) {
  const AllowedLog announced(kSaid);
  // Only the responder's process can do it then.
  Side requester(kCopiesNothing);
  Side responder(kVeryShort);
  QpWish wish;
  wish.receive_depth = wish.max_sge = 1;
  const QpInfo asks = requester.create_qp(wish);
  const QpInfo answers = responder.create_qp(wish);
  requester.connect(asks, answers, at_once());
  responder.connect(answers, asks, at_once());
  const RegionInfo local = requester.allocate(MemoryKind::kOrdinary, 4096);
  const RegionInfo remote = responder.allocate(MemoryKind::kOrdinary, 4096);
  SrqWish filling;
  filling.max_sge = 1;
  for (filling.depth = 16384; filling.depth != 0; filling.depth /= 2) {
    try {
      while (responder.call<&Endpoint::create_srq>(filling).id >= 0) continue;
    } catch (const std::exception&) {  // there is no room for another one
    }
  }
  expect_posted(requester.post_send(asks, read(1, slice(local, 0, 4096), remote)));
  const ibv_wc wc = requester.poll_sends(asks, 1)[0];
  expect_error(wc, 1, IBV_WC_RETRY_EXC_ERR, asks);
  EXPECT_THAT(requester.explain(asks, wc),
              AllOf(HasSubstr("no memory left for it"), Not(HasSubstr("did not answer"))));
}

TEST(Backed, AnInitiatorIsToldWhatTheProcessOfItsQueueLacks) {
  const AllowedLog announced("queue pairs of this process are in use");
  const AllowedLog and_for_whom("has as many ways as it may have");
  const std::string domain =
      (std::filesystem::temp_directory_path() / ("verbatim-backed-" + std::to_string(::getpid())))
          .string();
  Side initiator(kAnotherProcess);
  Side target(kAnotherProcess);
  Side owner(kVeryShort);
  for (Side* const side : {&initiator, &target, &owner}) side->call<&Endpoint::use_xrcd_of>(domain);
  std::filesystem::remove(domain);
  SrqWish queue;
  queue.xrc = 1;
  const SrqInfo shared = owner.call<&Endpoint::create_srq>(queue);
  EXPECT_EQ(owner.call<&Endpoint::post_srq_receive>(shared.id, std::vector{receive(1)}).error, 0);
  QpWish wish;
  wish.receive_depth = wish.max_sge = 1;
  wish.type = IBV_QPT_XRC_SEND;
  const QpInfo asks = initiator.create_qp(wish);
  wish.type = IBV_QPT_XRC_RECV;
  const QpInfo answers = target.create_qp(wish);
  initiator.connect(asks, answers, at_once());
  target.connect(answers, asks, at_once());
  wish.type = IBV_QPT_RC;
  wish.send_cq = wish.receive_cq = owner.call<&Endpoint::create_cq>(1, 0);
  try {
    while (owner.create_qp(wish).id >= 0) continue;
  } catch (const std::exception&) {  // all numbers are in use
  }
  Request request = send(1, SliceList{});
  request.remote_srqn = shared.srqn;
  expect_posted(initiator.post_send(asks, request));
  const ibv_wc wc = initiator.poll_sends(asks, 1)[0];
  expect_error(wc, 1, IBV_WC_RETRY_EXC_ERR, asks);
  EXPECT_THAT(initiator.explain(asks, wc), HasSubstr("has no memory left for another sender"));
}

}  // namespace
}  // namespace verbatim::harness
