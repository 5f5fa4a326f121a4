// SPDX-License-Identifier: BSD-2-Clause
//
// What the sentences about UC, UD, XRC and shared receive queues have in common.
#pragma once

#include <initializer_list>

#include "tests/support/device.hpp"
#include "tests/support/expect.hpp"

namespace verbatim::harness {

/// A test in a Setting, with the reason to skip it where the device lacks what it is about.
class BetweenTwo : public ::testing::TestWithParam<Setting> {
 protected:
  MemoryKind memory() const { return GetParam().memory; }
  const char* device() const { return GetParam().device; }
};

/// To SQD, until it says that it has drained: RTS is open to it from then on (IBTA 10.3.1.5).
inline void drain(Side& side, const QpInfo& qp) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  ASSERT_EQ(
      side.call<&Endpoint::modify_qp>(qp.id, attr, int{IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY}),
      0);
  const AsyncEvent event = side.take_async_event();
  EXPECT_EQ(event.type, IBV_EVENT_SQ_DRAINED);
  EXPECT_EQ(event.qp, qp.id);
}

/// A completion of this request, whose status is one of those that the specification allows here.
inline void expect_status(const ibv_wc& wc, std::uint64_t wr_id,
                          std::initializer_list<ibv_wc_status> allowed) {
  bool found = false;
  for (const ibv_wc_status status : allowed) found = found || wc.status == status;
  EXPECT_TRUE(found) << ibv_wc_status_str(wc.status) << ", wr " << wc.wr_id;
  EXPECT_EQ(wc.wr_id, wr_id);
}

}  // namespace verbatim::harness
