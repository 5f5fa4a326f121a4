// SPDX-License-Identifier: BSD-2-Clause
//
// A context over the fake kernel, and the calls that the runtime would make: for tests of what
// providers/uverbs does with a kernel that is newer, older, or wrong. One thread.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "providers/uverbs/completion.hpp"
#include "providers/uverbs/context.hpp"
#include "providers/uverbs/memory.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "tests/support/fake_uverbs.hpp"

namespace verbatim::unit {

using fake::Age;
using fake::Lie;

class OverKernel {
 public:
  explicit OverKernel(Age age) : kernel(age) {
    std::strcpy(device.plain.name, "rxe0");
    std::strcpy(device.plain.dev_name, "uverbs0");
    context = std::make_unique<uverbs::Context>(device, 14u, kernel);
    context->port_count = 1;
  }

  int make_pd(Pd** pd) {
    const int error = uverbs::alloc_pd(*context, pd);
    if (error == 0) (*pd)->plain.context = context->handle();
    return error;
  }
  int make_cq(uverbs::Cq& cq, CompChannel* channel = nullptr) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 10;
    return uverbs::create_cq(*context, attr, channel, cq, {});
  }
  int make_qp(uverbs::Qp& qp, Pd& pd, uverbs::Cq& cq, const kernel::DriverData& driver = {}) {
    ibv_qp_init_attr_ex attr{};
    attr.pd = &pd.plain;
    attr.send_cq = attr.recv_cq = &cq.plain;
    attr.qp_type = IBV_QPT_RC;
    attr.sq_sig_all = 1;
    attr.cap = {8, 8, 1, 1, 0};
    return uverbs::create_qp(*context, attr, qp, driver);
  }

  Device device;
  fake::Uverbs kernel;
  std::unique_ptr<uverbs::Context> context;
};

inline std::string age_name(const ::testing::TestParamInfo<Age>& info) {
  constexpr const char* kNames[] = {"Methods", "InvokeWrite", "Write"};
  return kNames[static_cast<int>(info.param)];
}

/// Each of them in turn: INSTANTIATE_FOR_EACH_KERNEL.
class EachKernel : public ::testing::TestWithParam<Age>, public OverKernel {
 protected:
  EachKernel() : OverKernel(GetParam()) {}
  void SetUp() override { ASSERT_EQ(uverbs::start_context(*context), 0); }
};

#define INSTANTIATE_FOR_EACH_KERNEL(suite) \
  INSTANTIATE_TEST_SUITE_P(                \
      Kernel, suite, ::testing::Values(Age::kMethods, Age::kInvokeWrite, Age::kWrite), age_name)

}  // namespace verbatim::unit
