// SPDX-License-Identifier: BSD-2-Clause
//
// verbatim/explain.h, of any device: how it answers, whatever the device knows of the cause.
#include <gmock/gmock.h>
#include <verbatim/explain.h>

#include <cerrno>
#include <cstring>

#include "tests/shm/rc_expect.hpp"

namespace verbatim::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExplainAnywhere : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(ExplainAnywhere, on_every_device(settings_in_one_process()));

/// A send whose lkey means nothing, and one behind it.
struct FailedSends {
  explicit FailedSends(Setting setting) : pair(setting) {
    const RegionInfo memory = pair.a.allocate(setting.memory, 64);
    Slice wrong = slice(memory, 0, 8);
    wrong.lkey ^= 0x80000000u;
    expect_posted(pair.a.post_send(pair.qa, {send(7, wrong), send(8, slice(memory, 0, 8))}));
    wcs = pair.a.poll_sends(pair.qa, 2);
    expect_error(wcs.at(0), 7, IBV_WC_LOC_PROT_ERR, pair.qa);
    expect_error(wcs.at(1), 8, IBV_WC_WR_FLUSH_ERR, pair.qa);
  }
  ibv_qp* qp() { return pair.a.here().qp(pair.qa.id); }

  Pair pair;
  std::vector<ibv_wc> wcs;
};

TEST_P(ExplainAnywhere, NamesQueuePairRequestStatusAndFixInALine) {
  FailedSends failed(GetParam());
  char line[1024], same[1024];
  const int length = vbt_explain(failed.qp(), &failed.wcs[0], line, sizeof line);
  ASSERT_GT(length, 0);
  EXPECT_EQ(std::strlen(line), static_cast<std::size_t>(length));
  char number[16];
  std::snprintf(number, sizeof number, "QP 0x%06x", failed.pair.qa.qpn);
  EXPECT_THAT(line,
              AllOf(HasSubstr(number), HasSubstr("wr_id 7"),
                    HasSubstr(ibv_wc_status_str(failed.wcs[0].status)), HasSubstr("; fix: ")));
  EXPECT_EQ(std::strchr(line, '\n'), nullptr);
  EXPECT_EQ(vbt_explain_completion(failed.qp(), 7, failed.wcs[0].status, same, sizeof same),
            length);
  EXPECT_STREQ(same, line);
  ASSERT_GT(vbt_explain(failed.qp(), &failed.wcs[1], line, sizeof line), 0);
  EXPECT_THAT(line, AllOf(HasSubstr("wr_id 8"), HasSubstr("flushed")));
}

TEST_P(ExplainAnywhere, CutsAsSnprintfDoes) {
  FailedSends failed(GetParam());
  char line[1024];
  const int length = vbt_explain(failed.qp(), &failed.wcs[0], line, sizeof line);
  ASSERT_GT(length, 20);
  EXPECT_EQ(vbt_explain(failed.qp(), &failed.wcs[0], nullptr, 0), length);
  char cut[11] = "##########";
  EXPECT_EQ(vbt_explain(failed.qp(), &failed.wcs[0], cut, 10), length);
  EXPECT_EQ(std::string(cut), std::string(line, 9));
  char whole[1024];
  const auto size = static_cast<std::size_t>(length) + 1;
  EXPECT_EQ(vbt_explain(failed.qp(), &failed.wcs[0], whole, size), length);
  EXPECT_STREQ(whole, line);
}

TEST_P(ExplainAnywhere, RefusesWhatNeedsNoExplanation) {
  FailedSends failed(GetParam());
  char line[256];
  ibv_wc wc = failed.wcs[0];
  wc.status = IBV_WC_SUCCESS;
  EXPECT_EQ(vbt_explain(failed.qp(), &wc, line, sizeof line), -ENODATA);
  EXPECT_EQ(vbt_explain_completion(failed.qp(), 7, IBV_WC_SUCCESS, line, sizeof line), -ENODATA);
  wc = failed.wcs[0];
  wc.qp_num ^= 1;
  EXPECT_EQ(vbt_explain(failed.qp(), &wc, line, sizeof line), -EINVAL);
  EXPECT_EQ(vbt_explain(nullptr, &failed.wcs[0], line, sizeof line), -EINVAL);
  EXPECT_EQ(vbt_explain(failed.qp(), &failed.wcs[0], nullptr, 8), -EINVAL);
  const QpInfo sound = failed.pair.a.create_qp();
  const int error = vbt_explain(failed.pair.a.here().qp(sound.id), nullptr, line, sizeof line);
  EXPECT_TRUE(error == -ENODATA || error == -EOPNOTSUPP) << error;
}

}  // namespace
}  // namespace verbatim::harness
