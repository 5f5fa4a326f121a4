// SPDX-License-Identifier: BSD-2-Clause
// A device of a witness, opened, and short ways to make what tests need of it. Everything that is
// made is the test's to destroy; the device closes with the fixture, which fails if that fails.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstring>
#include <string>

namespace verbatim::unit {

inline ibv_context* open_by_name(const std::string& name) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ibv_context* context = nullptr;
  for (int i = 0; i < count; ++i) {
    if (name == ibv_get_device_name(list[i])) context = ibv_open_device(list[i]);
  }
  ibv_free_device_list(list);
  return context;
}

class OpenedDevice : public ::testing::Test {
 protected:
  explicit OpenedDevice(std::string name = "null0") : name_(std::move(name)) {}
  void SetUp() override {
    context = open_by_name(name_);
    ASSERT_NE(context, nullptr);
    pd = ibv_alloc_pd(context);
    ASSERT_NE(pd, nullptr);
  }
  void TearDown() override {
    if (context == nullptr) return;
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
  }

  ibv_cq* make_cq(ibv_comp_channel* channel = nullptr, void* user = nullptr) {
    ibv_cq* const cq = ibv_create_cq(context, 16, user, channel, 0);
    EXPECT_NE(cq, nullptr);
    return cq;
  }
  ibv_qp* make_qp(ibv_cq* cq, ibv_qp_type type = IBV_QPT_RC, ibv_srq* srq = nullptr) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.srq = srq;
    init.qp_type = type;
    init.cap = {8, 8, 1, 1, 0};
    ibv_qp* const qp = ibv_create_qp(pd, &init);
    EXPECT_NE(qp, nullptr);
    return qp;
  }

  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;

 private:
  std::string name_;
};

/// The same test over both witnesses: TEST_P(...) of a fixture that derives from this.
class EachWitness : public OpenedDevice, public ::testing::WithParamInterface<const char*> {
 protected:
  EachWitness() : OpenedDevice(GetParam()) {}
};

inline std::string witness_name(const ::testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace verbatim::unit
