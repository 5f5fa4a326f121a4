// SPDX-License-Identifier: BSD-2-Clause
// VERBATIM_STRICT=1 over a device that takes every value it is given, and has the port that a test
// wants. Each pitfall is said once for its object; what is sound is not.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/event_acks.hpp"
#include "runtime/verbs/strict.hpp"
#include "runtime/verbs/strict_pitfalls.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/forked_child.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"
#include "tests/unit/providers_under_test.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

/// The library reads it once: before the first object is made.
[[maybe_unused]] const int is_set = setenv("VERBATIM_STRICT", "1", 1);

/// The device lets nothing go.
bool stays = false;
ibv_port_attr port;
ibv_gid gids[4];

ibv_gid gid_of(const char* text) {
  ibv_gid gid{};
  EXPECT_EQ(inet_pton(AF_INET6, text, gid.raw), 1) << text;
  return gid;
}

/// What the device has given of each object's events, by its own count, as kernels keep it.
template <class Handle>
struct Counted : Handle {
  std::uint32_t completions = 0;
  std::uint32_t asynchronous = 0;
  static Counted& from(Handle& handle) { return static_cast<Counted&>(handle); }
};
/// What it gives next.
Cq* next_cq = nullptr;
ibv_async_event next_event;

template <class Handle, class... Args>
int make(Handle** out, Args&&... args) {
  *out = make_nothrow<Handle>(std::forward<Args>(args)...);
  return *out == nullptr ? ENOMEM : 0;
}
/// With the device's own counts.
template <class Handle>
int make_counted(Handle** out) {
  Counted<Handle>* made = nullptr;
  const int error = make(&made);
  *out = made;
  return error;
}
template <class Handle>
int drop(Handle& handle) {
  destroy_nothrow(&handle);
  return 0;
}

struct Lax {
  static constexpr const char* kName = "lax";
  using Context = verbatim::Context;
  using Mr = verbatim::Mr;
  using Cq = verbatim::Cq;
  using Qp = verbatim::Qp;

