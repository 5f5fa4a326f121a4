// SPDX-License-Identifier: BSD-2-Clause
// Domains, and who may use the keys that are in them.
#include "runtime/verbs/software/soft_domains.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "runtime/verbs/software/key_holder.hpp"

namespace verbatim {
namespace {

TEST(DomainNumbers, AreGivenOnceAndNeverZero) {
  DomainNumbers numbers(4);
  EXPECT_EQ(numbers.take(), 1u);
  EXPECT_EQ(numbers.take(), 2u);
  EXPECT_EQ(numbers.take(), 3u);
  EXPECT_EQ(numbers.take(), 0u) << "better none than one that keys of another domain have";
  EXPECT_EQ(numbers.take(), 0u);
}

class Domains : public ::testing::Test {
 protected:
  static Context& context() {
    static Device device;
    static Context context(device);
    return context;
  }
  static Pd* make() {
    Pd* pd = nullptr;
    EXPECT_EQ(SoftDomainVerbs::alloc_pd(context(), &pd), 0);
    return pd;
  }
};

TEST_F(Domains, HaveNumbersOfTheirOwnAlsoAfterOthersHaveGone) {
  Pd* const first = make();
  const std::uint32_t number = first->plain.handle;
  EXPECT_EQ(SoftDomainVerbs::dealloc_pd(*first), 0);
  Pd* const second = make();
  EXPECT_NE(second->plain.handle, number) << "a stale key of the first would be good again";
  EXPECT_EQ(SoftDomainVerbs::dealloc_pd(*second), 0);
}

TEST_F(Domains, AreStoodForByParentDomains) {
  Pd* const pd = make();
  ibv_parent_domain_init_attr attr{};
  attr.pd = &pd->plain;
  Pd* parent = nullptr;
  ASSERT_EQ(SoftDomainVerbs::alloc_parent_domain(context(), attr, &parent), 0);
  EXPECT_EQ(parent->plain.handle, pd->plain.handle);
  EXPECT_EQ(SoftDomainVerbs::dealloc_pd(*parent), 0);
  EXPECT_EQ(SoftDomainVerbs::dealloc_pd(*pd), 0);
}

TEST_F(Domains, SayWhetherQueuesMadeInThemHaveAThread) {
  Td* td = nullptr;
  ASSERT_EQ(SoftDomainVerbs::alloc_td(context(), {}, &td), 0);
  Pd* const pd = make();
  EXPECT_EQ(thread_domain_of(nullptr), nullptr);
  EXPECT_EQ(thread_domain_of(&pd->plain), nullptr);
  pd->thread_domain = td;
  EXPECT_EQ(thread_domain_of(&pd->plain), td);
  EXPECT_EQ(SoftDomainVerbs::dealloc_pd(*pd), 0);
  EXPECT_EQ(SoftDomainVerbs::dealloc_td(*td), 0);
}

struct Counted : Ah {
  static inline int there = 0;
  Counted() { ++there; }
  ~Counted() { --there; }
};

TEST_F(Domains, HaveAddressHandlesOfTheProvidersOwnKind) {
  Pd* const pd = make();
  Ah* ah = nullptr;
  ASSERT_EQ(SoftAddressVerbs<Counted>::create_ah(*pd, {}, &ah), 0);
  EXPECT_EQ(Counted::there, 1);
  EXPECT_EQ(SoftAddressVerbs<Counted>::destroy_ah(*ah), 0);
  EXPECT_EQ(Counted::there, 0);
  EXPECT_EQ(SoftDomainVerbs::dealloc_pd(*pd), 0);
}

constexpr std::uint32_t kPd = 7, kOtherPd = 8, kQpn = 0x123456, kOtherQpn = 0x123457;

TEST(Holders, OfAPlainRegionAreItsDomain) {
  EXPECT_TRUE(holder::is_open_to(kPd, kPd, kQpn));
  EXPECT_FALSE(holder::is_open_to(kOtherPd, kPd, kQpn));
}

TEST(Holders, OfAWindowOfTypeOneAreEveryQueuePairOfItsDomain) {
  EXPECT_TRUE(holder::is_open_to(holder::kWindowOfPd | kPd, kPd, kOtherQpn));
  EXPECT_FALSE(holder::is_open_to(holder::kWindowOfPd | kOtherPd, kPd, kQpn));
  EXPECT_FALSE(holder::is_of_domain(holder::kWindowOfPd | kPd, kPd)) << "an lkey it is not";
}

TEST(Holders, OfAWindowOfTypeTwoAreOneQueuePair) {
  EXPECT_TRUE(holder::is_open_to(holder::kWindowOfQp | kQpn, kPd, kQpn));
  EXPECT_FALSE(holder::is_open_to(holder::kWindowOfQp | kQpn, kPd, kOtherQpn));
}

TEST(Holders, OfNullMemoryAreNoPeers) {
  EXPECT_FALSE(holder::is_open_to(holder::kNullMemory | kPd, kPd, kQpn));
  EXPECT_TRUE(holder::is_null_memory(holder::kNullMemory | kPd, kPd));
  EXPECT_FALSE(holder::is_null_memory(holder::kNullMemory | kOtherPd, kPd));
}

TEST(Holders, OfMemoryOnDemandAreItsDomain) {
  EXPECT_TRUE(holder::is_of_domain(holder::kOnDemand | kPd, kPd));
  EXPECT_TRUE(holder::is_open_to(holder::kOnDemand | kPd, kPd, kQpn));
  EXPECT_FALSE(holder::is_of_domain(holder::kOnDemand | kOtherPd, kPd));
}

TEST(Holders, OfOneKindAreNeverThoseOfAnother) {
  EXPECT_FALSE(holder::is_of_other_kind(holder::kMaxPd - 1));
  EXPECT_FALSE(holder::is_of_other_kind(holder::kOnDemand | (holder::kMaxPd - 1)));
  for (const std::uint32_t kind : {holder::kWindowOfPd, holder::kWindowOfQp, holder::kNullMemory})
    EXPECT_TRUE(holder::is_of_other_kind(kind | kPd)) << kind;
}

}  // namespace
}  // namespace verbatim
