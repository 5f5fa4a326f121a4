// SPDX-License-Identifier: BSD-2-Clause
//
// A stranger that sends: on an endpoint of datagrams, to receives of the queue pair's own or of a
// shared queue, and on a connection whose receives are shared with others. Whatever it puts there,
// nothing is written but into receives, and an honest one's datagrams go on arriving in the same
// receives. A lie on an endpoint ends that endpoint; the queue pair stays as it is and goes on
// receiving from others.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/fuzz/liar.hpp"
#include "tests/hostile/acquaintance.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/handles.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/rc_states.hpp"

namespace verbatim::hostile {
namespace {

using namespace verbatim::shm;
using fuzz::Input;
using fuzz::Liar;
using fuzz::Stranger;
using harness::wait_until;

#ifdef VBT_UNDER_SANITIZER
constexpr std::uint32_t kLyingRounds = 2000;
#else
constexpr std::uint32_t kLyingRounds = 8000;
#endif
constexpr std::uint32_t kBlock = 0xe71;
constexpr std::uint32_t kQkey = 0x1234;
constexpr std::uint32_t kReceives = 16, kRoom = 1024, kStride = 2048;
constexpr unsigned char kUntouched = 0xa5;
constexpr std::uint64_t kMaxDatagram = 4096;

enum class Where { kEndpoint, kEndpointToShared, kConnectionToShared };

/// Receives, and who takes them: a UD queue pair; and a connected one that shares them.
class Receivers {
 public:
  Receivers(const harness::Session& session, Where where)
      : memory_(kReceives * kStride, kUntouched) {
    cq_.reset(ibv_create_cq(session.context.get(), 256, nullptr, nullptr, 0));
    mr_.reset(ibv_reg_mr(session.pd.get(), memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE));
    if (where != Where::kEndpoint) {
      ibv_srq_init_attr init{};
      init.attr = {.max_wr = kReceives, .max_sge = 1, .srq_limit = 0};
      srq_.reset(ibv_create_srq(session.pd.get(), &init));
    }
    ud_ = make(session, IBV_QPT_UD);
    if (where == Where::kConnectionToShared) rc_ = make(session, IBV_QPT_RC);
    ready_ud();
  }
  ibv_qp* ud() const { return ud_.get(); }
  ibv_qp* rc() const { return rc_.get(); }
  /// How often the UD queue pair was found in the error state.
  std::uint32_t failures() const { return failures_; }
  /// The datagram that was taken last, and the header before it.
  const ibv_wc& last() const { return last_; }
  ibv_grh last_header() const {
    ibv_grh header;
    std::memcpy(&header, memory_.data() + last_.wr_id * kStride, sizeof header);
    return header;
  }

  /// To the stranger's queue pair, whatever was before.
  void connect(QpRecord& stranger, std::uint32_t qpn) {
    stranger_ = &stranger;
    stranger_qpn_ = qpn;
    // Who is in the middle of a copy, as it may have said, is waited for.
    stranger.active.store(0);
    ASSERT_EQ(harness::modify_rc(rc_.get(), IBV_QPS_RESET), 0);
    ASSERT_EQ(harness::modify_rc(rc_.get(), IBV_QPS_INIT), 0);
    ASSERT_EQ(harness::modify_rc(rc_.get(), IBV_QPS_RTR, {.remote_qpn = qpn}), 0);
    ASSERT_EQ(harness::modify_rc(rc_.get(), IBV_QPS_RTS), 0);
  }
  void post_all() {
    for (std::uint64_t i = 0; i < kReceives; ++i) post(i);
  }
  /// Takes what came. How many messages `from` sent, or came by `rc`.
  std::uint32_t take(std::uint32_t from) {
    std::uint32_t arrived = 0;
    bool ud_broke = false, rc_broke = false;
    ibv_wc wcs[16];
    for (int n; (n = ibv_poll_cq(cq_.get(), 16, wcs)) > 0;) {
      for (int i = 0; i < n; ++i) {
        const ibv_wc& wc = wcs[i];
        if (wc.opcode == IBV_WC_SEND && wc.status == IBV_WC_SUCCESS) continue;
        const bool by_ud = wc.qp_num == ud_->qp_num;
        if (wc.status != IBV_WC_SUCCESS) {
          (by_ud ? ud_broke : rc_broke) = true;
          // Anybody can send one that is too long for its receive; nothing else fails those of UD.
          if (by_ud && wc.status != IBV_WC_WR_FLUSH_ERR) {
            EXPECT_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
          }
        } else {
          // Of a WRITE it is the length of what was written elsewhere.
          if (by_ud || wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
            EXPECT_EQ(wc.opcode, IBV_WC_RECV);
            EXPECT_LE(wc.byte_len, kRoom);
          }
          if (by_ud) last_ = wc;
          if (by_ud ? wc.src_qp == from : rc_ != nullptr && from == stranger_qpn_) ++arrived;
        }
        EXPECT_LT(wc.wr_id, kReceives);
        if (!ud_broke && !rc_broke) post(wc.wr_id);  // else they would flush at once
      }
    }
    for (std::size_t at = 0; at < memory_.size(); ++at)
      if (at % kStride >= kRoom && memory_[at] != kUntouched) {
        ADD_FAILURE() << "written behind receive " << at / kStride;
        break;
      }
    // A fault that the stranger tells of ends the connection without a completion.
    if (rc_ != nullptr) rc_broke |= is_in_error(*rc_);
    if (ud_broke) ++failures_;
    if (ud_broke) ready_ud();
    if (rc_broke) connect(*stranger_, stranger_qpn_);
    if (ud_broke || rc_broke) post_all();
    return arrived;
  }