  static int list_devices(DeviceSink& sink) noexcept { return sink.add({.name = "lax0"}); }
  static int open(Device& device, Context** out) noexcept { return make(out, device); }
  static void close(Context& context) noexcept { drop(context); }
  static int query_device(Context&, ibv_device_attr_ex& attr) noexcept {
    attr.orig_attr.phys_port_cnt = 1;
    return 0;
  }
  static int query_port(Context&, std::uint8_t, ibv_port_attr& attr) noexcept {
    attr = port;
    return 0;
  }
  static int query_gid(Context&, std::uint8_t, int index, ibv_gid_entry& entry) noexcept {
    entry.gid = gids[index];
    return 0;
  }
  static int alloc_pd(Context&, Pd** out) noexcept { return make(out); }
  static int dealloc_pd(Pd& pd) noexcept { return drop(pd); }
  static int create_ah(Pd&, const ibv_ah_attr&, Ah** out) noexcept { return make(out); }
  static int destroy_ah(Ah& ah) noexcept { return drop(ah); }
  static int create_comp_channel(Context&, CompChannel** out) noexcept { return make(out); }
  static int destroy_comp_channel(CompChannel& channel) noexcept { return drop(channel); }
  static int get_cq_event(CompChannel&, Cq** out) noexcept {
    ++Counted<Cq>::from(*next_cq).completions;
    *out = next_cq;
    return 0;
  }
  static int get_async_event(Context&, ibv_async_event& event) noexcept {
    event = next_event;
    if (event.event_type == IBV_EVENT_CQ_ERR)
      ++Counted<Cq>::from(Cq::from(event.element.cq)).asynchronous;
    else if (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
      ++Counted<Srq>::from(Srq::from(event.element.srq)).asynchronous;
    else if (event.event_type == IBV_EVENT_COMM_EST)
      ++Counted<Qp>::from(Qp::from(event.element.qp)).asynchronous;
    return 0;
  }
  static int create_cq(Context&, const ibv_cq_init_attr_ex&, CompChannel*, Cq** out) noexcept {
    return make_counted(out);
  }
  static int destroy_cq(Cq& handle) noexcept {
    auto& cq = Counted<Cq>::from(handle);
    wait_for_completion_acks(cq, cq.completions);
    wait_for_async_acks(cq, cq.asynchronous);
    return drop(cq);
  }
  static int resize_cq(Cq& cq, int cqe) noexcept {
    cq.plain.cqe = cqe;
    return 0;
  }
  static int create_srq(Context&, const ibv_srq_init_attr_ex& attr, Srq** out) noexcept {
    if (const int error = make_counted(out); error != 0) return error;
    (*out)->attributes = attr.attr;
    return 0;
  }
  static int modify_srq(Srq&, ibv_srq_attr&, int) noexcept { return 0; }
  static int open_xrcd(Context&, const ibv_xrcd_init_attr&, Xrcd** out) noexcept {
    return make(out);
  }
  static int close_xrcd(Xrcd& xrcd) noexcept { return drop(xrcd); }
  static int destroy_srq(Srq& handle) noexcept {
    if (stays) return EBUSY;
    auto& srq = Counted<Srq>::from(handle);
    wait_for_async_acks(srq, srq.asynchronous);
    return drop(srq);
  }
  static int create_qp(Context&, ibv_qp_init_attr_ex&, Qp** out) noexcept {
    if (const int error = make_counted(out); error != 0) return error;
    (*out)->plain.qp_num = 0x777;
    return 0;
  }
  static int modify_qp(Qp&, ibv_qp_attr&, int) noexcept { return 0; }
  static int destroy_qp(Qp& handle) noexcept {
    if (stays) return EBUSY;
    auto& qp = Counted<Qp>::from(handle);
    wait_for_async_acks(qp, qp.asynchronous);
    return drop(qp);
  }
};
constinit const ProviderTable kLax = make_provider_table<Lax>();

class Strict : public OpenedDevice {
 protected:
  Strict() : OpenedDevice("lax0") {
    port = {};
    port.state = IBV_PORT_ACTIVE;
    port.active_mtu = IBV_MTU_1024;
    port.gid_tbl_len = 4;
    port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  }
  void SetUp() override {
    OpenedDevice::SetUp();
    cq_ = make_cq();
    cq_->cqe = 16;
    qp_ = make_qp(cq_);
    sound_.path_mtu = IBV_MTU_1024;
    sound_.timeout = 14;
    sound_.retry_cnt = 7;
    sound_.ah_attr.port_num = 1;
    sound_.ah_attr.dlid = 3;
    gids[0] = gids[1] = gid_of("fe80::1");
    gids[2] = gid_of("::");
    gids[3] = gid_of("::ffff:10.0.0.1");
    sound_.ah_attr.grh.dgid = gid_of("::ffff:10.0.0.2");
  }
  void TearDown() override {
    if (qp_ != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(qp_), 0);
    }
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    OpenedDevice::TearDown();
  }
  ibv_srq* make_srq(std::uint32_t receives) {
    ibv_srq_init_attr wish{};
    wish.attr.max_wr = receives;
    wish.attr.max_sge = 1;
    ibv_srq* const srq = ibv_create_srq(pd, &wish);
    EXPECT_NE(srq, nullptr);
    return srq;
  }
  /// What is said of a queue pair that gets these; twice, since the second time is silent.
  std::string said_of(ibv_qp_attr attr) {
    constexpr int kAll = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT;
    const CapturedStderr captured;
    EXPECT_EQ(ibv_modify_qp(qp_, &attr, kAll), 0);
    EXPECT_EQ(ibv_modify_qp(qp_, &attr, kAll), 0);
    EXPECT_LE(captured.lines(), 1);
    return captured.text();
  }
  std::string said_of_handles(ibv_ah_attr path) {
    const CapturedStderr captured;
    for (int i = 0; i < 2; ++i) {
      ibv_ah* const ah = ibv_create_ah(pd, &path);
      EXPECT_NE(ah, nullptr);
      EXPECT_EQ(ibv_destroy_ah(ah), 0);
    }
    EXPECT_LE(captured.lines(), 1);
    return captured.text();
  }
  /// What is said when destroy begins to wait for an event, which is then acknowledged.
  template <class Destroy, class Acknowledge>
  static std::string said_until_acknowledged(Destroy&& destroy, Acknowledge&& acknowledge) {
    const CapturedStderr captured;
    std::thread destroyer([&] { EXPECT_EQ(destroy(), 0); });
    EXPECT_TRUE(harness::wait_until([&] { return captured.lines() != 0; }));
    acknowledge();
    destroyer.join();
    return captured.text();
  }

