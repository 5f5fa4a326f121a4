// SPDX-License-Identifier: BSD-2-Clause
//
// Closing a device of which objects are left (man ibv_close_device: it "does not release all the
// resources"; the kernel takes back what a closed file had, drivers/infiniband/core/rdma_core.c).
// What was left has ended: nobody reaches it, and the process keeps no descriptor of it.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "tests/support/device.hpp"
#include "tests/support/process_census.hpp"

namespace verbatim::harness {
namespace {

alignas(4096) char memory[8192];

/// A device opened once more, with one of each kind of object that it has, and a connection.
/// Destroyed after the device, whatever is left: verbs that destroy answer 0 then, as always.
class Everything : public DeviceObjects {
 public:
  explicit Everything(const char* device) : DeviceObjects(device) {
    told = channel();
    both = cq(64, told);
    region = mr(memory, sizeof memory, kAllAccess | IBV_ACCESS_MW_BIND);
    std::tie(first, second) = connected(IBV_QPT_RC, both);
    (void)ah_to_self();
    if (attr().max_srq != 0) (void)qp(IBV_QPT_RC, both, srq());
    letters_ = qp(IBV_QPT_UD, both);
    EXPECT_EQ(lead(letters_, IBV_QPS_RTS), 0);
    ibv_gid group{};
    group.raw[0] = 0xff;
    group.raw[1] = 0x12;
    group.raw[15] = 0x77;
    EXPECT_EQ(ibv_attach_mcast(letters_, &group, 0xc177), 0);
    add_rarer();
  }
  ~Everything() {
    EXPECT_TRUE(counter_ == nullptr || ibv_destroy_comp_cntr(counter_) == 0);
    EXPECT_TRUE(window_ == nullptr || ibv_dealloc_mw(window_) == 0);
    EXPECT_TRUE(of_memory_ == nullptr || ibv_dereg_mr(of_memory_) == 0);
    EXPECT_TRUE(device_memory_ == nullptr || ibv_free_dm(device_memory_) == 0);
    EXPECT_TRUE(parent_ == nullptr || ibv_dealloc_pd(parent_) == 0);
    EXPECT_TRUE(thread_ == nullptr || ibv_dealloc_td(thread_) == 0);
  }

  int close() { return ibv_close_device(session().context.release()); }

  ibv_comp_channel* told = nullptr;
  ibv_cq* both = nullptr;
  ibv_mr* region = nullptr;
  ibv_qp* first = nullptr;
  ibv_qp* second = nullptr;

 private:
  /// Kinds that not every device has.
  void add_rarer() {
    ibv_comp_cntr_init_attr requests{};
    counter_ = ibv_create_comp_cntr(context(), &requests);
    if (counter_ != nullptr) {
      ibv_qp_attach_comp_cntr_attr sends{0, IBV_QP_ATTACH_COMP_CNTR_OP_SEND};
      EXPECT_EQ(ibv_qp_attach_comp_cntr(qp(IBV_QPT_RC, both), counter_, &sends), 0);
    }
    window_ = ibv_alloc_mw(pd(), IBV_MW_TYPE_1);
    if (window_ != nullptr) bind(window_);
    ibv_alloc_dm_attr wish{};
    wish.length = 4096;
    device_memory_ = ibv_alloc_dm(context(), &wish);
    if (device_memory_ != nullptr)
      of_memory_ = ibv_reg_dm_mr(pd(), device_memory_, 0, 4096, IBV_ACCESS_ZERO_BASED);
    ibv_td_init_attr none{};
    thread_ = ibv_alloc_td(context(), &none);
    ibv_parent_domain_init_attr init{};
    init.pd = pd();
    init.td = thread_;
    parent_ = ibv_alloc_parent_domain(context(), &init);
    if (lacks_type(context(), IBV_QPT_XRC_RECV).empty()) {
      (void)qp(IBV_QPT_XRC_RECV, nullptr);
      (void)qp(IBV_QPT_XRC_SEND, both);
    }
  }
  void bind(ibv_mw* window) {
    ibv_mw_bind wish{};
    wish.send_flags = IBV_SEND_SIGNALED;
    wish.bind_info = {region, reinterpret_cast<std::uintptr_t>(memory), 64, IBV_ACCESS_REMOTE_READ};
    EXPECT_EQ(ibv_bind_mw(first, window, &wish), 0);
    EXPECT_EQ(poll(both, 1)[0].status, IBV_WC_SUCCESS);
  }

