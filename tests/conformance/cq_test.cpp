// SPDX-License-Identifier: BSD-2-Clause
//
// Completion queues: making, polling, resizing, overrunning (IBTA 10.8, 11.2.6, 11.4.2.1; man
// ibv_create_cq, ibv_poll_cq, ibv_resize_cq, ibv_modify_cq).
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "tests/support/device.hpp"

namespace verbatim::harness {
namespace {

class Cq : public OnDevice {
 protected:
  /// Puts entries into a CQ: a queue pair in the error state flushes what it is given.
  ibv_qp* flusher(ibv_cq* into) {
    ibv_qp* const made = qp(IBV_QPT_RC, into);
    EXPECT_EQ(lead(made, IBV_QPS_ERR), 0);
    return made;
  }
  void put(ibv_qp* by, std::uint64_t first, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(post_receive(by, first + static_cast<std::uint64_t>(i), nullptr, 0, 0), 0);
    }
  }
  void expect_ids(ibv_cq* in, std::uint64_t first, int count) {
    const auto wcs = poll(in, static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(wcs[static_cast<std::size_t>(i)].wr_id, first + static_cast<std::uint64_t>(i));
    }
  }
  int refused_depth(int depth) {
    expect_complaints();
    errno = 0;
    ibv_cq* const made = ibv_create_cq(context(), depth, nullptr, nullptr, 0);
    const int error = errno;
    EXPECT_EQ(made, nullptr);
    if (made != nullptr) ibv_destroy_cq(made);
    return error;
  }
};
RUN_ON_EVERY_DEVICE(Cq);

TEST_P(Cq, HoldsAtLeastWhatWasAskedFor) {
  for (const int depth : {1, 2, 3, 100, 4096}) {
    ibv_cq* const made = cq(depth);
    ASSERT_NE(made, nullptr) << depth;
    EXPECT_GE(made->cqe, depth);
    EXPECT_EQ(made->context, context());
  }
}

TEST_P(Cq, OfNoEntriesIsRefused) {
  EXPECT_EQ(refused_depth(0), EINVAL);
  EXPECT_EQ(refused_depth(-1), EINVAL);
}

TEST_P(Cq, OfMoreThanTheDeviceHasIsRefused) {
  if (attr().max_cqe == INT_MAX) GTEST_SKIP() << "the device has no limit";
  expect_complaints();
  const int error = refused_depth(attr().max_cqe + 1);
  EXPECT_TRUE(error == EINVAL || error == ENOMEM) << error;
}

TEST_P(Cq, OfAllThatTheDeviceHasIsMade) {
  const CqHandle most(ibv_create_cq(context(), attr().max_cqe, nullptr, nullptr, 0));
  ASSERT_NE(most, nullptr) << std::strerror(errno);
  EXPECT_GE(most->cqe, attr().max_cqe);
}

TEST_P(Cq, OfAVectorThatTheDeviceLacksIsRefused) {
  expect_complaints();
  EXPECT_EQ(ibv_create_cq(context(), 4, nullptr, nullptr, context()->num_comp_vectors), nullptr);
  EXPECT_EQ(ibv_create_cq(context(), 4, nullptr, nullptr, -1), nullptr);
}

TEST_P(Cq, OfEachVectorOfTheDeviceIsMade) {
  ASSERT_GE(context()->num_comp_vectors, 1);
  for (int vector = 0; vector < std::min(context()->num_comp_vectors, 64); ++vector) {
    const CqHandle made(ibv_create_cq(context(), 4, nullptr, nullptr, vector));
    EXPECT_NE(made, nullptr) << vector;
  }
}

TEST_P(Cq, KeepsTheProgramsOwnPointerAndItsChannel) {
  int mine = 0;
  ibv_comp_channel* const with = channel();
  ibv_cq* const made = cq(4, with, &mine);
  EXPECT_EQ(made->cq_context, &mine);
  EXPECT_EQ(made->channel, with);
}

TEST_P(Cq, WithTheChannelOfAnotherContextIsRefused) {
  const Session other(GetParam());
  const ChannelHandle theirs(ibv_create_comp_channel(other.context.get()));
  expect_complaints();
  EXPECT_EQ(ibv_create_cq(context(), 4, nullptr, theirs.get(), 0), nullptr);
}

TEST_P(Cq, ThatIsEmptyPollsNothing) {
  ibv_wc wc{};
  wc.wr_id = 77;
  EXPECT_EQ(ibv_poll_cq(cq(), 1, &wc), 0);
  EXPECT_EQ(wc.wr_id, 77u) << "nothing was to be written";
}

TEST_P(Cq, PolledForNothingGivesNothing) {
  ibv_cq* const made = cq();
  ibv_qp* const by = flusher(made);
  put(by, 1, 1);
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(made, 0, &wc), 0);
  expect_ids(made, 1, 1);
}

