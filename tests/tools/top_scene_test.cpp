// SPDX-License-Identifier: BSD-2-Clause
//
// `verbatim top` over this process, in which nothing moves: what it says of queue pairs of other
// types and states, of shared receive queues, of bytes, of errors, and of what waits.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/tools/classic.hpp"
#include "tests/tools/top_table.hpp"

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

std::string number(const Json& value) { return std::to_string(value.get<std::uint64_t>()); }
std::string hexadecimal(const Json& value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%06x", value.get<unsigned>());
  return text;
}

/// The table says of this process, in which nothing moves, what JSON says.
void expect_table_of(const Json& process) {
  const Ending ending = run(real_tool("verbatim", {}), {"top"});
  EXPECT_EQ(ending.status, 0) << ending.err;
  const auto all = read_top_table(ending.out);
  const auto found = all.find(std::to_string(getpid()));
  ASSERT_NE(found, all.end()) << ending.out;
  const TopProcess& table = found->second;
  EXPECT_EQ(table.program, process["program"].get<std::string>());
  std::size_t queue_pairs = 0;
  for (const Json& each : process["queue_pairs"]) queue_pairs += each["type"] != "XRC_SRQ";
  EXPECT_EQ(table.counts, std::to_string(queue_pairs) + " QPs, " + number(process["cqs"]) +
                              " CQs, " + number(process["srqs"]) + " SRQs, " +
                              number(process["keys"]) + " keys");
  EXPECT_EQ(table.rows.size(), process["queue_pairs"].size());
  for (const Json& said : process["queue_pairs"]) {
    const std::string peer = said["peer_qpn"] == 0 ? "-"
                             : said["peer_pid"] == 0
                                 ? hexadecimal(said["peer_qpn"])
                                 : hexadecimal(said["peer_qpn"]) + "@" + number(said["peer_pid"]);
    const TopRow expected{
        {"QP", hexadecimal(said["qpn"])},
        {"TYPE", said["type"]},
        {"STATE", said["state"]},
        {"PEER", peer},
        {"SENT", number(said["sent_messages"])},
        {"MSG/S", "0"},
        {"BYTES", number(said["sent_bytes"])},
        {"RECEIVED", number(said["received_messages"])},
        {"BYTES received", number(said["received_bytes"])},
        {"ERRORS", number(said["errors"])},
        {"SENDS", number(said["sends_outstanding"]) + "/" + number(said["send_depth"])},
        {"RECEIVES", (said["shares_receives"] ? "s" : "") + number(said["receives_posted"]) + "/" +
                         number(said["receive_depth"])}};
    const auto row = table.rows.find(hexadecimal(said["qpn"]));
    ASSERT_NE(row, table.rows.end()) << ending.out;
    EXPECT_EQ(row->second, expected);
  }
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
  expect_table_of(process);
}

TEST(TopScene, CountsDatagramsOfSendersThatAreGoneAndTheErrorsOfTheirReceiver) {
  harness::PairWish wish;
  wish.a.type = wish.b.type = IBV_QPT_UD;
  Pair pair(harness::kHere, wish);
  const harness::RegionInfo from = pair.a.allocate(harness::MemoryKind::kMapped, 4096);
  const harness::RegionInfo to = pair.b.allocate(harness::MemoryKind::kMapped, 4096);
  const std::int32_t way = pair.a.call<&harness::Endpoint::create_ah>(pair.qb, 0);
  for (std::uint64_t i = 0; i < 5; ++i)
    expect_posted(pair.b.post_receive(pair.qb, receive(i, slice(to, 0, 200))));
  QpWish sends;
  sends.type = IBV_QPT_UD;
  // Each comes when the one before is gone, and has that one's way to the receiver given back.
  for (std::uint64_t i = 0; i < 3; ++i) {
    const QpInfo sender = pair.a.create_qp(sends);
    pair.a.connect(sender, pair.qb, {});
    expect_posted(pair.a.post_send(
        sender, harness::datagram(i, slice(from, 0, 100), way, pair.qb.qpn, harness::Link{}.qkey)));
    EXPECT_EQ(pair.b.poll_receives(pair.qb, 1).size(), 1u);
    const Json before = of(look(), sender);
    EXPECT_EQ(before["sent_messages"], 1);
    EXPECT_EQ(before["sent_bytes"], 100);
    EXPECT_EQ(pair.a.poll_sends(sender, 1).size(), 1u);
    EXPECT_EQ(pair.a.call<&harness::Endpoint::destroy_qp>(sender.id), 0);
  }
  const Json heard = of(look(), pair.qb);
  EXPECT_EQ(heard["received_messages"], 3);
  EXPECT_EQ(heard["received_bytes"], 300);
  EXPECT_EQ(heard["receives_posted"], 2);
  EXPECT_EQ(heard["shares_receives"], false);
  EXPECT_EQ(heard["errors"], 0);
  // A receive that cannot be filled.
  const QpInfo wrong = pair.b.create_qp(sends);
  pair.b.connect(wrong, pair.qa, {});
  harness::Slice nowhere = slice(to, 0, 200);
  nowhere.lkey = to.lkey ^ 0x80000000u;
  expect_posted(pair.b.post_receive(wrong, receive(9, nowhere)));
  expect_posted(pair.a.post_send(
      pair.qa, harness::datagram(9, slice(from, 0, 100), way, wrong.qpn, harness::Link{}.qkey)));
  harness::expect_error(pair.b.poll_receives(wrong, 1)[0], 9, IBV_WC_LOC_PROT_ERR, wrong);
  EXPECT_EQ(of(look(), wrong)["errors"], 1);
  expect_table_of(look());
}

