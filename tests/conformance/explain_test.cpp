// SPDX-License-Identifier: BSD-2-Clause
//
// verbatim/explain.h, of any device: how it answers, whatever the device knows of the cause.
#include <gmock/gmock.h>
#include <verbatim/explain.h>

#include <cerrno>
#include <cstring>

#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExplainAnywhere : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(ExplainAnywhere, on_every_device(within_a_process()));

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

TEST_P(ExplainAnywhere, ComparesWhatWasAskedOfOurRegionWithWhatItHas) {
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, 64);
  Slice beyond = slice(memory, 0, 64);
  beyond.length = 100;
  expect_posted(pair.a.post_send(pair.qa, {send(7, beyond)}));
  const std::vector<ibv_wc> wcs = pair.a.poll_sends(pair.qa, 1);
  expect_error(wcs.at(0), 7, IBV_WC_LOC_PROT_ERR, pair.qa);
  char line[1024], asked[96];
  ASSERT_GT(vbt_explain(pair.a.here().qp(pair.qa.id), &wcs[0], line, sizeof line), 0);
  std::snprintf(asked, sizeof asked, "lkey 0x%08x of SGE 0 of the request: asked [0x%llx, 0x%llx)",
                memory.lkey, static_cast<unsigned long long>(memory.address),
                static_cast<unsigned long long>(memory.address + 100));
  EXPECT_THAT(line, AllOf(HasSubstr("SEND, wr_id 7"), HasSubstr(asked),
                          HasSubstr("it ends 36 bytes before the request does")));
}

TEST_P(ExplainAnywhere, SaysWhatWasAskedOfThePeersMemory) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
  RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  to.rkey ^= 0x80000000u;
  expect_posted(pair.a.post_send(pair.qa, {write(7, slice(from, 0, 16), to, 8)}));
  const std::vector<ibv_wc> wcs = pair.a.poll_sends(pair.qa, 1);
  expect_error(wcs.at(0), 7, IBV_WC_REM_ACCESS_ERR, pair.qa);
  char line[1024], key[64], peer[32];
  ASSERT_GT(vbt_explain(pair.a.here().qp(pair.qa.id), &wcs[0], line, sizeof line), 0);
  std::snprintf(key, sizeof key, "rkey 0x%08x of the peer: asked REMOTE_WRITE of [0x", to.rkey);
  std::snprintf(peer, sizeof peer, " to QP 0x%06x", pair.qb.qpn);
  EXPECT_THAT(line, AllOf(HasSubstr("RDMA_WRITE, wr_id 7"), HasSubstr(key), HasSubstr(peer),
                          HasSubstr("; fix: ")));
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
