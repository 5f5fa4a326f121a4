// SPDX-License-Identifier: BSD-2-Clause
// What siw's create calls believe of the driver's answers, and what becomes of the sizes.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit_siw/fake_siw.hpp"

namespace verbatim::siw_test {
namespace {

TEST(SiwCreate, SizesAreWhatTheRingsHold) {
  FakeSiw fake;
  ASSERT_EQ(fake.make_cq(), 0);
  EXPECT_EQ(fake.cq->plain.cqe, 8);
  ASSERT_EQ(fake.make_qp(), 0);
  EXPECT_EQ(fake.qp_attr.cap.max_send_wr, 8u);
  EXPECT_EQ(fake.qp_attr.cap.max_recv_wr, 4u);
  EXPECT_EQ(fake.qp_attr.cap.max_inline_data, 80u);
  ASSERT_EQ(fake.make_srq(), 0);
  EXPECT_EQ(fake.srq->attributes.max_wr, 4u);
}

TEST(SiwCreate, ADescriptionThatCannotBeIsRefusedAndUndone) {
  FakeSiw fake;
  const std::size_t before = fake.system.inner.living();
  constexpr std::uint64_t kPlace = FakeSiw::kCompletions;
  EXPECT_EQ(fake.make_cq({9, 7, kPlace}), EPROTO) << "no power of two";
  EXPECT_EQ(fake.make_cq({9, 0, kPlace}), EPROTO);
  EXPECT_EQ(fake.make_cq({9, 4, kPlace}), EPROTO) << "less than was asked for";
  EXPECT_EQ(fake.make_cq({9, 1u << 31, kPlace}), EPROTO);
  EXPECT_EQ(fake.make_cq({9, 8, kPlace + 1}), EPROTO) << "no page begins there";
  EXPECT_EQ(fake.make_cq({9, 8, UINT64_MAX - 4095}), EPROTO);
  EXPECT_EQ(fake.system.inner.living(), before);
  ASSERT_EQ(fake.make_cq(), 0);
  const std::size_t with_cq = fake.system.inner.living();
  EXPECT_EQ(fake.make_qp({0x12, 8, 4, 0, 0, 4096}), EPROTO) << "not the number that it has";
  EXPECT_EQ(fake.make_qp({0x11, 4, 4, 0, 0, 4096}), EPROTO);
  EXPECT_EQ(fake.make_qp({0x11, 8, 2, 0, 0, 4096}), EPROTO);
  EXPECT_EQ(fake.make_qp({0x11, 8, 4, 0, 0, 77}), EPROTO);
  EXPECT_EQ(fake.make_srq({2, 0, 0}), EPROTO);
  EXPECT_EQ(fake.make_srq({3, 0, 0}), EPROTO);
  EXPECT_EQ(fake.system.inner.living(), with_cq);
}

TEST(SiwCreate, QueuePairsAreConnections) {
  FakeSiw fake;
  ASSERT_EQ(fake.make_cq(), 0);
  fake.qp_attr.qp_type = IBV_QPT_UD;
  verbatim::Qp* made = nullptr;
  EXPECT_EQ(verbs_provider_siw.create_qp(fake.context, fake.qp_attr, &made), EOPNOTSUPP);
  EXPECT_EQ(fake.make_qp({0x11, 8, 4, 0, 0, 4096}, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD),
            EOPNOTSUPP);
  EXPECT_EQ(fake.make_qp({0x11, 8, 4, 0, 0, 4096}, IBV_QP_EX_WITH_SEND_WITH_IMM), EOPNOTSUPP);
}

class SiwRegion : public ::testing::Test {
 protected:
  /// The fake's regions have the key 0x1234.
  int make(std::uint32_t regions_before, std::uint32_t stag, std::uint64_t shift = 0) {
    fake_.context.regions_made = regions_before;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&stag);
    fake_.system.inner.set_driver_reply({bytes, bytes + sizeof stag});
    const auto place = reinterpret_cast<std::uintptr_t>(memory_) + shift;
    mr_ = nullptr;
    return verbs_provider_siw.reg_mr(*fake_.pd, memory_, sizeof memory_, place, 0, &mr_);
  }
  char memory_[64];
  FakeSiw fake_;
  verbatim::Mr* mr_ = nullptr;
};

TEST_F(SiwRegion, ItsKeyEndsInAByteOfOurs) {
  ASSERT_EQ(make(0x134, 0x1234), 0);
  ASSERT_EQ(fake_.system.regions.size(), 1u);
  EXPECT_EQ(fake_.system.regions[0].stag_key, 0x34u) << "the next of 256";
  EXPECT_EQ(fake_.context.regions_made, 0x135u);
  EXPECT_EQ(mr_->plain.lkey, 0x1234u);
  mr_->plain.context = fake_.context.handle();
  EXPECT_EQ(verbs_provider_siw.dereg_mr(*mr_), 0);
}

TEST_F(SiwRegion, TwoKeysThatDifferAreRefusedAndUndone) {
  const std::size_t before = fake_.system.inner.living();
  EXPECT_EQ(make(0x34, 0x1334), EPROTO);
  EXPECT_EQ(make(0x35, 0x1234), EPROTO) << "not our byte";
  EXPECT_EQ(fake_.system.inner.living(), before);
}

TEST_F(SiwRegion, HasNoOtherAddressThanItsOwn) {
  EXPECT_EQ(make(0x34, 0x1234, 8), EOPNOTSUPP);
  EXPECT_TRUE(fake_.system.regions.empty());
}

}  // namespace
}  // namespace verbatim::siw_test
