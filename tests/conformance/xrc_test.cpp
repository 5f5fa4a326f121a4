// SPDX-License-Identifier: BSD-2-Clause
//
// Extended reliable connections (IBTA annex A14; man ibv_open_xrcd, ibv_create_qp_ex, ibv_open_qp,
// ibv_create_srq_ex, ibv_get_srq_num): one connection to a process reaches every shared receive
// queue of its domain, each by its number.
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

class Xrc : public BetweenTwo {
 protected:
  std::string open(int queues = 1) {
    if (std::string why = lacks_type(device(), IBV_QPT_XRC_RECV); !why.empty()) return why;
    PairWish unconnected;
    unconnected.connected = false;
    pair_ = std::make_unique<Pair>(GetParam(), unconnected);
    QpWish wish;
    wish.type = IBV_QPT_XRC_SEND;
    sender_ = pair_->a.create_qp(wish);
    wish.type = IBV_QPT_XRC_RECV;
    receiver_ = pair_->b.create_qp(wish);
    pair_->a.connect(sender_, receiver_);
    pair_->b.connect(receiver_, sender_);
    SrqWish shared;
    shared.xrc = 1;
    for (int i = 0; i < queues; ++i) queues_.push_back(pair_->b.create_srq(shared));
    from_ = pair_->a.allocate(memory(), 64_KiB);
    to_ = pair_->b.allocate(memory(), 64_KiB);
    return {};
  }
  Request letter(std::uint64_t id, std::uint64_t size, const SrqInfo& to) {
    Request request = send(id, slice(from_, 0, size));
    request.remote_srqn = to.srqn;
    return request;
  }
  /// The same request with the number of a queue, in whose domain its keys are judged.
  static Request by(Request request, const SrqInfo& queue) {
    request.remote_srqn = queue.srqn;
    return request;
  }
  void post(const SrqInfo& queue, std::uint64_t id, std::uint64_t size = 4096) {
    expect_posted(pair_->b.post_srq_receive(queue, {receive(id, slice(to_, 0, size))}));
  }
  ibv_wc next(const SrqInfo& queue) {
    return pair_->b.call<&Endpoint::poll>(queue.cq, 1u, kDefaultWaitMs)[0];
  }
  void send_one(const Request& request, ibv_wc_opcode opcode = IBV_WC_SEND) {
    expect_posted(pair_->a.post_send(sender_, request));
    expect_wc(pair_->a.poll_sends(sender_, 1)[0], request.wr_id, opcode, sender_);
  }

  std::unique_ptr<Pair> pair_;
  QpInfo sender_, receiver_;
  std::vector<SrqInfo> queues_;
  RegionInfo from_, to_;
};
RUN_OVER_SETTINGS(Xrc, on_every_device(each_way()));

TEST_P(Xrc, CarriesAMessageIntoTheQueueItNames) {
  SKIP_IF(open());
  for (const std::uint64_t size : {0u, 8u, 57u, 4000u, 50'000u}) {
    pair_->a.fill(from_, 0, size, 3);
    post(queues_[0], size, 64_KiB);
    send_one(letter(1, size, queues_[0]));
    const ibv_wc wc = next(queues_[0]);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, size);
    EXPECT_EQ(wc.byte_len, size);
    EXPECT_EQ(pair_->b.mismatch(to_, 0, size, 3), -1);
  }
}

TEST_P(Xrc, ReachesManyQueuesOverOneConnection) {
  SKIP_IF(open(4));
  for (std::uint64_t i = 0; i < 4; ++i) post(queues_[i], 10 + i);
  for (std::uint64_t i = 0; i < 4; ++i) send_one(letter(i, 8 + i, queues_[3 - i]));
  for (std::uint64_t i = 0; i < 4; ++i) {
    const ibv_wc wc = next(queues_[i]);
    EXPECT_EQ(wc.wr_id, 10 + i);
    EXPECT_EQ(wc.byte_len, 8 + 3 - i);
  }
}

TEST_P(Xrc, EachQueueHasANumberOfItsOwn) {
  SKIP_IF(open(4));
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(queues_[i].srqn, queues_[j].srqn);
  }
}

TEST_P(Xrc, WritesReadsAndCounts) {
  SKIP_IF(open());
  pair_->a.fill(from_, 0, 64, 5);
  const SrqInfo& queue = queues_[0];
  send_one(by(write(1, slice(from_, 0, 64), to_, 128), queue), IBV_WC_RDMA_WRITE);
  EXPECT_EQ(pair_->b.mismatch(to_, 128, 64, 5), -1);
  send_one(by(read(2, slice(from_, 1024, 64), to_, 128), queue), IBV_WC_RDMA_READ);
  EXPECT_EQ(pair_->a.mismatch(from_, 1024, 64, 5), -1);
  pair_->b.store(to_, 0, 41);
  send_one(by(fetch_add(3, slice(from_, 2048, 8), to_, 0, 1), queue), IBV_WC_FETCH_ADD);
  EXPECT_EQ(pair_->b.load(to_, 0), 42u);
}

TEST_P(Xrc, AWriteWithImmediateUsesAReceiveOfTheQueueItNames) {
  SKIP_IF(open(2));
  post(queues_[1], 7);
  Request request = write(1, slice(from_, 0, 32), to_, 512).with_imm(99);
  request.remote_srqn = queues_[1].srqn;
  send_one(request, IBV_WC_RDMA_WRITE);
  const ibv_wc wc = next(queues_[1]);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(ntohl(wc.imm_data), 99u);
}