  void fetch(ibv_cq* cq, int count) {
    next_cq = &Cq::from(cq);
    ibv_comp_channel* const channel = ibv_create_comp_channel(context);
    ASSERT_NE(channel, nullptr);
    for (int i = 0; i < count; ++i) {
      ibv_cq* fetched = nullptr;
      void* given = nullptr;
      ASSERT_EQ(ibv_get_cq_event(channel, &fetched, &given), 0);
    }
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  }
  void fetch(const ibv_async_event& event, int count) {
    next_event = event;
    ibv_async_event fetched{};
    for (int i = 0; i < count; ++i) ASSERT_EQ(ibv_get_async_event(context, &fetched), 0);
  }

  Providers only_{&kLax};
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_qp_attr sound_{};
};

TEST_F(Strict, IsSilentAboutWhatIsSound) {
  EXPECT_EQ(said_of(sound_), "");
  EXPECT_EQ(said_of_handles(sound_.ah_attr), "");
  sound_.ah_attr.is_global = 1;
  sound_.ah_attr.grh.sgid_index = 3;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  EXPECT_EQ(said_of(sound_), "");
  EXPECT_EQ(said_of_handles(sound_.ah_attr), "");
}

TEST_F(Strict, WarnsOfATimeoutThatNeverEnds) {
  sound_.timeout = 0;
  EXPECT_THAT(said_of(sound_), HasSubstr("QP 0x000777: timeout 0 waits for ever"));
}

TEST_F(Strict, WarnsOfNoRetries) {
  sound_.retry_cnt = 0;
  EXPECT_THAT(said_of(sound_), HasSubstr("QP 0x000777: retry_cnt 0 ends the connection"));
}

TEST_F(Strict, WarnsOfAnMtuOverThePorts) {
  sound_.path_mtu = IBV_MTU_4096;
  EXPECT_THAT(said_of(sound_), HasSubstr("path_mtu 5 is over the port's active_mtu 3"));
}

TEST_F(Strict, WarnsOfAPathWithoutGidOnEthernet) {
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  EXPECT_THAT(said_of(sound_), HasSubstr("QP 0x000777: ah_attr.is_global is 0 on an Ethernet"));
  EXPECT_THAT(said_of_handles(sound_.ah_attr), HasSubstr("address handle: ah_attr.is_global is 0"));
}

TEST_F(Strict, WarnsOfAPathToNobody) {
  sound_.ah_attr.dlid = 0;
  EXPECT_THAT(said_of(sound_), HasSubstr("QP 0x000777: ah_attr.dlid is 0"));
  EXPECT_THAT(said_of_handles(sound_.ah_attr), HasSubstr("address handle: ah_attr.dlid is 0"));
}

TEST_F(Strict, WarnsOfAGidIndexBehindTheTable) {
  sound_.ah_attr.is_global = 1;
  sound_.ah_attr.grh.sgid_index = 4;
  EXPECT_THAT(said_of(sound_), HasSubstr("sgid_index 4, and the port's GID table has 4 entries"));
}

TEST_F(Strict, WarnsOfAPathToNobodysGid) {
  sound_.ah_attr.is_global = 1;
  sound_.ah_attr.grh.sgid_index = 3;
  sound_.ah_attr.grh.dgid = {};
  EXPECT_THAT(said_of(sound_), HasSubstr("QP 0x000777: grh.dgid is ::"));
  EXPECT_THAT(said_of_handles(sound_.ah_attr), HasSubstr("address handle: grh.dgid is ::"));
}

TEST_F(Strict, WarnsOfAGidIndexWithoutAGid) {
  sound_.ah_attr.is_global = 1;
  sound_.ah_attr.grh.sgid_index = 2;
  EXPECT_THAT(said_of(sound_), HasSubstr("grh.sgid_index 2 is an empty row"));
}

TEST_F(Strict, WarnsOfGidsThatDoNotReachEachOther) {
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  sound_.ah_attr.is_global = 1;
  EXPECT_THAT(said_of(sound_),
              HasSubstr("sgid_index 0 is a link-local address and grh.dgid an IPv4 address"));
  sound_.ah_attr.grh.dgid = gid_of("ff0e::1");
  EXPECT_EQ(said_of_handles(sound_.ah_attr), "") << "a group has members of every kind";
}

