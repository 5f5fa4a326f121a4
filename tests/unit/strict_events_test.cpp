// SPDX-License-Identifier: BSD-2-Clause
// VERBATIM_STRICT=1, of events that nobody acknowledges: when a destroy begins to wait, and of a
// program that destroys nothing.
#include <gmock/gmock.h>

#include "tests/unit/strict_device.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

class StrictEvents : public Strict {};

TEST_F(StrictEvents, WarnsOfCompletionEventsThatAreNotAcknowledged) {
  ibv_cq* const cq = make_cq();
  fetch(cq, 2);
  EXPECT_THAT(said_until_acknowledged([&] { return ibv_destroy_cq(cq); },
                                      [&] { ibv_ack_cq_events(cq, 2); }),
              HasSubstr("ibv_destroy_cq waits for 2 completion events"));
}

TEST_F(StrictEvents, WarnsOfAsynchronousEventsThatAreNotAcknowledged) {
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
TEST_F(StrictEvents, WarnsOnceOfAnObjectWhoseEventsAreManyAndNotAcknowledged) {
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

TEST_F(StrictEvents, IsSilentAboutAnyNumberOfEventsThatAreAcknowledgedByTheHundred) {
  const CapturedStderr captured;
  for (int i = 0; i < 20; ++i) {
    fetch(cq_, 500);
    ibv_ack_cq_events(cq_, 500);
  }
  ibv_async_event event{};
  event.event_type = IBV_EVENT_PORT_ACTIVE;  // nothing waits for these
  event.element.port_num = 1;
  fetch(event, 2000);
  EXPECT_EQ(ibv_destroy_qp(qp_), 0);
  EXPECT_EQ(ibv_destroy_cq(cq_), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(ibv_close_device(context), 0);
  context = nullptr;
  EXPECT_EQ(captured.text().find("strict"), std::string::npos) << captured.text();
}

/// More acknowledgments than events of one object hide nothing of another's.
TEST_F(StrictEvents, WarnsOfAContextThatIsClosedWhileEventsAreNotAcknowledgedAndObjectsAreLeft) {
  ibv_cq* const generous = make_cq();
  fetch(generous, 1);
  ibv_ack_cq_events(generous, 7);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_COMM_EST;
  event.element.qp = qp_;
  fetch(cq_, 3);
  fetch(event, 1);
  const CapturedStderr captured;
  EXPECT_EQ(ibv_close_device(context), 0);
  EXPECT_THAT(captured.text(), HasSubstr("ibv_close_device: 3 completion events (ibv_ack_cq_events)"
                                         " and 1 asynchronous events"));
  EXPECT_THAT(captured.text(), HasSubstr("ibv_close_device: of lax0 was left: QP (1), CQ (2), "
                                         "PD (1); destroy those first"));
  EXPECT_EQ(captured.lines(), 2);
  context = nullptr;
}

TEST_F(StrictEvents, AnObjectThatADeviceCannotEndNowKeepsItOpen) {
  stays = true;
  {
    const CapturedStderr captured;
    EXPECT_EQ(ibv_close_device(context), EBUSY);
  }
  stays = false;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(ibv_modify_qp(qp_, &attr, IBV_QP_STATE), 0) << "it is as it was";
  const CapturedStderr captured;
  EXPECT_EQ(ibv_close_device(context), 0);
  context = nullptr;
}

}  // namespace
}  // namespace verbatim::unit
