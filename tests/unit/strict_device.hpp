// SPDX-License-Identifier: BSD-2-Clause
// VERBATIM_STRICT=1, and a device that takes every value it is given, and has the port that a test
// wants. It counts the events it gives by itself.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <string>
#include <thread>
#include <utility>

#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/event_acks.hpp"
#include "tests/support/deadline.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"
#include "tests/unit/providers_under_test.hpp"

namespace verbatim::unit {

/// The library reads it once: before the first object is made.
[[maybe_unused]] inline const int is_set = setenv("VERBATIM_STRICT", "1", 1);

/// The device lets nothing go.
inline bool stays = false;
inline ibv_port_attr port;
inline ibv_gid gids[4];

inline ibv_gid gid_of(const char* text) {
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
inline Cq* next_cq = nullptr;
inline ibv_async_event next_event;

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
inline constinit const ProviderTable kLax = make_provider_table<Lax>();

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
    if (context == nullptr) return;  // the test has closed it
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

}  // namespace verbatim::unit