/// The queue pair of every test has 8 and 8 requests there already, of the 16 that fit.
TEST_F(Strict, CountsASharedReceiveQueueOnceForACqHoweverManyQueuePairsShareIt) {
  ibv_srq* const srq = make_srq(16);
  cq_->cqe = 16 + 3 * 8 + 16;
  const CapturedStderr captured;
  ibv_qp* sharing[4];
  for (int i = 0; i < 3; ++i) sharing[i] = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_EQ(captured.text(), "");
  // Those that go make room again, and so does the queue with the last of them.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ibv_destroy_qp(sharing[i]), 0);
  cq_->cqe = 16 + 8 + 16;
  sharing[0] = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_EQ(captured.text(), "");
  sharing[1] = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_THAT(captured.text(), HasSubstr("a CQ of 40 entries takes the completions of queues of 48 "
                                         "requests together, and can overrun; make it that large"));
  sharing[2] = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_EQ(captured.lines(), 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ibv_destroy_qp(sharing[i]), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Strict, WarnsOfASharedReceiveQueueThatOutgrowsItsCq) {
  ibv_srq* const srq = make_srq(16);
  cq_->cqe = 16 + 8 + 16;
  ibv_qp* const sharing = make_qp(cq_, IBV_QPT_RC, srq);
  const CapturedStderr captured;
  ibv_srq_attr larger{};
  larger.max_wr = 17;
  EXPECT_EQ(ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR), 0);
  EXPECT_THAT(captured.text(), HasSubstr("a CQ of 40 entries takes the completions of queues of 41 "
                                         "requests together"));
  EXPECT_EQ(ibv_destroy_qp(sharing), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/// An XRC domain, and queues in it of four receives that complete in one CQ.
struct XrcQueues {
  XrcQueues(ibv_context* on, ibv_pd* pd, ibv_cq* cq) : context(on) {
    ibv_xrcd_init_attr domain{};
    domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    domain.fd = -1;
    wish.attr.max_wr = 4;
    wish.attr.max_sge = 1;
    wish.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ;
    wish.srq_type = IBV_SRQT_XRC;
    wish.pd = pd;
    wish.xrcd = ibv_open_xrcd(context, &domain);
    wish.cq = cq;
    EXPECT_NE(wish.xrcd, nullptr);
  }
  ~XrcQueues() { EXPECT_EQ(ibv_close_xrcd(wish.xrcd), 0); }
  ibv_srq* make() {
    ibv_srq* const srq = ibv_create_srq_ex(context, &wish);
    EXPECT_NE(srq, nullptr);
    return srq;
  }
  ibv_context* context;
  ibv_srq_init_attr_ex wish{};
};

TEST_F(Strict, WarnsOfAnXrcQueueThatIsLargerThanItsCq) {
  XrcQueues queues(context, pd, cq_);
  const CapturedStderr captured;
  cq_->cqe = 20;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ibv_destroy_srq(queues.make()), 0);
  EXPECT_EQ(captured.text(), "");
  cq_->cqe = 19;
  ibv_srq* const srq = queues.make();
  EXPECT_THAT(captured.text(), HasSubstr("a CQ of 19 entries takes the completions of queues of 20 "
                                         "requests together"));
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Strict, CountsAnXrcQueueThatStays) {
  XrcQueues queues(context, pd, cq_);
  cq_->cqe = 20;
  ibv_srq* const srq = queues.make();
  stays = true;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
  stays = false;
  const CapturedStderr captured;
  EXPECT_EQ(ibv_resize_cq(cq_, 20), 0);
  EXPECT_EQ(captured.text(), "");
  EXPECT_EQ(ibv_resize_cq(cq_, 19), 0);
  EXPECT_THAT(captured.text(), HasSubstr("queues of 20 requests together"));
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Strict, WarnsOfACqThatIsResizedToLessThanItsQueues) {
  const CapturedStderr captured;
  EXPECT_EQ(ibv_resize_cq(cq_, 32), 0);
  EXPECT_EQ(ibv_resize_cq(cq_, 16), 0);
  EXPECT_EQ(captured.text(), "");
  EXPECT_EQ(ibv_resize_cq(cq_, 15), 0);
  EXPECT_THAT(captured.text(), HasSubstr("a CQ of 15 entries takes the completions of queues of 16 "
                                         "requests together, and can overrun; make it that large"));
  EXPECT_EQ(ibv_resize_cq(cq_, 14), 0);
  EXPECT_EQ(captured.lines(), 1);
}

TEST_F(Strict, CountsTheQueuesOfAQueuePairThatStays) {
  stays = true;
  EXPECT_EQ(ibv_destroy_qp(qp_), EBUSY);
  stays = false;
  const CapturedStderr captured;
  cq_->cqe = 32;
  ibv_qp* const second = make_qp(cq_);
  EXPECT_EQ(captured.text(), "");
  ibv_qp* const third = make_qp(cq_);
  EXPECT_THAT(captured.text(), HasSubstr("queues of 40 requests together"));
  EXPECT_EQ(ibv_destroy_qp(second), 0);
  EXPECT_EQ(ibv_destroy_qp(third), 0);
}

TEST_F(Strict, CountsTheSharedReceivesOfAQueuePairThatStays) {
  ibv_srq* const srq = make_srq(16);
  cq_->cqe = 16 + 2 * 8 + 16;
  ibv_qp* const sharing = make_qp(cq_, IBV_QPT_RC, srq);
  const CapturedStderr captured;
  stays = true;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ibv_destroy_qp(sharing), EBUSY);
  stays = false;
  ibv_qp* const second = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_EQ(captured.text(), "") << "counted once still";
  EXPECT_EQ(ibv_destroy_qp(second), 0);
  ibv_qp* const third = make_qp(cq_);
  EXPECT_THAT(captured.text(), HasSubstr("queues of 56 requests together"));
  for (ibv_qp* qp : {sharing, third}) EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/// A device need not write a new size where the first one stands.
TEST_F(Strict, CountsASharedReceiveQueueByItsSizeOfNow) {
  ibv_srq* const srq = make_srq(16);
  ibv_srq_attr larger{};
  larger.max_wr = 24;
  EXPECT_EQ(ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR), 0);
  cq_->cqe = 16 + 8 + 24 - 1;
  const CapturedStderr captured;
  ibv_qp* const sharing = make_qp(cq_, IBV_QPT_RC, srq);
  EXPECT_THAT(captured.text(), HasSubstr("queues of 48 requests together"));
  EXPECT_EQ(ibv_destroy_qp(sharing), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/// A thread of the parent's waits for the reader of its log, at the counts.
TEST_F(Strict, CountsInAChildThoughAThreadOfItsParentDidWhenItForked) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  ibv_srq* const srq = make_srq(64);
  ibv_cq* const other = make_cq();
  other->cqe = 1000;
  cq_->cqe = 16 + 8;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const char filling[4096] = {};
  while (::write(ends[1], filling, sizeof filling) > 0) continue;
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, 0), 0);
  const int log = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  ibv_qp* sharing = nullptr;
  std::thread warned([&] { sharing = make_qp(cq_, IBV_QPT_RC, srq); });
  EXPECT_TRUE(harness::wait_until([&] { return (Cq::from(cq_).strict_told & kSmallCq) != 0; }));
  const int status = harness::run_in_child([&] {
    ::dup2(log, STDERR_FILENO);
    ibv_qp* const own = make_qp(other, IBV_QPT_RC, srq);
    return ibv_destroy_qp(own);
  });
  char read[4096];
  while (::read(ends[0], read, sizeof read) > 0) continue;
  warned.join();
  ::dup2(log, STDERR_FILENO);
  for (const int fd : {log, ends[0], ends[1]}) ::close(fd);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ibv_destroy_qp(sharing), 0);
  EXPECT_EQ(ibv_destroy_cq(other), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Strict, WarnsOfCompletionEventsThatAreNotAcknowledged) {
  ibv_cq* const cq = make_cq();
  fetch(cq, 2);
  EXPECT_THAT(said_until_acknowledged([&] { return ibv_destroy_cq(cq); },
                                      [&] { ibv_ack_cq_events(cq, 2); }),
              HasSubstr("ibv_destroy_cq waits for 2 completion events"));
}

