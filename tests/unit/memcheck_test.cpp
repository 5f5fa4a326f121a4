// SPDX-License-Identifier: BSD-2-Clause
// What a device stores is no uninitialised memory to valgrind's memcheck. Spec:
// <valgrind/memcheck.h>.
#include <gtest/gtest.h>
#include <valgrind/memcheck.h>

#include <algorithm>
#include <array>

#include "tests/unit/opened_device.hpp"

namespace verbatim::unit {
namespace {

constexpr std::size_t kBytes = 4096;

class Memcheck : public OpenedDevice {
 protected:
  void SetUp() override {
    if (RUNNING_ON_VALGRIND == 0) GTEST_SKIP() << "nobody watches: run it under valgrind";
    OpenedDevice::SetUp();
    (void)VALGRIND_MAKE_MEM_UNDEFINED(bytes_.data(), kBytes);
  }
  bool counts_as_written() {
    std::array<unsigned char, kBytes> undefined;
    return VALGRIND_GET_VBITS(bytes_.data(), undefined.data(), kBytes) == 1 &&
           std::all_of(undefined.begin(), undefined.end(),
                       [](unsigned char bits) { return bits == 0; });
  }
  std::array<unsigned char, kBytes> bytes_;
};

TEST_F(Memcheck, RegionsThatMayBeWrittenCountAsWritten) {
  ASSERT_FALSE(counts_as_written());
  ibv_mr* const mr = ibv_reg_mr(pd, bytes_.data(), kBytes, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_TRUE(counts_as_written());
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memcheck, RegionsThatAreOnlyReadDoNot) {
  ibv_mr* const mr = ibv_reg_mr(pd, bytes_.data(), kBytes, 0);
  ASSERT_NE(mr, nullptr);
  EXPECT_FALSE(counts_as_written());
  EXPECT_EQ(
      ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE), 0);
  EXPECT_TRUE(counts_as_written());
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

}  // namespace
}  // namespace verbatim::unit