 private:
  harness::QpHandle make(const harness::Session& session, ibv_qp_type type) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_.get();
    init.srq = srq_.get();
    init.qp_type = type;
    init.cap = {.max_send_wr = 1,
                .max_recv_wr = kReceives,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    return harness::QpHandle(ibv_create_qp(session.pd.get(), &init));
  }
  void ready_ud() {
    ibv_qp_attr attr{};
    attr.port_num = 1;
    attr.qkey = kQkey;
    attr.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(ibv_modify_qp(ud_.get(), &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(ibv_modify_qp(ud_.get(), &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
              0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(ud_.get(), &attr, IBV_QP_STATE), 0);
    post_all();
  }
  static bool is_in_error(ibv_qp& qp) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(&qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state == IBV_QPS_ERR;
  }
  /// When there is room.
  void post(std::uint64_t i) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_.data()) + i * kStride, kRoom, mr_->lkey};
    ibv_recv_wr wr{};
    ibv_recv_wr* bad;
    wr.wr_id = i;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    (void)(srq_ != nullptr ? ibv_post_srq_recv(srq_.get(), &wr, &bad)
                           : ibv_post_recv(ud_.get(), &wr, &bad));
  }

  std::vector<unsigned char> memory_;
  harness::CqHandle cq_;
  harness::MrHandle mr_;
  harness::SrqHandle srq_;
  harness::QpHandle ud_, rc_;
  QpRecord* stranger_ = nullptr;
  std::uint32_t stranger_qpn_ = 0, failures_ = 0;
  ibv_wc last_{};
};

class LyingSender : public ::testing::TestWithParam<Where> {
 protected:
  static constexpr std::uint32_t kFace = 1, kWay = 2;  ///< places in its table

  void SetUp() override {
    ibv_ah_attr path{};
    path.port_num = 1;
    path.dlid = session_.port.lid;
    ah_.reset(ibv_create_ah(session_.pd.get(), &path));
    known_.make(stranger_, receivers_.ud()->qp_num);
    target_.record = &known_.record_of(victim());
    target_.arena_bytes = 1u << 16;
    if (is_connected()) receivers_.connect(stranger_.qp(kWay), stranger_.qpn(kWay));
    receivers_.post_all();
  }
  static bool is_connected() { return GetParam() == Where::kConnectionToShared; }
  std::uint32_t victim() const {
    return (is_connected() ? receivers_.rc() : receivers_.ud())->qp_num;
  }
  std::uint32_t speaker() const { return stranger_.qpn(is_connected() ? kWay : kFace); }