TEST_F(Strict, WarnsOfAsynchronousEventsThatAreNotAcknowledged) {
  ibv_async_event event{};
  ibv_cq* const cq = make_cq();
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = cq;
  const auto acknowledge = [&] { ibv_ack_async_event(&event); };
  fetch(event, 1);
  EXPECT_THAT(said_until_acknowledged([&] { return ibv_destroy_cq(cq); }, acknowledge),
              HasSubstr("ibv_destroy_cq waits for 1 asynchronous events"));

  ibv_srq* const srq = make_srq(1);
  ASSERT_NE(srq, nullptr);
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  event.element.srq = srq;
  fetch(event, 1);
  EXPECT_THAT(said_until_acknowledged([&] { return ibv_destroy_srq(srq); }, acknowledge),
              HasSubstr("ibv_destroy_srq waits for 1 asynchronous events"));

  event.event_type = IBV_EVENT_COMM_EST;
  event.element.qp = qp_;
  fetch(event, 1);
  EXPECT_THAT(said_until_acknowledged([&] { return ibv_destroy_qp(qp_); }, acknowledge),
              HasSubstr("ibv_destroy_qp waits for 1 asynchronous events of QP 0x000777"));
  qp_ = nullptr;
}

/// Of a program that never comes to destroy anything.
TEST_F(Strict, WarnsOnceOfAnObjectWhoseEventsAreManyAndNotAcknowledged) {
  const CapturedStderr captured;
  fetch(cq_, 1023);
  ibv_ack_cq_events(cq_, 1);
  fetch(cq_, 1);
  EXPECT_EQ(captured.text(), "");
  fetch(cq_, 1);
  EXPECT_THAT(captured.text(), HasSubstr("1024 completion events of a CQ were fetched"));
  fetch(cq_, 1);
  EXPECT_EQ(captured.lines(), 1);

  ibv_async_event event{};
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = cq_;
  fetch(event, 1025);
  EXPECT_THAT(captured.text(), HasSubstr("1024 asynchronous events of a CQ were fetched"));
  EXPECT_EQ(captured.lines(), 2);
  for (int i = 0; i < 1025; ++i) ibv_ack_async_event(&event);
  ibv_ack_cq_events(cq_, 1025);

  event.event_type = IBV_EVENT_COMM_EST;
  event.element.qp = qp_;
  fetch(event, 1025);
  EXPECT_THAT(captured.text(), HasSubstr("ibv_destroy_qp would wait for each"));
  EXPECT_EQ(captured.lines(), 3);
  for (int i = 0; i < 1025; ++i) ibv_ack_async_event(&event);
}