TEST_P(Cq, GivesItsEntriesInTheirOrderInPortionsOfAnySize) {
  ibv_cq* const made = cq(64);
  ibv_qp* const by = flusher(made);
  put(by, 0, 16);
  std::uint64_t next = 0;
  for (const int portion : {1, 2, 3, 7, 3}) {
    ibv_wc wcs[8];
    // A device may flush while it is polled already.
    int found = 0;
    ASSERT_TRUE(wait_until([&] {
      const int more = ibv_poll_cq(made, portion - found, wcs + found);
      if (more > 0) found += more;
      return more < 0 || found == portion;
    })) << found;
    for (int i = 0; i < portion; ++i) EXPECT_EQ(wcs[i].wr_id, next++);
  }
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(made, 1, &wc), 0);
}

TEST_P(Cq, WrapsAroundManyTimes) {
  ibv_cq* const made = cq(5);
  ibv_qp* const by = flusher(made);
  for (std::uint64_t round = 0; round < 200; ++round) {
    put(by, round * 5, 5);
    expect_ids(made, round * 5, 5);
  }
}

TEST_P(Cq, IsSharedByTheQueuesOfManyQueuePairs) {
  ibv_cq* const made = cq(256);
  std::vector<ibv_qp*> by;
  for (int i = 0; i < 8; ++i) by.push_back(flusher(made));
  for (std::uint64_t i = 0; i < 8; ++i) put(by[i], i * 10, 4);
  const auto wcs = poll(made, 32);
  for (const ibv_wc& wc : wcs) EXPECT_EQ(wc.qp_num, by[wc.wr_id / 10]->qp_num);
}

TEST_P(Cq, ResizedKeepsWhatItHolds) {
  ibv_cq* const made = cq(16);
  ibv_qp* const by = flusher(made);
  put(by, 0, 10);
  const int larger = ibv_resize_cq(made, 200);
  SKIP_IF(unless_unsupported("ibv_resize_cq", larger));
  EXPECT_GE(made->cqe, 200);
  put(by, 10, 6);
  expect_ids(made, 0, 12);
  ASSERT_EQ(ibv_resize_cq(made, 8), 0);
  EXPECT_GE(made->cqe, 8);
  expect_ids(made, 12, 4);
  put(by, 100, 8);
  expect_ids(made, 100, 8);
}

TEST_P(Cq, ResizedAfterWrappingKeepsItsOrder) {
  ibv_cq* const made = cq(7);
  ibv_qp* const by = flusher(made);
  SKIP_IF(unless_unsupported("ibv_resize_cq", ibv_resize_cq(made, 7)));
  std::uint64_t next = 0;
  for (const int depth : {9, 33, 7, 64, 12, 7}) {
    put(by, next, 7);
    expect_ids(made, next, 3);
    ASSERT_EQ(ibv_resize_cq(made, depth), 0);
    expect_ids(made, next + 3, 4);
    next += 7;
  }
}

