// SPDX-License-Identifier: BSD-2-Clause
//
// Destroying in every wrong order (man pages of the destroy verbs: "fails if ... still
// associated"): EBUSY, the object lives on, and goes when its users have gone. A device may be
// closed before its objects: close_test.cpp.
#include <cerrno>
#include <thread>

#include "tests/support/device.hpp"

namespace verbatim::harness {
namespace {

class Destroy : public OnDevice {
 protected:
  void SetUp() override { expect_complaints(); }
  alignas(4096) static inline char memory_[8192];
};
RUN_ON_EVERY_DEVICE(Destroy);

TEST_P(Destroy, ADomainOutlivesItsRegions) {
  PdHandle domain(ibv_alloc_pd(context()));
  ibv_mr* const region = ibv_reg_mr(domain.get(), memory_, 100, 0);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

TEST_P(Destroy, ADomainOutlivesItsQueuePairs) {
  PdHandle domain(ibv_alloc_pd(context()));
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = cq();
  init.cap = {1, 1, 1, 1, 0};
  ibv_qp* const made = ibv_create_qp(domain.get(), &init);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  EXPECT_EQ(lead(made, IBV_QPS_RTS), 0) << "the refusal harmed it";
  EXPECT_EQ(ibv_destroy_qp(made), 0);
}

TEST_P(Destroy, ADomainOutlivesItsSharedReceiveQueues) {
  SKIP_IF(lacks_srq(GetParam()));
  PdHandle domain(ibv_alloc_pd(context()));
  ibv_srq_init_attr init{};
  init.attr = {4, 1, 0};
  ibv_srq* const made = ibv_create_srq(domain.get(), &init);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  EXPECT_EQ(ibv_destroy_srq(made), 0);
}

TEST_P(Destroy, ADomainOutlivesItsWindows) {
  PdHandle domain(ibv_alloc_pd(context()));
  ibv_mw* const window = ibv_alloc_mw(domain.get(), IBV_MW_TYPE_1);
  if (window == nullptr) SKIP_IF(unless_unsupported("memory windows of type 1", errno));
  EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
}

TEST_P(Destroy, ADomainOutlivesItsParentDomains) {
  PdHandle domain(ibv_alloc_pd(context()));
  ibv_parent_domain_init_attr init{};
  init.pd = domain.get();
  ibv_pd* const parent = ibv_alloc_parent_domain(context(), &init);
  if (parent == nullptr) SKIP_IF(unless_unsupported("parent domains", errno));
  EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

TEST_P(Destroy, AThreadDomainOutlivesItsParentDomains) {
  ibv_td_init_attr none{};
  ibv_td* const thread = ibv_alloc_td(context(), &none);
  if (thread == nullptr) SKIP_IF(unless_unsupported("thread domains", errno));
  ibv_parent_domain_init_attr init{};
  init.pd = pd();
  init.td = thread;
  ibv_pd* const parent = ibv_alloc_parent_domain(context(), &init);
  ASSERT_NE(parent, nullptr) << std::strerror(errno);
  EXPECT_EQ(ibv_dealloc_td(thread), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(thread), 0);
}

TEST_P(Destroy, ACompletionQueueOutlivesTheSendersAndReceiversOfIt) {
  ibv_cq* const sends = cq();
  ibv_cq* const receives = cq();
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = sends;
  init.recv_cq = receives;
  init.cap = {1, 1, 1, 1, 0};
  const QpHandle made(ibv_create_qp(pd(), &init));
  EXPECT_EQ(ibv_destroy_cq(sends), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(receives), EBUSY);
  EXPECT_EQ(lead(made.get(), IBV_QPS_ERR), 0);
  ASSERT_EQ(post_receive(made.get(), 3, nullptr, 0, 0), 0);
  EXPECT_EQ(poll(receives, 1)[0].wr_id, 3u) << "the refusal harmed it";
}

TEST_P(Destroy, AChannelOutlivesItsQueues) {
  ibv_comp_channel* const with = channel();
  ASSERT_NE(cq(4, with), nullptr);
  EXPECT_EQ(ibv_destroy_comp_channel(with), EBUSY);
}

TEST_P(Destroy, AnXrcDomainOutlivesItsQueuePairs) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  ASSERT_NE(qp(IBV_QPT_XRC_RECV, nullptr), nullptr);
  EXPECT_EQ(ibv_close_xrcd(xrcd()), EBUSY);
}

TEST_P(Destroy, DeviceMemoryOutlivesItsRegions) {
  ibv_alloc_dm_attr init{};
  init.length = 4096;
  ibv_dm* const memory = ibv_alloc_dm(context(), &init);
  if (memory == nullptr) SKIP_IF(unless_unsupported("device memory", errno));
  ibv_mr* const region = ibv_reg_dm_mr(pd(), memory, 0, 4096, IBV_ACCESS_ZERO_BASED);
  ASSERT_NE(region, nullptr) << std::strerror(errno);
  EXPECT_EQ(ibv_free_dm(memory), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_free_dm(memory), 0);
}

TEST_P(Destroy, ARegionOutlivesTheWindowsBoundToIt) {
  // man ibv_dereg_mr: "fails if any memory window is still bound to this MR".
  ibv_mw* const window = ibv_alloc_mw(pd(), IBV_MW_TYPE_1);
  if (window == nullptr) SKIP_IF(unless_unsupported("memory windows of type 1", errno));
  ibv_cq* const both = cq();
  const auto [a, b] = connected(IBV_QPT_RC, both);
  ibv_mr* const region =
      ibv_reg_mr(pd(), memory_, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ibv_mw_bind bind{};
  bind.wr_id = 5;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {region, reinterpret_cast<std::uintptr_t>(memory_), 64, IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_bind_mw(a, window, &bind), 0);
  EXPECT_EQ(poll(both, 1)[0].opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(ibv_dereg_mr(region), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

TEST_P(Destroy, OrderDoesNotMatterBetweenTheTwoEndsOfAConnection) {
  ibv_cq* const both = cq();
  for (const bool first : {false, true}) {
    const auto [a, b] = connected(IBV_QPT_RC, both);
    EXPECT_EQ(destroy(first ? a : b), 0);
    EXPECT_EQ(destroy(first ? b : a), 0);
  }
}

TEST_P(Destroy, QueuePairsWithWorkInThemGoWithoutACompletion) {
  ibv_cq* const both = cq();
  const auto [a, b] = connected(IBV_QPT_RC, both);
  for (std::uint64_t i = 0; i < 8; ++i) {
    ASSERT_EQ(post_receive(b, i, nullptr, 0, 0), 0);
  }
  EXPECT_EQ(destroy(b), 0);
  EXPECT_EQ(destroy(a), 0);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(both, 1, &wc), 0);
}

TEST_P(Destroy, ManyObjectsAreMadeAndDestroyedByManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const PdHandle domain(ibv_alloc_pd(context()));
        const MrHandle region(ibv_reg_mr(domain.get(), memory_, sizeof memory_, 0));
        const ChannelHandle told(ibv_create_comp_channel(context()));
        const CqHandle queue(ibv_create_cq(context(), 8, nullptr, told.get(), 0));
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.send_cq = init.recv_cq = queue.get();
        init.cap = {1, 1, 1, 1, 0};
        const QpHandle made(ibv_create_qp(domain.get(), &init));
        EXPECT_NE(made, nullptr);
        EXPECT_NE(region, nullptr);
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST_P(Destroy, AParentDomainOutlivesWhatWasMadeInIt) {
  // man ibv_alloc_parent_domain: it is given back by ibv_dealloc_pd, and used as a PD is.
  ibv_parent_domain_init_attr init{};
  init.pd = pd();
  PdHandle parent(ibv_alloc_parent_domain(context(), &init));
  if (!parent) SKIP_IF(unless_unsupported("parent domains", errno));
  const auto outlives = [&](const char* what, const auto& make) {
    SCOPED_TRACE(what);
    const auto made = make();
    if (made == nullptr) {
      unless_unsupported(what, errno);
      return;
    }
    EXPECT_EQ(ibv_dealloc_pd(parent.get()), EBUSY);
  };
  outlives("region", [&] { return MrHandle(ibv_reg_mr(parent.get(), memory_, 100, 0)); });
  outlives("window", [&] { return MwHandle(ibv_alloc_mw(parent.get(), IBV_MW_TYPE_1)); });
  outlives("window of type 2", [&] { return MwHandle(ibv_alloc_mw(parent.get(), IBV_MW_TYPE_2)); });
  outlives("address handle", [&] {
    ibv_ah_attr path = path_to_self(session());
    return AhHandle(ibv_create_ah(parent.get(), &path));
  });
  outlives("shared receive queue", [&] {
    ibv_srq_init_attr wish{};
    wish.attr = {4, 1, 0};
    return SrqHandle(ibv_create_srq(parent.get(), &wish));
  });
  outlives("queue pair", [&] {
    ibv_qp_init_attr wish{};
    wish.qp_type = IBV_QPT_RC;
    wish.send_cq = wish.recv_cq = cq();
    wish.cap = {1, 1, 1, 1, 0};
    return QpHandle(ibv_create_qp(parent.get(), &wish));
  });
  outlives("completion queue of a domain", [&] {
    ibv_cq_init_attr_ex wish{};
    wish.cqe = 4;
    wish.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    wish.parent_domain = parent.get();
    ibv_cq_ex* const made = ibv_create_cq_ex(context(), &wish);
    return CqHandle(made == nullptr ? nullptr : ibv_cq_ex_to_cq(made));
  });
  EXPECT_EQ(ibv_dealloc_pd(parent.release()), 0);
}

TEST_P(Destroy, ADomainOutlivesItsWindowsOfTypeTwo) {
  PdHandle domain(ibv_alloc_pd(context()));
  ibv_mw* const window = ibv_alloc_mw(domain.get(), IBV_MW_TYPE_2);
  if (window == nullptr) SKIP_IF(unless_unsupported("memory windows of type 2", errno));
  EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
  EXPECT_EQ(ibv_dealloc_pd(domain.release()), 0);
}

TEST_P(Destroy, ARegionOutlivesTheWindowsOfTypeTwoBoundToIt) {
  // man ibv_dereg_mr. The window goes by its own verb, or is closed by a request first.
  ibv_cq* const both = cq();
  const auto [a, b] = connected(IBV_QPT_RC, both);
  const auto request = [&, by = a](ibv_send_wr wr) {
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(by, &wr, &bad), 0);
    EXPECT_EQ(poll(both, 1)[0].status, IBV_WC_SUCCESS);
  };
  for (const bool closed_first : {false, true}) {
    SCOPED_TRACE(closed_first);
    ibv_mw* const window = ibv_alloc_mw(pd(), IBV_MW_TYPE_2);
    if (window == nullptr) SKIP_IF(unless_unsupported("memory windows of type 2", errno));
    ibv_mr* const region =
        ibv_reg_mr(pd(), memory_, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    const std::uint32_t key = ibv_inc_rkey(window->rkey);
    ibv_send_wr bind{};
    bind.opcode = IBV_WR_BIND_MW;
    bind.bind_mw.mw = window;
    bind.bind_mw.rkey = key;
    bind.bind_mw.bind_info = {region, reinterpret_cast<std::uintptr_t>(memory_), 64,
                              IBV_ACCESS_REMOTE_WRITE};
    request(bind);
    EXPECT_EQ(ibv_dereg_mr(region), EBUSY);
    if (closed_first) {
      ibv_send_wr invalidate{};
      invalidate.opcode = IBV_WR_LOCAL_INV;
      invalidate.invalidate_rkey = key;
      request(invalidate);
      EXPECT_EQ(ibv_dereg_mr(region), 0);
      EXPECT_EQ(ibv_dealloc_mw(window), 0);
    } else {
      EXPECT_EQ(ibv_dealloc_mw(window), 0);
      EXPECT_EQ(ibv_dereg_mr(region), 0);
    }
  }
}

}  // namespace
}  // namespace verbatim::harness
