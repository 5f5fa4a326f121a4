// SPDX-License-Identifier: BSD-2-Clause
//
// An object is destroyed when its last asynchronous event is acknowledged, by whichever thread, and
// not before (man ibv_get_async_event, ibv_destroy_cq, ibv_destroy_srq, ibv_destroy_qp).
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "tests/shm/cq_extended.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

/// A thread that destroys something.
class Destroyer {
 public:
  explicit Destroyer(std::function<int()> destroy)
      : thread_([this, destroy = std::move(destroy)] {
          tid_ = static_cast<pid_t>(::syscall(SYS_gettid));
          EXPECT_EQ(destroy(), 0);
          has_returned_ = true;
        }) {}
  ~Destroyer() {
    if (thread_.joinable()) thread_.join();
  }
  /// Whether it sleeps, once it does so or has returned.
  bool waits() {
    EXPECT_TRUE(wait_until([this] { return has_returned_ || is_asleep(); }));
    return !has_returned_;
  }
  void expect_end() {
    thread_.join();
    EXPECT_TRUE(has_returned_);
  }

 private:
  bool is_asleep() const {
    if (tid_ == 0) return false;
    std::ifstream stat("/proc/self/task/" + std::to_string(tid_) + "/stat");
    std::string all;
    std::getline(stat, all);
    const std::size_t name_end = all.rfind(')');
    return name_end != std::string::npos && all.compare(name_end, 3, ") S") == 0;
  }

  std::atomic<pid_t> tid_{0};
  std::atomic<bool> has_returned_{false};
  std::thread thread_;
};

ibv_async_event fetch(ibv_context* context, ibv_event_type expected) {
  ibv_async_event event{};
  EXPECT_EQ(ibv_get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, expected);
  return event;
}

void expect_to_wait_for(ibv_async_event event, const std::function<int()>& destroy) {
  Destroyer destroyer(destroy);
  ASSERT_TRUE(destroyer.waits()) << "an event is not acknowledged";
  ibv_ack_async_event(&event);
  destroyer.expect_end();
}

TEST(EventAcks, ACompletionQueueWaitsForThoseOfBothKinds) {
  const AllowedLog overran("overran");
  Endpoint end(std::make_shared<Session>());
  const ChannelHandle channel(ibv_create_comp_channel(end.context()));
  ibv_cq* const cq = ibv_create_cq(end.context(), 4, nullptr, channel.get(), 0);
  QpWish wish;
  wish.send_cq = wish.receive_cq = end.adopt_cq(cq);
  const QpInfo qp = end.create_qp(wish);
  end.connect(qp.id, qp, {});
  const RegionInfo region = end.allocate(MemoryKind::kMapped, 64, kAllAccess);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  for (int i = 0; i <= cq->cqe; ++i)
    expect_posted(end.post_send(qp.id, {write(1, slice(region, 0, 8), region, 8)}));
  ibv_cq* named = nullptr;
  void* given = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &named, &given), 0);
  ibv_async_event event = fetch(end.context(), IBV_EVENT_CQ_ERR);
  ASSERT_EQ(event.element.cq, cq);
  ASSERT_EQ(end.destroy_qp(qp.id), 0);

  Destroyer destroyer([&] { return end.destroy_cq(wish.send_cq); });
  ASSERT_TRUE(destroyer.waits());
  ibv_ack_async_event(&event);
  ASSERT_TRUE(destroyer.waits()) << "the completion event is not acknowledged";
  ibv_ack_cq_events(cq, 1);
  destroyer.expect_end();
}

TEST(EventAcks, ACompletionQueueThatOverranWaits) {
  const AllowedLog overran("overran");
  ExtendedPair scene(kHere, IBV_WC_STANDARD_FLAGS, 4);
  Endpoint& end = scene.pair.a.here();
  for (std::uint64_t i = 0; i < 5; ++i) scene.write_from_a(i);
  const ibv_async_event event = fetch(end.context(), IBV_EVENT_CQ_ERR);
  ASSERT_EQ(event.element.cq, ibv_cq_ex_to_cq(scene.sends));
  ASSERT_EQ(end.destroy_qp(scene.qa.id), 0);
  expect_to_wait_for(event, [&] { return end.destroy_cq(scene.wish.send_cq); });
}

/// A queue pair that takes from a shared receive queue what it sends itself.
struct Shared {
  Endpoint end{std::make_shared<Session>()};
  RegionInfo region = end.allocate(MemoryKind::kMapped, 256, kAllAccess);
  SrqInfo srq = end.create_srq({});
  QpInfo qp = connected();

  QpInfo connected() {
    QpWish wish;
    wish.srq = srq.id;
    const QpInfo made = end.create_qp(wish);
    end.connect(made.id, made, {});
    expect_posted(end.post_srq_receive(
        srq.id, {receive(1, slice(region, 0, 64)), receive(2, slice(region, 64, 64))}));
    return made;
  }
};

TEST(EventAcks, ASharedReceiveQueueThatRanLowWaits) {
  Shared shared;
  ibv_srq_attr limit{};
  limit.srq_limit = 2;
  ASSERT_EQ(shared.end.modify_srq(shared.srq.id, limit, IBV_SRQ_LIMIT), 0);
  expect_posted(shared.end.post_send(shared.qp.id, {send(3, slice(shared.region, 128, 8))}));
  EXPECT_EQ(shared.end.poll(shared.qp.receive_cq, 1, kDefaultWaitMs)[0].wr_id, 1u);
  const ibv_async_event event = fetch(shared.end.context(), IBV_EVENT_SRQ_LIMIT_REACHED);
  ASSERT_EQ(event.element.srq, shared.end.srq(shared.srq.id));
  ASSERT_EQ(shared.end.destroy_qp(shared.qp.id), 0);
  expect_to_wait_for(event, [&] { return shared.end.destroy_srq(shared.srq.id); });
}

TEST(EventAcks, AQueuePairThatHasTakenItsLastSharedReceiveWaits) {
  Shared shared;
  ASSERT_EQ(shared.end.to_state(shared.qp.id, IBV_QPS_ERR), 0);
  const ibv_async_event event = fetch(shared.end.context(), IBV_EVENT_QP_LAST_WQE_REACHED);
  ASSERT_EQ(event.element.qp, shared.end.qp(shared.qp.id));
  expect_to_wait_for(event, [&] { return shared.end.destroy_qp(shared.qp.id); });
}

}  // namespace
}  // namespace verbatim::harness
