// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/base/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace verbatim {
namespace {

TEST(Result, CarriesAValueOrAnError) {
  int there = 7;
  const Result<int*> good(&there);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good.value(), &there);
  EXPECT_TRUE(good.status().ok());

  const Result<int*> bad(Error{ENOMEM, "no memory"});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ENOMEM);
  EXPECT_STREQ(bad.error().what, "no memory");
  EXPECT_EQ(bad.status().error().code, ENOMEM);
}

TEST(Result, HoldsSmallValuesAsWell) {
  constexpr Result<int> nothing(0);
  static_assert(nothing.ok() && nothing.value() == 0);
  static_assert(std::is_trivially_copyable_v<Result<int>>);
}

TEST(Status, IsSuccessUnlessAnErrorIsGiven) {
  EXPECT_TRUE(Status().ok());
  EXPECT_TRUE(Status::from_errno(0, "slot").ok());
  const Status refused = Status::from_errno(EBUSY, "slot");
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, EBUSY);
  EXPECT_STREQ(refused.error().what, "slot");
}

}  // namespace
}  // namespace verbatim