  ibv_qp* letters_ = nullptr;
  ibv_comp_cntr* counter_ = nullptr;
  ibv_mw* window_ = nullptr;
  ibv_dm* device_memory_ = nullptr;
  ibv_mr* of_memory_ = nullptr;
  ibv_td* thread_ = nullptr;
  ibv_pd* parent_ = nullptr;
};

class Close : public OnDevice {
 protected:
  void SetUp() override { expect_complaints(); }
};
RUN_ON_EVERY_DEVICE(Close);

TEST_P(Close, EndsADeviceOfWhichObjectsOfEveryKindAreLeft) {
  { Everything(GetParam()).close(); }  // what the C library keeps, it keeps from here on
  const ProcessCensus before = ProcessCensus::take();
  Everything left(GetParam());
  EXPECT_EQ(left.close(), 0);
  const ProcessCensus after = ProcessCensus::take();
  EXPECT_EQ(after.descriptors, before.descriptors) << left_behind(before, after);
  EXPECT_EQ(after.threads, before.threads) << left_behind(before, after);
}

TEST_P(Close, EndsADeviceOfWhichHundredsOfQueuePairsAreLeft) {
  DeviceObjects left(GetParam());
  ibv_cq* const both = left.cq(256);
  for (int i = 0; i < 100; ++i) {
    const auto [a, b] = left.connected(IBV_QPT_RC, both);
    ASSERT_EQ(left.post_receive(b, 1, nullptr, 0, 0), 0);
  }
  EXPECT_EQ(ibv_close_device(left.session().context.release()), 0);
}

TEST_P(Close, APeerSeesTheQueuePairsThatWereLeftGoAndReachesNothing) {
  // IBTA 9.9.2.1.1, 11.6.2: nobody answers any more.
  auto left = std::make_unique<DeviceObjects>(GetParam());
  alignas(64) static char target[64];
  std::fill(std::begin(target), std::end(target), 'x');
  ibv_mr* const theirs = left->mr(target, sizeof target, kAllAccess);
  ibv_qp* const there = left->qp(IBV_QPT_RC, left->cq());
  ibv_cq* const completions = cq();
  ibv_qp* const here = qp(IBV_QPT_RC, completions);
  ASSERT_EQ(left->lead(there, IBV_QPS_RTS, here), 0);
  ASSERT_EQ(lead(here, IBV_QPS_RTR, there), 0);
  ibv_qp_attr patience{};
  const int mask = attributes_for(IBV_QPT_RC, IBV_QPS_RTS, session(), there->qp_num, patience);
  patience.timeout = 10;
  patience.retry_cnt = 1;  // rxe takes 7 for no end of them
  ASSERT_EQ(ibv_modify_qp(here, &patience, mask), 0);
  ibv_mr* const ours = mr(memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory), 8, ours->lkey};
  ibv_send_wr write{};
  write.sg_list = &sge;
  write.num_sge = 1;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.send_flags = IBV_SEND_SIGNALED;
  write.wr.rdma = {reinterpret_cast<std::uintptr_t>(target) + 8, theirs->rkey};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(here, &write, &bad), 0);
  EXPECT_EQ(poll(completions, 1)[0].status, IBV_WC_SUCCESS);
  EXPECT_NE(target[8], 'x');

  EXPECT_EQ(ibv_close_device(left->session().context.release()), 0);
  write.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(target);
  ASSERT_EQ(ibv_post_send(here, &write, &bad), 0);
  EXPECT_EQ(poll(completions, 1)[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(target[0], 'x');
}

TEST_P(Close, LeavesTheOtherContextsOfTheDeviceAlone) {
  ibv_cq* const both = cq();
  const auto [a, b] = connected(IBV_QPT_RC, both);
  ibv_mr* const region = mr(memory, 64, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(post_receive(b, 1, memory + 32, 32, region->lkey), 0);
  Everything left(GetParam());
  EXPECT_EQ(left.close(), 0);
  ASSERT_EQ(post_send(a, 2, memory, 32, region->lkey), 0);
  for (const ibv_wc& wc : poll(both, 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

TEST_P(Close, DoesNotWaitForEventsThatNobodyAcknowledged) {
  // man ibv_destroy_cq: destroying waits for them. The kernel's file is closed without.
  Everything left(GetParam());
  ASSERT_EQ(ibv_req_notify_cq(left.both, 0), 0);
  ASSERT_EQ(left.to_state(left.first, IBV_QPS_ERR), 0);
  ASSERT_EQ(left.post_receive(left.first, 1, nullptr, 0, 0), 0);
  ibv_cq* named = nullptr;
  void* cookie = nullptr;
  ASSERT_EQ(ibv_get_cq_event(left.told, &named, &cookie), 0);
  EXPECT_EQ(left.close(), 0);
}

TEST_P(Close, MayBeFollowedByTheVerbsThatDestroyWhatWasLeftAndNoOthersWork) {
  // What this library promises beyond the man page, since programs do it.
  DeviceObjects left(GetParam());
  ibv_cq* const both = left.cq();
  ibv_qp* const queue = left.qp(IBV_QPT_RC, both);
  EXPECT_EQ(ibv_close_device(left.session().context.release()), 0);
  ibv_wc wc;
  EXPECT_LT(ibv_poll_cq(both, 1, &wc), 0);
  EXPECT_EQ(left.post_receive(queue, 1, nullptr, 0, 0), EINVAL);
  EXPECT_EQ(left.to_state(queue, IBV_QPS_ERR), EINVAL);
  EXPECT_EQ(ibv_reg_mr(left.pd(), memory, sizeof memory, 0), nullptr);
  EXPECT_EQ(left.destroy(queue), 0);
}

}  // namespace
}  // namespace verbatim::harness
