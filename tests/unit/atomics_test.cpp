// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/software/atomics.hpp"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(Atomics, AddAndSayWhatTheyFound) {
  std::uint64_t word = ~std::uint64_t{0};
  EXPECT_EQ(perform_atomic(&word, false, 3, 77), ~std::uint64_t{0});
  EXPECT_EQ(word, 2u) << "beyond the largest it goes on with 0";
}

TEST(Atomics, SwapOnlyWhatEqualsAndSayWhatTheyFound) {
  std::uint64_t word = 5;
  EXPECT_EQ(perform_atomic(&word, true, 4, 9), 5u);
  EXPECT_EQ(word, 5u);
  EXPECT_EQ(perform_atomic(&word, true, 5, 9), 5u);
  EXPECT_EQ(word, 9u);
}

}  // namespace
}  // namespace verbatim
