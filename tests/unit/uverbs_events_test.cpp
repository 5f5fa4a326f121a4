// SPDX-License-Identifier: BSD-2-Clause
// What a kernel tells of by itself: events, and that the device has gone, after which every object
// still ends. Spec: the headers <rdma/*.h>, and what providers/uverbs promises in its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "providers/uverbs/removal.hpp"
#include "runtime/verbs/event_acks.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/over_kernel.hpp"

namespace verbatim::unit {
namespace {

class KernelEvents : public EachKernel {};
INSTANTIATE_FOR_EACH_KERNEL(KernelEvents);

TEST_P(KernelEvents, EventsAboutWhatIsNotThereAreLeftOut) {
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq), 0);
  const CapturedStderr said;
  kernel.raise(0, IBV_EVENT_CQ_ERR);
  kernel.raise(0xdead'beef'0000'0001, IBV_EVENT_CQ_ERR);
  kernel.raise(cq.number, IBV_EVENT_QP_FATAL);  // of another kind
  kernel.raise(cq.number, 250);
  kernel.raise(7, IBV_EVENT_PORT_ACTIVE);  // the device has one port
  kernel.raise(cq.number, IBV_EVENT_CQ_ERR);
  kernel.raise(1, IBV_EVENT_PORT_ERR);
  ibv_async_event event{};
  ASSERT_EQ(uverbs::get_async_event(*context, event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, &cq.plain);
  acknowledge_async_event(event);
  EXPECT_EQ(said.lines(), 5);
  ASSERT_EQ(uverbs::get_async_event(*context, event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(event.element.port_num, 1);
  EXPECT_EQ(uverbs::get_async_event(*context, event), EAGAIN);
  const std::uint64_t number = cq.number;
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  kernel.raise(number, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(uverbs::get_async_event(*context, event), EAGAIN) << "destroyed";
}

TEST_P(KernelEvents, CompletionEventsNameQueuesByNumber) {
  CompChannel* channel = nullptr;
  ASSERT_EQ(uverbs::create_comp_channel(*context, &channel), 0);
  channel->plain.context = context->handle();
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq, channel), 0);
  const CapturedStderr said;
  kernel.complete(cq.number + 1);
  kernel.complete(cq.number);
  verbatim::Cq* got = nullptr;
  ASSERT_EQ(uverbs::get_cq_event(*channel, &got), 0);
  EXPECT_EQ(got, &cq);
  acknowledge_completion_events(cq, 1);
  EXPECT_EQ(said.lines(), 1);
  EXPECT_EQ(uverbs::get_cq_event(*channel, &got), EAGAIN);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::destroy_comp_channel(*channel), 0);
}

TEST_P(KernelEvents, ARecordThatIsCutIsNoEvent) {
  CompChannel* channel = nullptr;
  ASSERT_EQ(uverbs::create_comp_channel(*context, &channel), 0);
  channel->plain.context = context->handle();
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq, channel), 0);
  ibv_async_event event{};
  verbatim::Cq* got = nullptr;
  for (const std::size_t bytes : {std::size_t{1}, sizeof(ib_uverbs_async_event_desc) - 1}) {
    kernel.raise_part(bytes);
    EXPECT_EQ(uverbs::get_async_event(*context, event), EIO) << bytes;
  }
  for (const std::size_t bytes : {std::size_t{1}, sizeof(ib_uverbs_comp_event_desc) - 1}) {
    kernel.complete_part(bytes);
    EXPECT_EQ(uverbs::get_cq_event(*channel, &got), EIO) << bytes;
  }
  EXPECT_EQ(uverbs::get_async_event(*context, event), EAGAIN);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::destroy_comp_channel(*channel), 0);
}

// How many there were is counted here: what a kernel says of it is no reason to wait.
TEST_P(KernelEvents, OnlyEventsThatWereDeliveredAreWaitedFor) {
  kernel.events_reported = 1000;
  CompChannel* channel = nullptr;
  ASSERT_EQ(uverbs::create_comp_channel(*context, &channel), 0);
  channel->plain.context = context->handle();
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq, channel), 0);
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  uverbs::Qp qp;
  ASSERT_EQ(make_qp(qp, *pd, cq), 0);
  EXPECT_EQ(uverbs::destroy_qp(qp), 0) << "returns";

  ASSERT_EQ(make_qp(qp, *pd, cq), 0);
  kernel.events_reported = 0;
  kernel.raise(qp.number, IBV_EVENT_COMM_EST);
  ibv_async_event event{};
  ASSERT_EQ(uverbs::get_async_event(*context, event), 0);
  std::atomic<bool> acknowledged{false};
  std::thread application([&] {
    // The other one is already waiting, or will see that there is nothing left to wait for.
    acknowledged = true;
    acknowledge_async_event(event);
  });
  EXPECT_EQ(uverbs::destroy_qp(qp), 0);
  EXPECT_TRUE(acknowledged) << "it was in the application's hands";
  application.join();

  kernel.complete(cq.number);
  verbatim::Cq* got = nullptr;
  ASSERT_EQ(uverbs::get_cq_event(*channel, &got), 0);
  acknowledge_completion_events(cq, 1);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::destroy_comp_channel(*channel), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

