// SPDX-License-Identifier: BSD-2-Clause
//
// Protection domains, thread domains, parent domains (IBTA 10.2.3; man ibv_alloc_pd, ibv_alloc_td,
// ibv_alloc_parent_domain).
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

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

/// A program's allocators (man ibv_alloc_parent_domain), which keep books.
struct Allocators {
  enum class Answer { kOwn, kDefault, kNone };
  Answer answer = Answer::kOwn;
  /// Requests before the answer is kNone; -1: never.
  int until_none = -1;
  ibv_pd* domain = nullptr;
  std::map<void*, std::uint64_t> held;  ///< what for
  std::map<std::uint64_t, int> asked;
  int wrong = 0;  ///< calls with words that no honest library says

  static void* alloc(ibv_pd* pd, void* context, std::size_t size, std::size_t alignment,
                     std::uint64_t type) {
    auto& self = *static_cast<Allocators*>(context);
    if (pd != self.domain || size == 0 || (alignment & (alignment - 1)) != 0) ++self.wrong;
    ++self.asked[type];
    if (self.answer == Answer::kNone || self.until_none == 0) return nullptr;
    if (self.until_none > 0) --self.until_none;
    if (self.answer == Answer::kDefault) return IBV_ALLOCATOR_USE_DEFAULT;
    if (alignment < sizeof(void*)) alignment = sizeof(void*);
    void* memory = nullptr;
    if (posix_memalign(&memory, alignment, size) != 0) return nullptr;
    std::memset(memory, 0xA5, size);  // as memory that was used before
    self.held[memory] = type;
    return memory;
  }
  static void release(ibv_pd* pd, void* context, void* memory, std::uint64_t type) {
    auto& self = *static_cast<Allocators*>(context);
    const auto found = self.held.find(memory);
    if (pd != self.domain || found == self.held.end() || found->second != type) {
      ++self.wrong;
      return;
    }
    self.held.erase(found);
    std::free(memory);
  }
  int requests() const {
    int sum = 0;
    for (const auto& [type, count] : asked) sum += count;
    return sum;
  }
};

class DomainMemory : public OnDevice {
 protected:
  std::string open() {
    ibv_parent_domain_init_attr init{};
    init.pd = pd();
    init.comp_mask =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    init.alloc = Allocators::alloc;
    init.free = Allocators::release;
    init.pd_context = &program;
    program.domain = ibv_alloc_parent_domain(context(), &init);
    if (program.domain == nullptr) return unless_unsupported("parent domains", errno);
    return {};
  }
  void TearDown() override {
    if (program.domain == nullptr) return;
    EXPECT_EQ(ibv_dealloc_pd(program.domain), 0);
    EXPECT_TRUE(program.held.empty()) << program.held.size() << " pieces were not given back";
    EXPECT_EQ(program.wrong, 0);
  }
  CqHandle make_cq(std::uint64_t fields = 0) {
    ibv_cq_init_attr_ex wish{};
    wish.cqe = 16;
    wish.wc_flags = IBV_WC_STANDARD_FLAGS | fields;
    wish.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    wish.parent_domain = program.domain;
    ibv_cq_ex* const made = ibv_create_cq_ex(context(), &wish);
    return CqHandle(made == nullptr ? nullptr : ibv_cq_ex_to_cq(made));
  }
  QpHandle make_qp(ibv_qp_type type, ibv_cq* both, ibv_srq* srq = nullptr) {
    ibv_qp_init_attr init{};
    init.qp_type = type;
    init.srq = srq;
    init.send_cq = init.recv_cq = both;
    init.cap = {8, srq == nullptr ? 8u : 0u, 2, srq == nullptr ? 2u : 0u, 16};
    return QpHandle(ibv_create_qp(program.domain, &init));
  }
  SrqHandle make_srq() {
    ibv_srq_init_attr init{};
    init.attr = {8, 1, 0};
    return SrqHandle(ibv_create_srq(program.domain, &init));
  }
  Allocators program;
};
RUN_ON_EVERY_DEVICE(DomainMemory);

TEST_P(DomainMemory, OfAProgramServesItsQueuesAndComesBackWithThem) {
  SKIP_IF(open());
  const CqHandle both = make_cq();
  ASSERT_NE(both, nullptr) << std::strerror(errno);
  const SrqHandle shared = make_srq();
  ASSERT_NE(shared, nullptr) << std::strerror(errno);
  alignas(64) char bytes[256] = {};
  const MrHandle memory(ibv_reg_mr(program.domain, bytes, sizeof bytes, kAllAccess));
  for (const bool shares : {false, true}) {
    const QpHandle one = make_qp(IBV_QPT_RC, both.get(), shares ? shared.get() : nullptr);
    ASSERT_NE(one, nullptr) << std::strerror(errno);
    ASSERT_EQ(lead(one.get(), IBV_QPS_RTS), 0);
    for (std::uint64_t i = 0; i < 40; ++i) {
      ibv_sge sge{reinterpret_cast<std::uintptr_t>(bytes + 128), 64, memory->lkey};
      ibv_recv_wr receive{i, nullptr, &sge, 1};
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(shares ? ibv_post_srq_recv(shared.get(), &receive, &bad)
                       : ibv_post_recv(one.get(), &receive, &bad),
                0);
      bytes[5] = static_cast<char>(i);
      ASSERT_EQ(post_send(one.get(), i, bytes, 64, memory->lkey), 0);
      for (const ibv_wc& wc : poll(both.get(), 2)) {
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.wr_id, i);
      }
      EXPECT_EQ(bytes[133], static_cast<char>(i));
    }
  }
  EXPECT_GT(program.requests(), 0) << "a device that takes allocators uses them";
  for (const auto& [piece, type] : program.held) EXPECT_NE(piece, IBV_ALLOCATOR_USE_DEFAULT);
}

