// SPDX-License-Identifier: BSD-2-Clause
//
// As many objects as ibv_query_device says can be made, one more is refused with ENOMEM and said
// in the log, and nothing is lost by it: after one was destroyed there is room for one again, and
// after all were, for as many. Not counted: what only memory limits
// (providers/shm/design/memory.md). What any device promises of its counts is in tests/conformance.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/support/handles.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

/// Makes objects until one is refused, and gives them back.
template <class Handle, class Make>
void fill(int most, const char* said, Make make) {
  const AllowedLog full(said);
  const std::size_t before =
      LogWatch::instance() == nullptr ? 0 : LogWatch::instance()->complaints().size();
  std::vector<Handle> made;
  made.reserve(static_cast<std::size_t>(most) + 1);
  const auto more = [&] {
    errno = 0;
    made.push_back(Handle(make()));
    const bool is_made = made.back() != nullptr;
    if (!is_made) made.pop_back();
    return is_made;
  };
  while (static_cast<int>(made.size()) < most)
    ASSERT_TRUE(more()) << made.size() << " of " << most << ": " << std::strerror(errno);
  ASSERT_FALSE(more());
  EXPECT_EQ(errno, ENOMEM) << std::strerror(errno);
  made.erase(made.begin() + most / 2);
  ASSERT_TRUE(more()) << std::strerror(errno);
  ASSERT_FALSE(more());
  EXPECT_EQ(errno, ENOMEM) << std::strerror(errno);
  if (LogWatch* const watch = LogWatch::instance()) {
    EXPECT_EQ(watch->complaints().size(), before + 2);
  }
}

class CountLimit : public ::testing::Test {
 protected:
  Session session_;
  ibv_context* context_ = session_.context.get();
  ibv_pd* pd_ = session_.pd.get();
};

TEST_F(CountLimit, OfCompletionQueues) {
  for (int round = 0; round < 3; ++round)
    fill<CqHandle>(session_.attr.max_cq, "completion queues of this process are in use",
                   [this] { return ibv_create_cq(context_, 1, nullptr, nullptr, 0); });
}

TEST_F(CountLimit, OfQueuePairs) {
  const CqHandle cq(ibv_create_cq(context_, 1, nullptr, nullptr, 0));
  fill<QpHandle>(session_.attr.max_qp, "queue pairs of this process are in use", [&] {
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {1, 1, 1, 1, 0};
    return ibv_create_qp(pd_, &init);
  });
}

/// Both have keys of one table: what regions had, windows get.
TEST_F(CountLimit, OfMemoryRegionsAndThenOfWindows) {
  static char bytes[64];
  constexpr const char* kSaid = "memory region keys are in use";
  fill<MrHandle>(session_.attr.max_mr, kSaid,
                 [this] { return ibv_reg_mr(pd_, bytes, sizeof bytes, 0); });
  fill<MwHandle>(session_.attr.max_mw, kSaid, [this] { return ibv_alloc_mw(pd_, IBV_MW_TYPE_2); });
}

}  // namespace
}  // namespace verbatim::harness