  /// What the victim has for us: its half of the endpoint, when it has been made; or the queue
  /// pair.
  const QpRecord* half() const {
    const QpRecord* const known = &known_.record_of(victim());
    if (is_connected()) return known;
    std::uint32_t link = known->endpoint_link;
    for (std::uint32_t steps = 0; link != 0 && steps < 64; ++steps) {
      const QpRecord* const record = known_.view().record(link - 1);
      if (record == nullptr) return nullptr;
      if (record->dest_qpn == stranger_.qpn(kWay) && record->accepts.load() != 0) return record;
      link = record->endpoint_link;
    }
    return nullptr;
  }
  /// As an honest process would have it: an endpoint that asks to connect, or one that has been
  /// accepted.
  void be_honest() {
    const QpRecord* const there = half();
    target_.record = there != nullptr ? there : &known_.record_of(victim());
    target_.qpn = there != nullptr ? there->qpn : victim();
    liar_.be_ready();
    QpRecord& way = stranger_.qp(kWay);
    if (!is_connected()) {
      way.rq_psn = way.sq_psn = 0;
      way.type = IBV_QPT_UD;
      way.speaks_for = stranger_.qpn(kFace);
      way.endpoint_link = 0;
      stranger_.head().endpoint_link.store(kWay + 1);
    } else {
      way.rq_psn = way.sq_psn = there->rq_psn;
      way.speaks_for = 0;
    }
    if (there != nullptr) liar_.connect();
    heard_session_ = there != nullptr ? there->accepts.load() : 0;
    ring();
  }
  /// A message as it should be, behind the others.
  void deliver(std::uint32_t bytes) {
    const QpRecord* const there = half();
    if (there == nullptr || there->accepts.load() != heard_session_) return be_honest();
    put(there->lines_taken.load(), {.kind = SlotKind::kInline, .in_slot = bytes});
    known_.announce(*there);
  }
  struct Words {
    SlotKind kind;
    std::uint32_t flags = header::kSolicited;
    std::uint32_t in_slot = 0;
    std::uint64_t length = 0;
    std::uint64_t offset = 0;
  };
  Slot& slot(std::uint64_t line) {
    return stranger_.at<Slot>(Stranger::kHeap + kWay * 0x6000ull + 0x1000)[line % Liar::kLines];
  }
  /// In that line.
  void put(std::uint64_t line, const Words& words) {
    if (words.kind != SlotKind::kInline) slot(line).large = {words.length, words.offset, ~0ull};
    slot(line).header.store(header::make(static_cast<std::uint32_t>(line / Liar::kLines) + 1,
                                         words.kind, words.flags, words.in_slot, 0),
                            std::memory_order_release);
  }
  void lie_about_links(Input& input) {
    QpRecord& way = stranger_.qp(kWay);
    const std::uint32_t numbers[] = {victim(), sender_qpn(), stranger_.qpn(input.below(16)),
                                     static_cast<std::uint32_t>(input.number())};
    const std::uint32_t number = numbers[input.below(4)];
    switch (input.below(6)) {
      case 0:
        way.dest_qpn = number;
        return;
      case 1:
        way.speaks_for = number;
        return;
      case 2:
        way.qpn = number;
        return;
      case 3:
        way.endpoint_link =
            static_cast<std::uint32_t>(input.flag() ? input.below(18) : input.number());
        return;
      case 4:
        way.type = static_cast<std::uint32_t>(input.flag() ? input.below(16) : input.number());
        return;
      default:
        stranger_.head().endpoint_link.store(
            static_cast<std::uint32_t>(input.flag() ? input.below(18) : input.number()));
        return;
    }
  }
  void ring() {
    const QpRecord* const there = half();
    known_.ring(there != nullptr ? there->qpn : victim());
    known_.ring(receivers_.ud()->qp_num);
    known_.wake();
  }
  void lie() {
    unsigned char bytes[64];
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random_());
    Input input(bytes);
    switch (input.below(8)) {
      case 0:
        return be_honest();
      case 1:
        lie_about_links(input);
        return ring();
      case 2:
      case 3:
      case 4:
        return deliver(input.below(64));
      default:
        if (liar_.act(input)) ring();
        if (const QpRecord* const there = half(); there != nullptr) known_.announce(*there);
    }
  }
  std::uint32_t sender_qpn() const { return honest_.ud()->qp_num; }
  void send_honestly() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    if (honest_.ud()->state != IBV_QPS_RTS) {
      ASSERT_EQ(ibv_modify_qp(honest_.ud(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    }
    ibv_send_wr wr{};
    ibv_send_wr* bad;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {.ah = ah_.get(), .remote_qpn = receivers_.ud()->qp_num, .remote_qkey = kQkey};
    (void)ibv_post_send(honest_.ud(), &wr, &bad);
    (void)honest_.take(0);
  }

  harness::Session session_;
  Receivers receivers_{session_, GetParam()};
  Receivers honest_{session_, Where::kEndpoint};
  harness::AhHandle ah_;
  Stranger stranger_{0x5eed2, kBlock};
  fuzz::Target target_;
  Liar liar_{stranger_, kWay, target_};
  Acquaintance known_;
  std::uint64_t heard_session_ = 0;
  std::mt19937_64 random_{20261122};
};

TEST_P(LyingSender, WritesIntoReceivesOnlyAndTheHonestAreHeard) {
  const harness::AllowedLog complaints("");
  std::uint32_t heard = 0;
  for (std::uint32_t round = 0; round < kLyingRounds; ++round) {
    if (round % 32 == 0) be_honest();
    lie();
    if (round % 4 == 0) heard += receivers_.take(speaker());
    if (round % 400 != 0) continue;
    // They may be lost when lies have used up the receives; not for ever.
    ASSERT_TRUE(wait_until([&] {
      receivers_.post_all();
      send_honestly();
      return receivers_.take(sender_qpn()) != 0;
    })) << round;
  }
  EXPECT_GT(heard, kLyingRounds / 100) << "who is not heard tells no lies";
}

class LyingOnAnEndpoint : public LyingSender {
 protected:
  /// An endpoint of the stranger's over which a message has arrived.
  const shm::RequestAnswers& answers_at(std::uint64_t offset) const {
    return *reinterpret_cast<const shm::RequestAnswers*>(known_.view().segment + offset);
  }
  const QpRecord* endpoint_that_is_heard() {
    EXPECT_TRUE(wait_until([&] {
      deliver(8);
      return receivers_.take(speaker()) != 0;
    }));
    return half();
  }
  void expect_end_of(const QpRecord& endpoint, std::uint64_t session) {
    EXPECT_TRUE(wait_until([&] {
      known_.announce(endpoint);
      (void)receivers_.take(speaker());
      return endpoint.accepts.load() != session;
    }));
  }
  void expect_honest_heard() {
    EXPECT_TRUE(wait_until([&] {
      send_honestly();
      return receivers_.take(sender_qpn()) != 0;
    }));
    EXPECT_EQ(receivers_.failures(), 0u);
  }
};

TEST_P(LyingOnAnEndpoint, EndsThatEndpointAndTheQueuePairReceivesFromOthers) {
  const harness::AllowedLog complaint("broke the rules of the shared memory");
  const struct {
    const char* what;
    Words words;
    bool has_stream_ring = true;
  } kLies[] = {
      {"the end of a window", {SlotKind::kInline, header::kInvalidates, 8}},
      {"a write", {SlotKind::kPlaced, header::kWriteImmediate, 0, 8}},
      {"a write in the slot", {SlotKind::kInline, header::kWriteImmediate, 8}},
      {"more than a slot holds", {SlotKind::kInline, 0, 60}},
      {"more than a datagram has", {SlotKind::kWhole, 0, 0, kMaxDatagram + 1}},
      {"more than any message has", {SlotKind::kWhole, 0, 0, ~0ull}},
      {"a stream ring that is not there", {SlotKind::kWhole, 0, 0, 100}, false},
      {"a stream", {SlotKind::kStream, 0, 0, 100}},
      {"bytes placed", {SlotKind::kPlaced, 0, 0, 100}},
      {"more lines than a message takes", {SlotKind::kLines, 0, 0, kMostInLines + 1}},
      {"lines for any length", {SlotKind::kLines, 0, 0, ~0ull}},
      {"a line before", {SlotKind::kMoved, 0, 0, 0, extent::make(0x1000, kFirstRingLog)}},
      {"a line far behind", {SlotKind::kMoved, 0, 0, 1000, extent::make(0x1000, kFirstRingLog)}},
      {"a ring that is not there",
       {SlotKind::kMoved, 0, 0, 1, extent::make(~63ull, kFirstRingLog)}},
      {"a ring of no size", {SlotKind::kMoved, 0, 0, 1, extent::make(0x1000, 40)}},
      {"a refusal for no reason", {SlotKind::kFault, 0, 0, 99, 8}},
      {"too long, though it is not", {SlotKind::kFault, 0, 0, IBV_WC_LOC_LEN_ERR, 8}},
      {"too long for any", {SlotKind::kFault, 0, 0, IBV_WC_LOC_LEN_ERR, ~0ull}},
      {"a key that is sound", {SlotKind::kFault, 0, 0, IBV_WC_LOC_PROT_ERR, 8}},
  };
  for (const auto& lie : kLies) {
    SCOPED_TRACE(lie.what);
    const QpRecord* const endpoint = endpoint_that_is_heard();
    ASSERT_NE(endpoint, nullptr);
    const std::uint64_t session = endpoint->accepts.load();
    if (!lie.has_stream_ring) stranger_.qp(kWay).stream_ring.store(0);
    put(endpoint->lines_taken.load(), lie.words);
    expect_end_of(*endpoint, session);
    expect_honest_heard();
  }
}

TEST_P(LyingOnAnEndpoint, ShowsOfItsPathTheFieldsAlone) {
  const QpRecord* const endpoint = endpoint_that_is_heard();
  ASSERT_NE(endpoint, nullptr);
  const std::uint64_t index = endpoint->lines_taken.load();
  std::memset(slot(index).data, 0xff, sizeof slot(index).data);
  put(index, {SlotKind::kInline, header::kSolicited | header::kGlobal | header::kPath, 56});
  ASSERT_TRUE(wait_until([&] {
    known_.announce(*endpoint);
    return receivers_.take(speaker()) != 0;
  }));
  EXPECT_EQ(receivers_.last().sl, 15);
  EXPECT_EQ(receivers_.last().byte_len, sizeof(ibv_grh) + 56);
  const ibv_grh grh = receivers_.last_header();
  EXPECT_EQ(ntohl(grh.version_tclass_flow), 6u << 28 | 0xfffffffu);
  EXPECT_EQ(grh.hop_limit, 0xff ^ path::kUsualHopLimit);
  EXPECT_EQ(std::memcmp(&grh.dgid, &session_.gid, sizeof grh.dgid), 0);
}

TEST_P(LyingOnAnEndpoint, LosesNoReceiveThatWasTakenForIt) {
  const harness::AllowedLog complaint("broke the rules of the shared memory");
  const QpRecord* const endpoint = endpoint_that_is_heard();
  ASSERT_NE(endpoint, nullptr);
  const std::uint64_t session = endpoint->accepts.load(), first = endpoint->lines_taken.load();
  put(first, {.kind = SlotKind::kWhole, .length = 100, .offset = 0});
  put(first + 1, {.kind = SlotKind::kWhole, .length = 100, .offset = 128});
  ASSERT_TRUE(wait_until([&] {
    ring();
    return endpoint->stream_consumed.load() == 256;
  })) << "the service thread takes them while nobody polls";
  put(first, {.kind = SlotKind::kMoved});
  slot(first + 1).header.store(0);
  std::uint32_t came = 0;
  EXPECT_TRUE(wait_until([&] {
    known_.announce(*endpoint);
    came += receivers_.take(speaker());
    return came == 2;
  })) << came;
  expect_end_of(*endpoint, session);
  expect_honest_heard();
}

TEST_P(LyingOnAnEndpoint, HasNoRightsThatAConnectionHadWhoseNumberCameBack) {
  std::vector<unsigned char> memory(64);
  const harness::MrHandle mr(ibv_reg_mr(session_.pd.get(), memory.data(), memory.size(),
                                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  const harness::CqHandle cq(ibv_create_cq(session_.context.get(), 4, nullptr, nullptr, 0));
  for (std::uint32_t i = 0; i < 256; ++i) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 1,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    const harness::QpHandle connection(ibv_create_qp(session_.pd.get(), &init));
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(ibv_modify_qp(connection.get(), &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
  }
  const QpRecord* const endpoint = endpoint_that_is_heard();
  ASSERT_NE(endpoint, nullptr);
  QpRecord& way = stranger_.qp(kWay);
  auto& requests = *stranger_.at<shm::RequestRing>(Stranger::kRequests);
  requests.stream_ring.store(Stranger::kRequestStreamAt);
  stranger_.base()[Stranger::kRequestStreamAt] = 0x77;
  requests.produced.store(1);
  requests.requests[1] = {static_cast<std::uint32_t>(ServiceOp::kWrite),
                          mr->rkey,
                          reinterpret_cast<std::uint64_t>(memory.data()),
                          1,
                          0,
                          0,
                          0};
  requests.asked.store(1);
  way.requests.store(Stranger::kRequests);
  ASSERT_TRUE(wait_until([&] {
    ring();
    return endpoint->answers.load() != 0 &&
           answers_at(endpoint->answers.load()).answered.load() == 1;
  }));
  EXPECT_EQ(answers_at(endpoint->answers.load()).refused.load(), 1u << 8 | IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(memory[0], 0);
}

std::string name_of(const ::testing::TestParamInfo<Where>& tested) {
  constexpr const char* kNames[] = {"OnAnEndpoint", "OnAnEndpointToASharedQueue",
                                    "OnAConnectionToASharedQueue"};
  return kNames[static_cast<int>(tested.param)];
}
INSTANTIATE_TEST_SUITE_P(, LyingSender,
                         ::testing::Values(Where::kEndpoint, Where::kEndpointToShared,
                                           Where::kConnectionToShared),
                         name_of);
INSTANTIATE_TEST_SUITE_P(, LyingOnAnEndpoint,
                         ::testing::Values(Where::kEndpoint, Where::kEndpointToShared), name_of);

}  // namespace
}  // namespace verbatim::hostile