TEST_P(DomainMemory, IsAskedForAndGivenBackWhenQueuesGrowAndShrink) {
  SKIP_IF(open());
  const CqHandle both = make_cq();
  ASSERT_NE(both, nullptr) << std::strerror(errno);
  for (const int entries : {200, 3, 64}) EXPECT_EQ(ibv_resize_cq(both.get(), entries), 0);
  const SrqHandle shared = make_srq();
  ASSERT_NE(shared, nullptr) << std::strerror(errno);
  char byte = 0;
  const MrHandle memory(ibv_reg_mr(program.domain, &byte, 1, kAllAccess));
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(&byte), 1, memory->lkey};
  ibv_recv_wr receive{1, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  for (const std::uint32_t receives : {100u, 2u, 50u, 400u}) {
    ibv_srq_attr wish{};
    wish.max_wr = receives;
    const int error = ibv_modify_srq(shared.get(), &wish, IBV_SRQ_MAX_WR);
    if (error != 0) SKIP_IF(unless_unsupported("shared queues that grow", error));
    if (receives > 50) continue;  // one grows with nothing in it, one with two
    EXPECT_EQ(ibv_post_srq_recv(shared.get(), &receive, &bad), 0);
  }
}

TEST_P(DomainMemory, IsTheLibrarysWhereTheProgramSaysSo) {
  SKIP_IF(open());
  program.answer = Allocators::Answer::kDefault;
  const CqHandle both = make_cq();
  const SrqHandle shared = make_srq();
  const QpHandle one = make_qp(IBV_QPT_RC, both.get());
  ASSERT_TRUE(both && shared && one) << std::strerror(errno);
  ASSERT_EQ(lead(one.get(), IBV_QPS_RTS), 0);
  alignas(64) char bytes[256] = {};
  const MrHandle memory(ibv_reg_mr(program.domain, bytes, sizeof bytes, kAllAccess));
  ASSERT_EQ(post_receive(one.get(), 1, bytes + 128, 64, memory->lkey), 0);
  ASSERT_EQ(post_send(one.get(), 2, bytes, 64, memory->lkey), 0);
  for (const ibv_wc& wc : poll(both.get(), 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_GT(program.requests(), 0);
  // That memory is not for the program's `free`, which TearDown has keep books.
}

TEST_P(DomainMemory, ThatIsOutEndsACreationWithENOMEM) {
  SKIP_IF(open());
  expect_complaints();
  // One request more is granted each time, until all are.
  const auto grant_more_each_time = [&](auto create) {
    for (int granted = 0;; ++granted) {
      SCOPED_TRACE(granted);
      ASSERT_LT(granted, 100);
      program.until_none = granted;
      errno = 0;
      const auto made = create();
      if (made) break;
      EXPECT_EQ(errno, ENOMEM);
      EXPECT_TRUE(program.held.empty()) << "something was left of it";
    }
    program.until_none = -1;
  };
  grant_more_each_time([&] { return make_cq(); });
  grant_more_each_time([&] { return make_srq(); });
  const CqHandle both(ibv_create_cq(context(), 16, nullptr, nullptr, 0));
  grant_more_each_time([&] { return make_qp(IBV_QPT_RC, both.get()); });
  if (lacks_type(context(), IBV_QPT_UD).empty())
    grant_more_each_time([&] { return make_qp(IBV_QPT_UD, both.get()); });
}

// man ibv_close_device: what is left is not released; here it is, before the domain's word is gone.
TEST_P(DomainMemory, ComesBackFromADeviceThatIsClosedBeforeItsQueues) {
  SKIP_IF(open());
  ibv_context* const other = ibv_open_device(context()->device);
  ASSERT_NE(other, nullptr);
  Allocators books;
  ibv_parent_domain_init_attr init{};
  init.pd = ibv_alloc_pd(other);
  init.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  init.alloc = Allocators::alloc;
  init.free = Allocators::release;
  init.pd_context = &books;
  books.domain = ibv_alloc_parent_domain(other, &init);
  ASSERT_NE(books.domain, nullptr);
  ibv_cq_init_attr_ex wish{};
  wish.cqe = 16;
  wish.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  wish.parent_domain = books.domain;
  ibv_cq_ex* const cq = ibv_create_cq_ex(other, &wish);
  ASSERT_NE(cq, nullptr);
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.send_cq = wanted.recv_cq = ibv_cq_ex_to_cq(cq);
  wanted.cap = {8, 8, 2, 2, 16};
  ASSERT_NE(ibv_create_qp(books.domain, &wanted), nullptr);
  EXPECT_FALSE(books.held.empty());
  ASSERT_EQ(ibv_close_device(other), 0);
  EXPECT_TRUE(books.held.empty());
  EXPECT_EQ(books.wrong, 0);
}

TEST_P(DomainMemory, NeedsBothOfTheAllocators) {
  SKIP_IF(open());
  expect_complaints();
  ibv_parent_domain_init_attr half{};
  half.pd = pd();
  half.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  half.alloc = Allocators::alloc;
  EXPECT_EQ(ibv_alloc_parent_domain(context(), &half), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace verbatim::harness