TEST(TopScene, CountsUnreliableConnectionsAndThoseThatShareReceives) {
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_RC}) {
    Pair pair(harness::kHere);
    const harness::RegionInfo from = pair.a.allocate(harness::MemoryKind::kMapped, 4096);
    const harness::RegionInfo to = pair.b.allocate(harness::MemoryKind::kMapped, 4096);
    const harness::SrqInfo shared = pair.b.create_srq();
    QpWish wish;
    wish.type = type;
    QpWish wish_b = wish;
    const bool shares = type == IBV_QPT_RC;
    if (shares) wish_b.srq = shared.id;
    const auto [sender, receiver] = pair.add_qps(wish, wish_b);
    for (std::uint64_t i = 0; i < 5; ++i) {
      const harness::Receive one = receive(i, slice(to, 0, 200));
      expect_posted(shares ? pair.b.post_srq_receive(shared, {one})
                           : pair.b.post_receive(receiver, one));
    }
    for (std::uint64_t i = 0; i < 2; ++i) {
      expect_posted(pair.a.post_send(sender, send(i, slice(from, 0, 100))));
      EXPECT_EQ(pair.a.poll_sends(sender, 1).size(), 1u);
      EXPECT_EQ(pair.b.poll_receives(receiver, 1).size(), 1u);
    }
    const Json process = look();
    const Json sent = of(process, sender);
    const Json received = of(process, receiver);
    EXPECT_EQ(sent["type"], shares ? "RC" : "UC");
    EXPECT_EQ(sent["sent_messages"], 2);
    EXPECT_EQ(sent["sent_bytes"], 200);
    EXPECT_EQ(received["received_messages"], 2);
    EXPECT_EQ(received["received_bytes"], 200);
    EXPECT_EQ(received["receives_posted"], 3);
    EXPECT_EQ(received["shares_receives"], shares);
    EXPECT_EQ(received["errors"], 0);
    expect_table_of(process);
  }
}

TEST(TopScene, CountsWhatComesOverXrcForTheQueueThatTakesIt) {
  Pair pair(harness::kHere);
  harness::Side& side = pair.a;
  const harness::RegionInfo memory = side.allocate(harness::MemoryKind::kMapped, 4096);
  harness::SrqWish shared;
  shared.xrc = 1;
  const harness::SrqInfo queue = side.create_srq(shared);
  QpWish wish;
  wish.type = IBV_QPT_XRC_SEND;
  const QpInfo sender = side.create_qp(wish);
  wish.type = IBV_QPT_XRC_RECV;
  const QpInfo target = side.create_qp(wish);
  side.connect(sender, target, {});
  side.connect(target, sender, {});
  for (std::uint64_t i = 0; i < 5; ++i)
    expect_posted(side.post_srq_receive(queue, {receive(i, slice(memory, 0, 200))}));
  for (std::uint64_t i = 0; i < 2; ++i) {
    harness::Request request = send(i, slice(memory, 1000, 100));
    request.remote_srqn = queue.srqn;
    expect_posted(side.post_send(sender, request));
    EXPECT_EQ(side.poll_sends(sender, 1).size(), 1u);
    EXPECT_EQ(side.call<&harness::Endpoint::poll>(queue.cq, 1u, harness::kDefaultWaitMs).size(),
              1u);
  }
  QpInfo as_shown;
  as_shown.qpn = queue.srqn;
  const Json process = look();
  const Json taken = of(process, as_shown);
  ASSERT_TRUE(taken.is_object());
  EXPECT_EQ(taken["type"], "XRC_SRQ");
  EXPECT_EQ(taken["state"], "-");
  EXPECT_EQ(taken["received_messages"], 2);
  EXPECT_EQ(taken["received_bytes"], 200);
  EXPECT_EQ(taken["receives_posted"], 3);
  EXPECT_EQ(of(process, sender)["sent_bytes"], 200);
  expect_table_of(process);
}

}  // namespace
}  // namespace verbatim::tools
