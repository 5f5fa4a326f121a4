// SPDX-License-Identifier: BSD-2-Clause
// Programs call through the tables of a context, a queue pair and a completion queue without a
// look: no slot may be empty, whatever the provider lacks. Tried with shm and with the two
// witnesses, of which null brings next to nothing.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/verbs/provider_registry.hpp"
#include "tests/support/fake_kernel_provider.hpp"
#include "tests/support/null_provider.hpp"

extern "C" const verbatim::ProviderTable verbs_provider_shm;

namespace verbatim {

std::span<const ProviderTable* const> provider_table() noexcept {
  static const ProviderTable* const tables[] = {&verbs_provider_shm, &null::kProvider,
                                                &fake::kProvider};
  return tables;
}

namespace {

/// A fabric folder of this process's own, before the first device list.
class PrivateFabric : public ::testing::Environment {
 public:
  void SetUp() override {
    char name[] = "/tmp/vbt-abi-XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(name));
    folder_ = name;
    setenv("VERBATIM_FABRIC", name, 1);
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

 private:
  std::string folder_;
};
[[maybe_unused]] const auto* const kFabric = ::testing::AddGlobalTestEnvironment(new PrivateFabric);

/// Offsets, from the start of `object`, of the words in [begin, end) that are null.
std::vector<size_t> empty_words(const void* object, size_t begin, size_t end) {
  std::vector<size_t> found;
  for (size_t at = begin; at < end; at += sizeof(void*)) {
    const void* word;
    std::memcpy(&word, static_cast<const char*>(object) + at, sizeof(word));
    if (word == nullptr) found.push_back(at);
  }
  return found;
}

using Offsets = std::vector<size_t>;

class FilledSlots : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    ASSERT_NE(nullptr, list);
    for (int i = 0; i < count && context_ == nullptr; ++i) {
      if (std::string(ibv_get_device_name(list[i])).starts_with(GetParam()))
        context_ = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    ASSERT_NE(nullptr, context_) << "no device of " << GetParam();
  }
  void TearDown() override {
    if (context_ == nullptr) return;
    EXPECT_EQ(0, ibv_close_device(context_));
  }

  ibv_context* context_ = nullptr;
};

TEST_P(FilledSlots, OfTheOldTable) {
  EXPECT_EQ(Offsets{}, empty_words(&context_->ops, 0, sizeof(context_->ops)));
}

TEST_P(FilledSlots, OfEveryLaterVerb) {
  const verbs_context* const extended = verbs_get_ctx(context_);
  ASSERT_NE(nullptr, extended);
  EXPECT_EQ(sizeof(verbs_context), extended->sz);
  EXPECT_EQ(Offsets{}, empty_words(extended, 0, offsetof(verbs_context, priv)));
  EXPECT_EQ(Offsets{}, empty_words(extended, offsetof(verbs_context, query_device_ex),
                                   offsetof(verbs_context, _ABI_placeholder3)));
}

TEST_P(FilledSlots, ProgramsOf2013FindFlowSteeringBesideItsPlace) {
  const verbs_context* const extended = verbs_get_ctx(context_);
  ASSERT_NE(nullptr, extended);
  EXPECT_EQ(0, std::memcmp(&extended->ABI_placeholder1, &extended->ibv_create_flow, sizeof(void*)));
  EXPECT_EQ(0,
            std::memcmp(&extended->ABI_placeholder2, &extended->ibv_destroy_flow, sizeof(void*)));
}

TEST_P(FilledSlots, OfAnExtendedCompletionQueue) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_EX_WITH_BYTE_LEN;  // little is asked for, all is there to call
  ibv_cq_ex* const cq = ibv_create_cq_ex(context_, &attr);
  if (cq == nullptr) {
    EXPECT_EQ(EOPNOTSUPP, errno);
    GTEST_SKIP() << GetParam() << " has no extended completion queues";
  }
  EXPECT_EQ(Offsets{}, empty_words(cq, offsetof(ibv_cq_ex, start_poll), sizeof(*cq)));
  EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

TEST_P(FilledSlots, OfAnExtendedQueuePair) {
  ibv_pd* const pd = ibv_alloc_pd(context_);
  ibv_cq* const cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ASSERT_TRUE(pd != nullptr && cq != nullptr);
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.send_cq = attr.recv_cq = cq;
  attr.cap = {4, 4, 1, 1, 0};
  attr.pd = pd;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND;  // little is asked for, all is there to call
  ibv_qp* const qp = ibv_create_qp_ex(context_, &attr);
  const int why = errno;
  if (qp != nullptr) {
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp);
    EXPECT_NE(nullptr, extended);
    if (extended != nullptr) {
      EXPECT_EQ(Offsets{},
                empty_words(extended, offsetof(ibv_qp_ex, wr_atomic_cmp_swp), sizeof(*extended)));
    }
    EXPECT_EQ(0, ibv_destroy_qp(qp));
  }
  EXPECT_EQ(0, ibv_destroy_cq(cq));
  EXPECT_EQ(0, ibv_dealloc_pd(pd));
  if (qp == nullptr) {
    EXPECT_EQ(EOPNOTSUPP, why);
    GTEST_SKIP() << GetParam() << " has no extended queue pairs";
  }
}

TEST_P(FilledSlots, AVerbThatTheDeviceLacksSaysSo) {
  errno = 0;
  ibv_flow_action_esp_attr attr{};
  EXPECT_EQ(nullptr, ibv_create_flow_action_esp(context_, &attr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  errno = 0;
  ibv_counters_init_attr counters{};
  EXPECT_EQ(nullptr, ibv_create_counters(context_, &counters));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

INSTANTIATE_TEST_SUITE_P(Devices, FilledSlots, ::testing::Values("shm", "null", "fake"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace verbatim
