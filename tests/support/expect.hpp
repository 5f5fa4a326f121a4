// SPDX-License-Identifier: BSD-2-Clause
//
// What tests of every transport say again and again of completions and of memory. One thread.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/pair.hpp"

/// Runs every TEST_P of `suite` in each of `settings`.
#define RUN_OVER_SETTINGS(suite, settings)                                       \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::ValuesIn(settings),               \
                           [](const ::testing::TestParamInfo<Setting>& tested) { \
                             return ::verbatim::harness::name_of(tested.param);  \
                           })

namespace verbatim::harness {

inline constexpr std::uint64_t operator""_KiB(unsigned long long n) { return n << 10; }
inline constexpr std::uint64_t operator""_MiB(unsigned long long n) { return n << 20; }

/// Around every boundary where a transport may change its way of carrying a message.
inline constexpr std::uint64_t kSizes[] = {0,   1,    7,    8,    55,    56,    57,       64,
                                           220, 4095, 4096, 4097, 65536, 1_MiB, 1_MiB + 1};
inline constexpr std::uint64_t kLargeSize = 16_MiB;

/// A completion of this request with this outcome; the fields that an error leaves undefined are
/// not looked at.
inline void expect_wc(const ibv_wc& wc, std::uint64_t wr_id, ibv_wc_opcode opcode,
                      const QpInfo& qp) {
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status) << ", wr " << wc.wr_id;
  EXPECT_EQ(wc.wr_id, wr_id);
  EXPECT_EQ(wc.opcode, opcode);
  EXPECT_EQ(wc.qp_num, qp.qpn);
}

/// The status that is specified, or what the driver of a kernel's device says instead
/// (tests/support/quirks.hpp).
bool is_status(std::uint32_t vendor, ibv_wc_status seen, ibv_wc_status specified);

inline void expect_error(const ibv_wc& wc, std::uint64_t wr_id, ibv_wc_status status,
                         const QpInfo& qp) {
  EXPECT_TRUE(is_status(qp.vendor, wc.status, status))
      << ibv_wc_status_str(wc.status) << " instead of " << ibv_wc_status_str(status) << ", wr "
      << wc.wr_id;
  EXPECT_EQ(wc.wr_id, wr_id);
  EXPECT_EQ(wc.qp_num, qp.qpn);
}

inline void expect_receive(const ibv_wc& wc, std::uint64_t wr_id, std::uint64_t length,
                           const QpInfo& qp) {
  expect_wc(wc, wr_id, IBV_WC_RECV, qp);
  EXPECT_EQ(wc.byte_len, length);
  EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
}

inline void expect_posted(const Posted& posted) {
  ASSERT_EQ(posted.error, 0) << "request " << posted.bad << " was refused";
}

/// Every byte of the range has this value: nothing was written there.
inline void expect_untouched(Side& side, const RegionInfo& region, std::uint64_t offset,
                             std::uint64_t length, std::uint8_t byte) {
  const std::vector<std::uint8_t> found = side.peek(region, offset, length);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i], byte) << "at offset " << offset + i;
  }
}

/// The bytes of the slices, one after another.
inline std::vector<std::uint8_t> gathered(Side& side, const RegionInfo& region,
                                          const SliceList& slices) {
  std::vector<std::uint8_t> all;
  for (std::int32_t i = 0; i < slices.count; ++i) {
    const auto piece = side.peek(region, slices.at[i].offset, slices.at[i].length);
    all.insert(all.end(), piece.begin(), piece.end());
  }
  return all;
}

}  // namespace verbatim::harness