TEST_F(Strict, IsSilentAboutAnyNumberOfEventsThatAreAcknowledgedByTheHundred) {
  const CapturedStderr captured;
  for (int i = 0; i < 20; ++i) {
    fetch(cq_, 500);
    ibv_ack_cq_events(cq_, 500);
  }
  ibv_async_event event{};
  event.event_type = IBV_EVENT_PORT_ACTIVE;  // nothing waits for these
  event.element.port_num = 1;
  fetch(event, 2000);
  EXPECT_EQ(ibv_close_device(context), EBUSY);
  EXPECT_EQ(captured.text().find("strict"), std::string::npos) << captured.text();
}

/// More acknowledgments than events of one object hide nothing of another's.
TEST_F(Strict, WarnsOnceOfAContextThatIsClosedWhileEventsAreNotAcknowledged) {
  ibv_cq* const generous = make_cq();
  fetch(generous, 1);
  ibv_ack_cq_events(generous, 7);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_COMM_EST;
  event.element.qp = qp_;
  fetch(cq_, 3);
  fetch(event, 1);
  const CapturedStderr captured;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ibv_close_device(context), EBUSY);
  EXPECT_THAT(captured.text(), HasSubstr("ibv_close_device: 3 completion events (ibv_ack_cq_events)"
                                         " and 1 asynchronous events"));
  EXPECT_EQ(captured.lines(), 3) << "two of them say why it is refused";
  ibv_ack_cq_events(cq_, 3);
  ibv_ack_async_event(&event);
  EXPECT_EQ(ibv_destroy_cq(generous), 0);
}

TEST_F(Strict, WarnsOfUnsignaledRequestsWhenTheyHaveFilledTheQueueNotBefore) {
  const CapturedStderr captured;
  // One in each queue's worth, wherever it stands.
  for (std::uint32_t at = 0; at < 4; ++at) {
    note_posted(Qp::from(qp_), true, 4);
    for (std::uint32_t i = 0; i < 40; ++i) note_posted(Qp::from(qp_), i % 4 == at, 4);
  }
  EXPECT_EQ(captured.text(), "");
  note_posted(Qp::from(qp_), true, 4);
  for (std::uint32_t i = 0; i < 3; ++i) note_posted(Qp::from(qp_), false, 4);
  EXPECT_EQ(captured.text(), "");
  note_posted(Qp::from(qp_), false, 4);
  EXPECT_THAT(captured.text(), HasSubstr("4 unsignaled requests in a row have filled"));
  note_posted(Qp::from(qp_), false, 4);
  EXPECT_EQ(captured.lines(), 1);
}

}  // namespace
}  // namespace verbatim::unit
