// SPDX-License-Identifier: BSD-2-Clause
//
// `verbatim top` over this process, in which nothing moves: what it says of queue pairs of other
// types and states, of shared receive queues, of bytes, of errors, and of what waits.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/shm/rc_expect.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/tools/classic.hpp"

namespace verbatim::tools {
namespace {

using harness::expect_posted;
using harness::Pair;
using harness::QpInfo;
using harness::QpWish;
using harness::receive;
using harness::send;
using harness::slice;
using Json = nlohmann::json;

/// What is said of this process.
Json look() {
  const Ending ending = run(real_tool("verbatim", {}), {"top", "--json"});
  EXPECT_EQ(ending.status, 0) << ending.err;
  const Json all = Json::parse(ending.out, nullptr, false);
  for (const Json& process : all.at("processes"))
    if (process.at("pid") == getpid()) return process;
  return nullptr;
}

Json of(const Json& process, const QpInfo& qp) {
  for (const Json& each : process.at("queue_pairs"))
    if (each.at("qpn") == qp.qpn) return each;
  return nullptr;
}

TEST(TopScene, SaysTypesStatesSharedReceivesBytesErrorsAndWhatWaits) {
  Pair pair(harness::Setting{harness::Placement::kOneContext, harness::MemoryKind::kMapped});
  const harness::RegionInfo memory = pair.a.allocate(harness::MemoryKind::kMapped, 4096);
  // One message of a pair went; three more wait for receives.
  const harness::RegionInfo there = pair.b.allocate(harness::MemoryKind::kMapped, 4096);
  expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(there, 0, 1000))));
  for (std::uint64_t i = 0; i < 4; ++i)
    expect_posted(pair.a.post_send(pair.qa, send(i, slice(memory, 0, 700))));
  pair.a.poll_sends(pair.qa, 1);
  pair.b.poll_receives(pair.qb, 1);
  // Another pair has failed, by a key that means nothing.
  const auto [failed, other] = pair.add_qps({}, {});
  harness::Slice wrong = slice(memory, 0, 8);
  wrong.lkey = memory.lkey ^ 0x80000000u;
  expect_posted(pair.a.post_send(failed, send(1, wrong)));
  harness::expect_error(pair.a.poll_sends(failed, 1)[0], 1, IBV_WC_LOC_PROT_ERR, failed);
  // A UD one that shares receives, in INIT.
  const harness::SrqInfo srq = pair.a.create_srq();
  expect_posted(pair.a.post_srq_receive(srq, {receive(1), receive(2)}));
  QpWish wish;
  wish.type = IBV_QPT_UD;
  wish.srq = srq.id;
  const QpInfo sharing = pair.a.create_qp(wish);
  ASSERT_EQ(pair.a.call<&harness::Endpoint::to_init>(sharing.id, harness::Link{}), 0);

  const Json process = look();
  ASSERT_TRUE(process.is_object());
  EXPECT_EQ(process["srqs"], 1);
  EXPECT_EQ(process["queue_pairs"].size(), 5u);
  const Json busy = of(process, pair.qa);
  EXPECT_EQ(busy["type"], "RC");
  EXPECT_EQ(busy["state"], "RTS");
  EXPECT_EQ(busy["sent_messages"], 1) << "not those that wait";
  EXPECT_EQ(busy["sent_bytes"], 700);
  EXPECT_EQ(busy["sends_outstanding"], 3);
  EXPECT_EQ(busy["errors"], 0);
  EXPECT_EQ(of(process, pair.qb)["received_bytes"], 700);
  EXPECT_EQ(of(process, failed)["state"], "ERR");
  EXPECT_GT(of(process, failed)["errors"], 0);
  EXPECT_EQ(of(process, failed)["sent_messages"], 0) << "nor those that failed";
  EXPECT_EQ(of(process, other)["errors"], 0);
  EXPECT_EQ(of(process, sharing)["type"], "UD");
  EXPECT_EQ(of(process, sharing)["state"], "INIT");
  EXPECT_EQ(of(process, sharing)["shares_receives"], true);
  EXPECT_EQ(of(process, pair.qa)["shares_receives"], false);
}

}  // namespace
}  // namespace verbatim::tools
