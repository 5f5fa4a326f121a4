// SPDX-License-Identifier: BSD-2-Clause
//
// VERBATIM_STRICT=1: each pitfall is said once for its object; what is sound is not.
#include <gmock/gmock.h>
#include <stdlib.h>

#include "tests/shm/rc_expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The library reads it once: before the first device is opened.
[[maybe_unused]] const int is_set = setenv("VERBATIM_STRICT", "1", 1);

class Strict : public ::testing::Test {
 protected:
  void SetUp() override {
    if (LogWatch::instance() == nullptr) GTEST_SKIP() << "VERBATIM_LOG is set";
  }
  static std::vector<std::string> said() { return LogWatch::instance()->complaints(); }
  AllowedLog allowed_{"strict: "};
  Setting setting_{Placement::kOneContext, MemoryKind::kMapped};
};

TEST_F(Strict, IsSilentAboutASoundConnection) {
  Pair pair(setting_);
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(Strict, WarnsOfACqThatIsTooSmallForItsQueues) {
  Pair pair(setting_);
  QpWish wish;
  wish.send_cq = wish.receive_cq = pair.a.call<&Endpoint::create_cq>(64, 0);
  wish.send_depth = wish.receive_depth = 48;
  pair.a.create_qp(wish);
  pair.a.create_qp(wish);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("a CQ of 64 entries takes the completions of queues of "
                                            "96 requests")));
}

TEST_F(Strict, WarnsOfAttributesThatCannotWork) {
  PairWish wish;
  wish.link_a.timeout = 0;
  Pair pair(setting_, wish);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("timeout 0 waits for ever")));
  const QpInfo qp = pair.a.create_qp();
  QpInfo nobody = pair.qb;
  nobody.lid = 0;
  pair.a.connect(qp, nobody, {});
  EXPECT_THAT(said(), ElementsAre(HasSubstr("timeout 0"), HasSubstr("ah_attr.dlid is 0")));
}

TEST_F(Strict, WarnsOfUnsignaledSendsThatFillTheQueueOnce) {
  PairWish wish;
  wish.a.send_depth = 4;
  Pair pair(setting_, wish);
  const RegionInfo from = pair.a.allocate(setting_.memory, 64);
  const RegionInfo to = pair.b.allocate(setting_.memory, 64);
  const Request request = write(1, slice(from, 0, 8), to).unsignaled();
  for (int i = 0; i < 4; ++i) expect_posted(pair.a.post_send(pair.qa, request));
  EXPECT_THAT(said(), IsEmpty());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(pair.a.post_send(pair.qa, request).error, ENOMEM);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("signal at least one of each queue's worth")));
}

TEST_F(Strict, WarnsOfInlineDataOverTheLimit) {
  Pair pair(setting_);
  const RegionInfo from = pair.a.allocate(setting_.memory, 4096);
  EXPECT_EQ(pair.a.post_send(pair.qa, send(1, slice(from, 0, 4096)).with(IBV_SEND_INLINE)).error,
            EINVAL);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("4096 bytes of inline data")));
}

}  // namespace
}  // namespace verbatim::harness
