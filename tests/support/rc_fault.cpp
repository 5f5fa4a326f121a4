// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/rc_fault.hpp"

#include <chrono>

#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kSeedA = 11;
constexpr std::uint32_t kSeedB = 12;

// Work request numbers, so that a message of failure says which part of the scene it is about.
constexpr std::uint64_t kBefore = 1, kFault = 2, kBehind = 3, kReceiveAtA = 30, kSendAtB = 40,
                        kLater = 50;
constexpr std::uint64_t kWaiting = 3;  ///< of everything that waits on a queue

void expect_flushed(const std::vector<ibv_wc>& wcs, std::size_t from, std::uint64_t first_id,
                    const QpInfo& qp) {
  for (std::size_t i = from; i < wcs.size(); ++i) {
    expect_error(wcs[i], first_id + i - from, IBV_WC_WR_FLUSH_ERR, qp);
  }
}

}  // namespace

FaultScene::FaultScene(Setting setting, const PairWish& wish)
    : pair(setting, wish),
      local(pair.a.allocate(setting.memory, kSize)),
      remote(pair.b.allocate(setting.memory, kSize)),
      aside_a_(pair.a.allocate(setting.memory, 4096)),
      aside_b_(pair.b.allocate(setting.memory, 4096)) {
  pair.a.fill(local, 0, kSize, kSeedA);
  pair.b.fill(remote, 0, kSize, kSeedB);
}

double FaultScene::expect(const char* what, const Request& fault, ibv_wc_status status,
                          Responder responder) {
  const Slice all = slice(remote, 0, kSize);
  return expect(what, fault, status, responder,
                {receive(20, all), receive(21, all), receive(22, all)});
}

double FaultScene::expect(const char* what, const Request& fault, ibv_wc_status status,
                          Responder responder, const std::vector<Receive>& receives) {
  if (::testing::Test::HasFailure()) return 0;  // one finding at a time
  SCOPED_TRACE(what);
  SCOPED_TRACE(::testing::Message() << fault.from.bytes() << " bytes, opcode " << fault.opcode);
  const double took = run(fault, status, responder, receives, false);
  // Once more with sends that wait at the responder, which a failure flushes.
  if (responder.fails && !::testing::Test::HasFailure()) {
    run(fault, status, responder, receives, true);
  }
  return took;
}

double FaultScene::run(const Request& fault, ibv_wc_status status, Responder responder,
                       const std::vector<Receive>& receives, bool responder_sends) {
  SCOPED_TRACE(responder_sends ? "with sends that wait at the responder" : "with receives at both");
  const auto [qa, qb] = pair.add_qps({}, {});
  expect_posted(pair.b.post_receive(qb, receive(kBefore, slice(aside_b_, 0, 64))));
  if (!receives.empty()) expect_posted(pair.b.post_receive(qb, receives));
  for (std::uint64_t i = 0; i < kWaiting; ++i) {
    // What `b` sends waits only while `a` has no receives.
    if (responder_sends) {
      expect_posted(pair.b.post_send(qb, send(kSendAtB + i, slice(aside_b_, 0, 8)).unsignaled()));
    } else {
      expect_posted(pair.a.post_receive(qa, receive(kReceiveAtA + i, slice(aside_a_, 0, 64))));
    }
  }
  if (!quirk_of(qb.vendor, kNoEventsOfResponders).empty()) responder.event = -1;
  constexpr std::uint64_t kLeastPacket = 256;
  if (fault.opcode == IBV_WR_RDMA_WRITE_WITH_IMM && responder.fails && !responder.kernel_denies &&
      fault.from.bytes() <= kLeastPacket &&
      !quirk_of(qb.vendor, kUsesTheReceiveOfARefusedWrite).empty()) {
    responder.receive = IBV_WC_REM_ACCESS_ERR;
  }
  Request failing = fault;
  failing.wr_id = kFault;
  const Slice aside = slice(aside_a_, 0, 64);
  expect_posted(pair.a.post_send(qa, send(kBefore, slice(aside_a_, 0, 8))));
  expect_wc(pair.a.poll_sends(qa, 1)[0], kBefore, IBV_WC_SEND, qa);
  expect_receive(pair.b.poll_receives(qb, 1)[0], kBefore, 8, qb);
  const auto start = std::chrono::steady_clock::now();
  Request behind = write(kBehind, aside, aside_b_, 64).unsignaled();
  if (!quirk_of(qa.vendor, kFindsBadMemoryOfReadsLate).empty())
    behind = behind.with(IBV_SEND_FENCE);
  expect_posted(pair.a.post_send(qa, {failing, behind, send(kBehind + 1, aside),
                                      read(kBehind + 2, slice(aside_a_, 128, 64), aside_b_)}));
  const auto sent = pair.a.poll_sends(qa, 1 + kWaiting);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  if (responder.kernel_denies && device_is_the_kernels() &&
      sent[0].status == IBV_WC_REM_ACCESS_ERR) {
    status = IBV_WC_REM_ACCESS_ERR;
    if (responder.event >= 0) responder.event = IBV_EVENT_QP_ACCESS_ERR;
  }
  expect_error(sent[0], kFault, status, qa);
  expect_flushed(sent, 1, kBehind, qa);
  EXPECT_EQ(pair.a.state(qa), IBV_QPS_ERR);
  if (!responder_sends) expect_flushed(pair.a.poll_receives(qa, kWaiting), 0, kReceiveAtA, qa);
  expect_requester_ended(qa);
  if (responder.fails) {
    expect_responder_failed(qb, responder, receives, responder_sends);
  } else {
    expect_responder_untouched(qb);
  }
  // An error with a completion to tell of it raises no event at its own side.
  EXPECT_EQ(pair.a.call<&Endpoint::take_async_event>(0).type, -1);
  return took.count();
}

