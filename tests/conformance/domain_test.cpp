// SPDX-License-Identifier: BSD-2-Clause
//
// Protection domains, thread domains, parent domains (IBTA 10.2.3; man ibv_alloc_pd, ibv_alloc_td,
// ibv_alloc_parent_domain).
#include <cerrno>
#include <cstring>

#include "tests/support/device.hpp"
#include "tests/support/scale.hpp"

namespace verbatim::harness {
namespace {

class Domain : public OnDevice {
 protected:
  std::string open() {
    ibv_td_init_attr none{};
    thread_ = ibv_alloc_td(context(), &none);
    if (thread_ == nullptr) return unless_unsupported("thread domains", errno);
    ibv_parent_domain_init_attr init{};
    init.pd = pd();
    init.td = thread_;
    parent_ = ibv_alloc_parent_domain(context(), &init);
    return parent_ != nullptr ? std::string() : unless_unsupported("parent domains", errno);
  }
  void TearDown() override {
    if (parent_ != nullptr) {
      EXPECT_EQ(ibv_dealloc_pd(parent_), 0);
    }
    if (thread_ != nullptr) {
      EXPECT_EQ(ibv_dealloc_td(thread_), 0);
    }
  }
  ibv_td* thread_ = nullptr;
  ibv_pd* parent_ = nullptr;
};
RUN_ON_EVERY_DEVICE(Domain);

TEST_P(Domain, OfProtectionBelongsToItsContext) {
  const PdHandle made(ibv_alloc_pd(context()));
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->context, context());
}

TEST_P(Domain, OfAThreadBelongsToItsContext) {
  SKIP_IF(open());
  EXPECT_EQ(thread_->context, context());
  EXPECT_EQ(parent_->context, context());
}

TEST_P(Domain, OfAThreadTakesNoUnknownWishes) {
  SKIP_IF(open());
  ibv_td_init_attr unknown{};
  unknown.comp_mask = 1u << 30;
  expect_complaints();
  EXPECT_EQ(ibv_alloc_td(context(), &unknown), nullptr);
}

TEST_P(Domain, OfAParentNeedsAProtectionDomain) {
  SKIP_IF(open());
  ibv_parent_domain_init_attr init{};
  init.td = thread_;
  expect_complaints();
  EXPECT_EQ(ibv_alloc_parent_domain(context(), &init), nullptr);
  init.pd = pd();
  init.comp_mask = 1u << 30;
  EXPECT_EQ(ibv_alloc_parent_domain(context(), &init), nullptr);
}

TEST_P(Domain, OfAParentProtectsAsItsProtectionDomainDoes) {
  // man ibv_alloc_parent_domain: "can be used everywhere a PD can".
  SKIP_IF(open());
  alignas(64) char bytes[256] = {};
  const MrHandle of_parent(ibv_reg_mr(parent_, bytes, sizeof bytes, kAllAccess));
  ASSERT_NE(of_parent, nullptr) << std::strerror(errno);
  const MrHandle of_child(ibv_reg_mr(pd(), bytes, sizeof bytes, kAllAccess));
  ibv_cq* const both = cq();
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = both;
  init.cap = {8, 8, 1, 1, 0};
  const QpHandle one(ibv_create_qp(parent_, &init));
  ASSERT_NE(one, nullptr) << std::strerror(errno);
  ASSERT_EQ(lead(one.get(), IBV_QPS_RTS), 0);
  ASSERT_EQ(post_receive(one.get(), 1, bytes + 128, 64, of_child->lkey), 0);
  bytes[5] = 7;
  ASSERT_EQ(post_send(one.get(), 2, bytes, 64, of_parent->lkey), 0);
  for (const ibv_wc& wc : poll(both, 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(bytes[133], 7);
}

TEST_P(Domain, OfAThreadServesManyMessagesOfThatThread) {
  SKIP_IF(open());
  ibv_cq_init_attr_ex wish{};
  wish.cqe = 64;
  wish.wc_flags = IBV_WC_STANDARD_FLAGS;
  wish.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  wish.parent_domain = parent_;
  ibv_cq_ex* const extended = ibv_create_cq_ex(context(), &wish);
  if (extended == nullptr) SKIP_IF(unless_unsupported("completion queues of a domain", errno));
  const CqHandle both(ibv_cq_ex_to_cq(extended));
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = both.get();
  init.cap = {8, 8, 1, 1, 16};
  const QpHandle one(ibv_create_qp(parent_, &init));
  ASSERT_NE(one, nullptr) << std::strerror(errno);
  ASSERT_EQ(lead(one.get(), IBV_QPS_RTS), 0);
  alignas(64) char bytes[256] = {};
  const MrHandle memory(ibv_reg_mr(parent_, bytes, sizeof bytes, kAllAccess));
  const auto rounds = scaled_rounds<std::uint64_t>(500, 100);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    ASSERT_EQ(post_receive(one.get(), i, bytes + 128, 64, memory->lkey), 0);
    ASSERT_EQ(post_send(one.get(), i, bytes, static_cast<std::uint32_t>(i % 64), memory->lkey), 0);
    for (const ibv_wc& wc : poll(both.get(), 2)) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, i);
    }
  }
}

TEST_P(Domain, OfAThreadServesDatagramsByAnAddressOfItsProtectionDomain) {
  SKIP_IF(open());
  SKIP_IF(lacks_type(context(), IBV_QPT_UD));
  ibv_cq* const both = cq();
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_UD;
  init.send_cq = init.recv_cq = both;
  init.cap = {8, 8, 1, 1, 16};
  const QpHandle one(ibv_create_qp(parent_, &init));
  ASSERT_NE(one, nullptr) << std::strerror(errno);
  ASSERT_EQ(lead(one.get(), IBV_QPS_RTS), 0);
  alignas(64) char bytes[256] = {};
  const MrHandle memory(ibv_reg_mr(parent_, bytes, sizeof bytes, kAllAccess));
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(bytes), 64, memory->lkey};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud = {ah_to_self(), one->qp_num, kQkey};
  for (std::uint64_t i = 0; i < 50; ++i) {
    sge.length = static_cast<std::uint32_t>(i);
    ASSERT_EQ(post_receive(one.get(), i, bytes + 64, 128, memory->lkey), 0);
    ibv_send_wr* bad = nullptr;
    wr.wr_id = i;
    ASSERT_EQ(ibv_post_send(one.get(), &wr, &bad), 0);
    for (const ibv_wc& wc : poll(both, 2)) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, i);
    }
  }
}

}  // namespace
}  // namespace verbatim::harness
