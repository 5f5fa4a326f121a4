// SPDX-License-Identifier: BSD-2-Clause
//
// Making, resizing and arming completion queues: man ibv_create_cq_ex, ibv_resize_cq,
// ibv_modify_cq, ibv_get_cq_event.
#include <fcntl.h>

#include <atomic>
#include <thread>

#include "tests/shm/cq_extended.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

int refusal(ibv_context* context, ibv_cq_init_attr_ex attr) {
  errno = 0;
  ibv_cq_ex* const made = ibv_create_cq_ex(context, &attr);
  if (made == nullptr) return errno;
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(made)), 0);
  return 0;
}

TEST(CqCreate, BadAttributesAreRefused) {
  AllowedLog complaints("ibv_create_cq_ex");
  Session session;
  ibv_context* const context = session.context.get();
  ibv_cq_init_attr_ex attr = extended_attr(IBV_WC_STANDARD_FLAGS);
  attr.comp_vector = static_cast<std::uint32_t>(context->num_comp_vectors);
  EXPECT_EQ(refusal(context, attr), EINVAL);
  attr = extended_attr(IBV_WC_STANDARD_FLAGS);
  attr.comp_mask = 1u << 2;
  EXPECT_EQ(refusal(context, attr), EINVAL);
  EXPECT_EQ(refusal(context, extended_attr(IBV_WC_STANDARD_FLAGS, 0)), EINVAL);
  EXPECT_EQ(refusal(context, extended_attr(std::uint64_t{1} << 12)), EOPNOTSUPP);
  EXPECT_EQ(refusal(context, extended_attr(IBV_WC_STANDARD_FLAGS, 16, 1u << 2)), EOPNOTSUPP);
  // A protection domain is no parent domain.
  attr = extended_attr(IBV_WC_STANDARD_FLAGS);
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  attr.parent_domain = session.pd.get();
  EXPECT_EQ(refusal(context, attr), EINVAL);
}

TEST(CqCreate, TheClockOfTheStampsIsDescribed) {
  Session session;
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(session.context.get(), nullptr, &attr), 0);
  EXPECT_EQ(attr.completion_timestamp_mask, ~std::uint64_t{0});
  EXPECT_EQ(attr.hca_core_clock, 1'000'000u);
  ibv_values_ex values{};
  EXPECT_EQ(ibv_query_rt_values_ex(session.context.get(), &values), 0);
  EXPECT_EQ(values.comp_mask, 0u) << "nothing was asked for";
}

TEST(CqModify, GrantsAllThatTheDeviceSaysAndRefusesWhatIsUnknown) {
  Session session;
  ibv_device_attr_ex device{};
  ASSERT_EQ(ibv_query_device_ex(session.context.get(), nullptr, &device), 0);
  EXPECT_EQ(device.cq_mod_caps.max_cq_count, 0xffff);
  EXPECT_EQ(device.cq_mod_caps.max_cq_period, 0xffff);
  CqHandle cq(ibv_create_cq(session.context.get(), 16, nullptr, nullptr, 0));
  ibv_modify_cq_attr attr{IBV_CQ_ATTR_MODERATE, {0xffff, 0xffff}};
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), 0);
  attr.attr_mask = 0;
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), 0);
  AllowedLog unknown("attr_mask");
  attr.attr_mask = IBV_CQ_ATTR_RESERVED;
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), EINVAL);
}

TEST(CqOverrun, IsTheProgramsBusinessWhereItSaidSo) {
  ExtendedPair scene(kHere, IBV_WC_STANDARD_FLAGS, 4, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
  for (std::uint64_t i = 0; i < 6; ++i) scene.write_from_a(i);
  EXPECT_EQ(scene.pair.a.here().take_async_event(0).type, -1);
  ASSERT_EQ(start(scene.sends), 0);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(scene.sends->wr_id, i) << "nothing stored is overwritten";
    EXPECT_EQ(ibv_next_poll(scene.sends), i == 3 ? ENOENT : 0);
  }
  ibv_end_poll(scene.sends);
}

TEST(CqResize, AQueueThatOverranIsWholeAgainWhenItIsLargeEnough) {
  AllowedLog overran("overran");
  ExtendedPair scene(kHere, IBV_WC_STANDARD_FLAGS, 4);
  for (std::uint64_t i = 0; i < 5; ++i) scene.write_from_a(i);
  EXPECT_EQ(scene.pair.a.here().take_async_event(kDefaultWaitMs).type, IBV_EVENT_CQ_ERR);
  ASSERT_EQ(ibv_resize_cq(ibv_cq_ex_to_cq(scene.sends), 8), 0);
  EXPECT_EQ(ibv_cq_ex_to_cq(scene.sends)->cqe, 8);
  for (std::uint64_t i = 5; i < 9; ++i) scene.write_from_a(i);
  std::vector<std::uint64_t> ids;
  for (const ibv_wc& wc : scene.pair.a.poll_sends(scene.qa, 8)) ids.push_back(wc.wr_id);
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{0, 1, 2, 3, 5, 6, 7, 8}));
}

TEST(CqResize, BelowWhatWaitsIsRefusedAndLosesNothing) {
  AllowedLog reason("wait to be polled");
  ExtendedPair scene(kHere, kClockFields, 16);
  for (std::uint64_t i = 0; i < 10; ++i) scene.write_from_a(i);
  EXPECT_EQ(ibv_resize_cq(ibv_cq_ex_to_cq(scene.sends), 4), EINVAL);
  EXPECT_EQ(ibv_cq_ex_to_cq(scene.sends)->cqe, 16);
  EXPECT_EQ(scene.pair.a.poll_sends(scene.qa, 10).size(), 10u);
}

TEST(CqEvents, DestroyWaitsUntilEveryEventIsAcknowledged) {
  Endpoint end(std::make_shared<Session>());
  ChannelHandle own(ibv_create_comp_channel(end.context()));
  int cookie_of_ours = 0;
  ibv_cq_init_attr_ex attr = extended_attr(IBV_WC_STANDARD_FLAGS);
  attr.channel = own.get();
  attr.cq_context = &cookie_of_ours;
  ibv_cq* const cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(end.context(), &attr));
  QpWish wish;
  wish.send_cq = wish.receive_cq = end.adopt_cq(cq);
  const QpInfo qp = end.create_qp(wish);
  end.connect(qp.id, qp, {});
  const RegionInfo region = end.allocate(MemoryKind::kMapped, 64, kAllAccess);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    expect_posted(end.post_send(qp.id, {write(i, slice(region, 0, 8), region, 8)}));
    ibv_cq* named = nullptr;
    void* cookie = nullptr;
    ASSERT_EQ(ibv_get_cq_event(own.get(), &named, &cookie), 0);
    EXPECT_EQ(named, cq);
    EXPECT_EQ(cookie, &cookie_of_ours);
  }
  EXPECT_EQ(end.poll(wish.send_cq, 3, kDefaultWaitMs).size(), 3u);
  ASSERT_EQ(end.destroy_qp(qp.id), 0);
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    EXPECT_EQ(end.destroy_cq(wish.send_cq), 0);
    destroyed = true;
  });
  ibv_ack_cq_events(cq, 2);
  EXPECT_FALSE(wait_until([&] { return destroyed.load(); }, 50)) << "one is not acknowledged";
  ibv_ack_cq_events(cq, 1);
  destroyer.join();
}

}  // namespace
}  // namespace verbatim::harness