bool FaultScene::device_is_the_kernels() {
  return pair.a.here().context()->device->ibdev_path[0] != '\0';
}

void FaultScene::expect_requester_ended(const QpInfo& qa) {
  const Slice aside = slice(aside_a_, 0, 64);
  expect_posted(
      pair.a.post_send(qa, {send(kLater, aside).unsignaled(), write(kLater + 1, aside, aside_b_)}));
  expect_flushed(pair.a.poll_sends(qa, 2), 0, kLater, qa);
  expect_posted(pair.a.post_receive(qa, std::vector{receive(kLater, aside), receive(kLater + 1)}));
  expect_flushed(pair.a.poll_receives(qa, 2), 0, kLater, qa);
  EXPECT_TRUE(pair.a.poll_once(qa.send_cq, 1).empty());
  EXPECT_TRUE(pair.a.poll_once(qa.receive_cq, 1).empty());
}

void FaultScene::expect_responder_failed(const QpInfo& qb, Responder responder,
                                         const std::vector<Receive>& receives, bool sends_waited) {
  EXPECT_TRUE(wait_until([&] { return pair.b.state(qb) == IBV_QPS_ERR; })) << pair.b.state(qb);
  const auto got = pair.b.poll_receives(qb, static_cast<std::uint32_t>(receives.size()));
  for (std::size_t i = 0; i < got.size(); ++i) {
    expect_error(got[i], receives[i].wr_id, i == 0 ? responder.receive : IBV_WC_WR_FLUSH_ERR, qb);
  }
  if (sends_waited) expect_flushed(pair.b.poll_sends(qb, kWaiting), 0, kSendAtB, qb);
  if (responder.event >= 0) {
    const AsyncEvent event = pair.b.call<&Endpoint::take_async_event>(kDefaultWaitMs);
    EXPECT_EQ(event.type, responder.event);
    EXPECT_EQ(event.qp, qb.id);
  } else {
    let_service_thread_pass();
  }
  EXPECT_EQ(pair.b.call<&Endpoint::take_async_event>(0).type, -1);
  const Slice aside = slice(aside_b_, 0, 64);
  expect_posted(
      pair.b.post_send(qb, {send(kLater, aside), read(kLater + 1, aside, aside_a_).unsignaled()}));
  expect_flushed(pair.b.poll_sends(qb, 2), 0, kLater, qb);
  expect_posted(pair.b.post_receive(qb, std::vector{receive(kLater, aside), receive(kLater + 1)}));
  expect_flushed(pair.b.poll_receives(qb, 2), 0, kLater, qb);
  EXPECT_TRUE(pair.b.poll_once(qb.send_cq, 1).empty());
  EXPECT_TRUE(pair.b.poll_once(qb.receive_cq, 1).empty());
}

void FaultScene::expect_responder_untouched(const QpInfo& qb) {
  let_service_thread_pass();
  EXPECT_EQ(pair.b.state(qb), IBV_QPS_RTS);
  EXPECT_TRUE(pair.b.poll_once(qb.receive_cq, 1).empty());
  EXPECT_EQ(pair.b.call<&Endpoint::take_async_event>(0).type, -1);
}

/// A fault on another connection that the service thread of `b` is told of after whatever it may
/// have been told of this one.
void FaultScene::let_service_thread_pass() {
  if (!quirk_of(pair.qb.vendor, kNoEventsOfResponders).empty()) return;  // nor any thread
  const auto [qa, qb] = pair.add_qps({}, {});
  RegionInfo nowhere = aside_b_;
  nowhere.rkey ^= 0x80000000u;
  expect_posted(pair.a.post_send(qa, write(kFault, slice(aside_a_, 0, 8), nowhere)));
  expect_error(pair.a.poll_sends(qa, 1)[0], kFault, IBV_WC_REM_ACCESS_ERR, qa);
  const AsyncEvent event = pair.b.call<&Endpoint::take_async_event>(kDefaultWaitMs);
  EXPECT_EQ(event.type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.qp, qb.id);
}

void FaultScene::expect_memory_untouched(From from) {
  if (device_is_the_kernels()) {
    pair.a.fill(local, 0, from.local, kSeedA);
    pair.b.fill(remote, 0, from.remote, kSeedB);
  }
  EXPECT_EQ(pair.a.mismatch(local, 0, kSize, kSeedA), -1);
  EXPECT_EQ(pair.b.mismatch(remote, 0, kSize, kSeedB), -1);
}

}  // namespace verbatim::harness