TEST_P(Xrc, AnEmptyQueueMakesTheSenderWait) {
  SKIP_IF(open());
  expect_posted(pair_->a.post_send(sender_, letter(1, 8, queues_[0])));
  EXPECT_TRUE(pair_->a.poll_once(sender_.send_cq, 1).empty());
  post(queues_[0], 2);
  EXPECT_EQ(next(queues_[0]).wr_id, 2u);
  expect_wc(pair_->a.poll_sends(sender_, 1)[0], 1, IBV_WC_SEND, sender_);
}

TEST_P(Xrc, ASenderInErrorFlushesInTheOrderOfThePosts) {
  // IBTA 10.3.1.7: what waits for a receive, and behind it what is posted later.
  SKIP_IF(open(2));
  constexpr std::uint64_t kEach = 10;
  for (const std::uint64_t first : {std::uint64_t{0}, kEach}) {
    std::vector<Request> sends;
    for (std::uint64_t i = first; i < first + kEach; ++i) {
      // Flushed ones complete whether signaled or not.
      const Request request = i % 3 == 0 ? by(write(i, slice(from_, 0, 8), to_), queues_[0])
                                         : letter(i, 8, queues_[i % 2]);
      sends.push_back(i % 2 == 0 ? request : request.unsignaled());
    }
    // The first of them waits for its receive, and the others behind it.
    if (first == 0) sends[0] = letter(0, 8, queues_[0]);
    expect_posted(pair_->a.post_send(sender_, sends));
    ASSERT_EQ(pair_->a.to_state(sender_, IBV_QPS_ERR), 0);
  }
  const auto sent = pair_->a.poll_sends(sender_, 2 * kEach);
  for (std::uint64_t i = 0; i < 2 * kEach; ++i)
    expect_error(sent[i], i, IBV_WC_WR_FLUSH_ERR, sender_);
  // None of them used a receive that comes now.
  for (const SrqInfo& queue : queues_) {
    post(queue, 50);
    EXPECT_TRUE(pair_->b.poll_once(queue.cq, 1).empty());
  }
}

TEST_P(Xrc, AQueueThatDoesNotExistIsAnInvalidRequest) {
  // IBTA A14.5.4: XRC SRQ violation; devices report the one or the other remote error.
  SKIP_IF(open());
  SrqInfo nobody = queues_[0];
  nobody.srqn ^= 0x4321;
  expect_posted(pair_->a.post_send(sender_, letter(1, 8, nobody)));
  expect_status(pair_->a.poll_sends(sender_, 1)[0], 1,
                {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,
                 IBV_WC_REM_INV_RD_REQ_ERR});
  while (pair_->b.take_async_event(0).type != -1) {
  }
}

TEST_P(Xrc, ASenderHasNoReceiveQueueAndAReceiverNoSendQueue) {
  SKIP_IF(open());
  EXPECT_NE(pair_->a.post_receive(sender_, receive(1)).error, 0);
  EXPECT_NE(pair_->b.post_send(receiver_, send(1, {})).error, 0);
}

TEST_P(Xrc, ADomainOfAFileIsSharedByProcesses) {
  // man ibv_open_xrcd, ibv_open_qp: the connection ends in one process, the queue is in another.
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  const std::string file =
      (std::filesystem::temp_directory_path() / ("verbatim-xrcd-" + std::to_string(getpid())))
          .string();
  const Setting setting = GetParam();
  {
    Side a(std::make_shared<Session>(setting.device));
    const std::map<std::string, std::string> there{{kDeviceVariable, setting.device}};
    Side b(there), c(there);
    b.call<&Endpoint::use_xrcd_of>(file);
    c.call<&Endpoint::use_xrcd_of>(file);
    std::filesystem::remove(file);
    QpWish wish;
    wish.type = IBV_QPT_XRC_SEND;
    const QpInfo sender = a.create_qp(wish);
    wish.type = IBV_QPT_XRC_RECV;
    const QpInfo receiver = b.create_qp(wish);
    a.connect(sender, receiver);
    b.connect(receiver, sender);
    const QpInfo opened = c.call<&Endpoint::open_qp>(receiver.qpn);
    EXPECT_EQ(opened.qpn, receiver.qpn);
    SrqWish shared;
    shared.xrc = 1;
    const SrqInfo queue = c.create_srq(shared);
    const RegionInfo from = a.allocate(setting.memory, 4096);
    const RegionInfo to = c.allocate(setting.memory, 4096);
    a.fill(from, 0, 100, 8);
    expect_posted(c.post_srq_receive(queue, {receive(4, slice(to, 0, 4096))}));
    Request request = send(1, slice(from, 0, 100));
    request.remote_srqn = queue.srqn;
    expect_posted(a.post_send(sender, request));
    expect_wc(a.poll_sends(sender, 1)[0], 1, IBV_WC_SEND, sender);
    const ibv_wc wc = c.call<&Endpoint::poll>(queue.cq, 1u, kDefaultWaitMs)[0];
    EXPECT_EQ(wc.wr_id, 4u);
    EXPECT_EQ(wc.byte_len, 100u);
    EXPECT_EQ(c.mismatch(to, 0, 100, 8), -1);
  }
}

}  // namespace
}  // namespace verbatim::harness