TEST_P(Cq, IsNotResizedToLessThanItHolds) {
  ibv_comp_channel* const told = channel();
  ibv_cq* const made = cq(64, told);
  ibv_qp* const by = flusher(made);
  for (std::uint64_t i = 0; i < 16; ++i) {
    // A device may flush later, but what it tells of is there.
    ASSERT_EQ(ibv_req_notify_cq(made, 0), 0);
    put(by, i, 1);
    ibv_cq* named = nullptr;
    void* cookie = nullptr;
    pollfd event{told->fd, POLLIN, 0};
    ASSERT_EQ(::poll(&event, 1, kDefaultWaitMs), 1) << i;
    ASSERT_EQ(ibv_get_cq_event(told, &named, &cookie), 0);
    ibv_ack_cq_events(made, 1);
  }
  SKIP_IF(unless_unsupported("ibv_resize_cq", ibv_resize_cq(made, 64)));
  expect_complaints();
  // IBTA 11.2.8.4: also where more would be granted than was asked for. None is lost.
  for (const int fewer : {2, 9, 15}) EXPECT_EQ(ibv_resize_cq(made, fewer), EINVAL) << fewer;
  EXPECT_GE(made->cqe, 64);
  EXPECT_EQ(ibv_resize_cq(made, 16), 0) << "which is just enough";
  expect_ids(made, 0, 16);
}

TEST_P(Cq, IsNotResizedToNothingNorToMoreThanTheDeviceHas) {
  ibv_cq* const made = cq(8);
  SKIP_IF(unless_unsupported("ibv_resize_cq", ibv_resize_cq(made, 8)));
  expect_complaints();
  EXPECT_EQ(ibv_resize_cq(made, 0), EINVAL);
  if (attr().max_cqe != INT_MAX) {
    EXPECT_NE(ibv_resize_cq(made, attr().max_cqe + 1), 0);
  }
  EXPECT_GE(made->cqe, 8);
}

TEST_P(Cq, ThatOverrunsTellsBySayingSoInAnEvent) {
  // IBTA 10.8.2, 11.6.3.1: the event names the queue; what it holds stays.
  expect_complaints();
  ibv_cq* const made = cq(2);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = made;
  init.cap = {static_cast<std::uint32_t>(made->cqe + 8), 1, 1, 1, 0};
  const QpHandle by(ibv_create_qp(pd(), &init));
  ASSERT_NE(by, nullptr);
  ASSERT_EQ(lead(by.get(), IBV_QPS_ERR), 0);
  for (int i = 0; i < made->cqe + 4; ++i) {
    ASSERT_EQ(post_send(by.get(), static_cast<std::uint64_t>(i), nullptr, 0, 0), 0);
  }
  std::vector<ibv_wc> first(static_cast<std::size_t>(made->cqe));
  const int found = ibv_poll_cq(made, made->cqe, first.data());
  for (int i = 0; i < found; ++i) {
    EXPECT_EQ(first[static_cast<std::size_t>(i)].wr_id, static_cast<std::uint64_t>(i));
  }
  pollfd wait{context()->async_fd, POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, kDefaultWaitMs), 1);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, made);
  ibv_ack_async_event(&event);
}

TEST_P(Cq, IsModeratedAsFarAsTheDeviceCan) {
  // man ibv_modify_cq: at most what ibv_query_device_ex says.
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(context(), nullptr, &extended), 0);
  ibv_modify_cq_attr change{};
  change.attr_mask = IBV_CQ_ATTR_MODERATE;
  change.moderate.cq_count = extended.cq_mod_caps.max_cq_count;
  change.moderate.cq_period = extended.cq_mod_caps.max_cq_period;
  ibv_cq* const made = cq();
  SKIP_IF(unless_unsupported("ibv_modify_cq", ibv_modify_cq(made, &change)));
  change.attr_mask = 1u << 30;
  expect_complaints();
  EXPECT_EQ(ibv_modify_cq(made, &change), EINVAL);
}

TEST_P(Cq, ForgetsTheEntriesOfAQueuePairThatIsReset) {
  // IBTA 10.3.1.1 leaves it open whether they can still be polled: all of them, or none.
  ibv_cq* const made = cq();
  ibv_qp* const by = flusher(made);
  put(by, 1, 3);
  ASSERT_EQ(to_state(by, IBV_QPS_RESET), 0);
  ibv_wc wcs[4];
  const int found = ibv_poll_cq(made, 4, wcs);
  EXPECT_TRUE(found == 0 || found == 3) << found;
}

}  // namespace
}  // namespace verbatim::harness