// What the kernel answers everybody once a device has left: the objects are gone with it.
TEST_P(KernelEvents, AfterTheDeviceHasGoneEverythingEndsWell) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  CompChannel* channel = nullptr;
  ASSERT_EQ(uverbs::create_comp_channel(*context, &channel), 0);
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq, channel), 0);
  uverbs::Qp qp;
  ASSERT_EQ(make_qp(qp, *pd, cq), 0);
  kernel.raise(0, IBV_EVENT_DEVICE_FATAL);
  kernel.refusal = EIO;
  const CapturedStderr said;
  ibv_async_event event{};
  ASSERT_EQ(uverbs::get_async_event(*context, event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
  acknowledge_async_event(event);
  uverbs::Cq another;
  EXPECT_EQ(make_cq(another), EIO);
  ibv_port_attr port{};
  EXPECT_EQ(uverbs::query_port(*context, 1, port), EIO);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(uverbs::modify_qp(qp, attr, IBV_QP_STATE), 0) << "where it is anyhow";
  EXPECT_EQ(uverbs::destroy_qp(qp), 0);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::destroy_comp_channel(*channel), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

// Whoever sleeps in them wakes: the kernel lets what is there be read, and then ends the file.
TEST_P(KernelEvents, AfterTheDeviceHasGoneNobodyWaitsForEvents) {
  CompChannel* channel = nullptr;
  ASSERT_EQ(uverbs::create_comp_channel(*context, &channel), 0);
  channel->plain.context = context->handle();
  kernel.raise(0, IBV_EVENT_DEVICE_FATAL);
  kernel.refusal = EIO;
  kernel.end_events();
  verbatim::Cq* got = nullptr;
  EXPECT_EQ(context->command_channel.presence(), uverbs::Presence::kHere);
  EXPECT_EQ(uverbs::get_cq_event(*channel, &got), EIO);
  EXPECT_EQ(context->command_channel.presence(), uverbs::Presence::kDoubted)
      << "the next poll asks";
  ibv_async_event event{};
  ASSERT_EQ(uverbs::get_async_event(*context, event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(uverbs::get_async_event(*context, event), EIO) << "told once";
  EXPECT_EQ(uverbs::destroy_comp_channel(*channel), 0);
}

// Neither an event nor an errno is proof: a device that answers is there.
TEST_P(KernelEvents, ADeviceHasGoneWhenItHasNothingToSayOfItself) {
  const CapturedStderr said;
  EXPECT_FALSE(uverbs::has_gone(*context));
  kernel.raise(0, IBV_EVENT_DEVICE_FATAL);
  ibv_async_event event{};
  ASSERT_EQ(uverbs::get_async_event(*context, event), 0);
  EXPECT_FALSE(uverbs::has_gone(*context));
  EXPECT_EQ(context->command_channel.presence(), uverbs::Presence::kHere);
  kernel.refusal = ENOMEM;
  context->command_channel.doubt();
  EXPECT_FALSE(uverbs::has_gone(*context));
  EXPECT_EQ(context->command_channel.presence(), uverbs::Presence::kDoubted) << "to be asked again";
  kernel.refusal = EIO;
  EXPECT_TRUE(uverbs::has_gone(*context));
  EXPECT_EQ(said.lines(), 1);
  kernel.refusal = 0;
  EXPECT_TRUE(uverbs::has_gone(*context)) << "for good";
  EXPECT_EQ(said.lines(), 1);
}

TEST_P(KernelEvents, WhatARemovedDeviceHadIsGone) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq), 0);
  kernel.refusal = EIO;
  uverbs::Cq more;
  EXPECT_EQ(make_cq(more), EIO);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

}  // namespace
}  // namespace verbatim::unit
