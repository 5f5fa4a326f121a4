// SPDX-License-Identifier: BSD-2-Clause
//
// Three processes: this one is honest and has real traffic with a victim, which also has
// connections to a hostile process. Whatever that one does, the victim lives, its memory and its
// honest traffic stay whole, nobody waits long, and the log names who it was without a flood.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/hostile/orders.hpp"
#include "tests/support/child.hpp"
#include "tests/support/handles.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/rc_states.hpp"

namespace verbatim::hostile {
namespace {

using namespace harness;

#ifdef VBT_UNDER_SANITIZER
constexpr std::uint32_t kRounds = 4000;
#else
constexpr std::uint32_t kRounds = 25'000;  // four seeds make 100 000
#endif
/// Of exchanges beside them, and of requests of the hostile that were good.
constexpr std::uint32_t kLeast = kRounds / 250;
/// More than the service thread's patience with anybody, on a busy machine.
constexpr std::int32_t kLongestWaitMs = 10'000;

/// The honest side of this process.
class Honest {
 public:
  Honest() : memory_(256u << 10) {
    cq_.reset(ibv_create_cq(session_.context.get(), 64, nullptr, nullptr, 0));
    mr_.reset(ibv_reg_mr(session_.pd.get(), memory_.data(), memory_.size(), harness::kEveryRight));
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_.get();
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {.max_send_wr = 16,
                .max_recv_wr = 16,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    qp_.reset(ibv_create_qp(session_.pd.get(), &init));
  }
  std::uint32_t qpn() const { return qp_->qp_num; }
  void connect(const VictimFacts& victim) {
    victim_ = victim;
    ASSERT_EQ(harness::modify_rc(qp_.get(), IBV_QPS_INIT), 0);
    ASSERT_EQ(harness::modify_rc(qp_.get(), IBV_QPS_RTR, {.remote_qpn = victim.honest_qpn}), 0);
    ASSERT_EQ(harness::modify_rc(qp_.get(), IBV_QPS_RTS), 0);
  }

  /// A message there and back, and all that can be done one-sided, looked at.
  void exchange(std::uint64_t n) {
    const auto bytes = static_cast<std::uint32_t>(1 + n * 37 % 4096);
    fill(0, bytes, n);
    ibv_sge into = sge(kBack, 4096);
    ibv_recv_wr receive{};
    ibv_recv_wr* bad;
    receive.wr_id = 1;
    receive.sg_list = &into;
    receive.num_sge = 1;
    ASSERT_EQ(ibv_post_recv(qp_.get(), &receive, &bad), 0);
    post(IBV_WR_SEND, 0, bytes, 0);
    complete(2);
    ASSERT_TRUE(holds(kBack, bytes, n)) << "message " << n;
    if (n % 8 != 0) return;
    fill(0, kBlock, n + 1);
    post(IBV_WR_RDMA_WRITE, 0, kBlock, 8);
    post(IBV_WR_RDMA_READ, kBack, kBlock, 8);
    complete(2);
    ASSERT_TRUE(holds(kBack, kBlock, n + 1)) << "block " << n;
    post(IBV_WR_ATOMIC_FETCH_AND_ADD, kBack, 8, 0);
    complete(1);
    std::uint64_t counted;
    std::memcpy(&counted, memory_.data() + kBack, 8);
    ASSERT_EQ(counted, n / 8);
  }

 private:
  static constexpr std::uint64_t kBack = 128u << 10;
  static constexpr std::uint32_t kBlock = 32u << 10;

  ibv_sge sge(std::uint64_t offset, std::uint32_t bytes) {
    return {reinterpret_cast<std::uint64_t>(memory_.data() + offset), bytes, mr_->lkey};
  }
  void fill(std::uint64_t offset, std::uint32_t bytes, std::uint64_t seed) {
    for (std::uint32_t i = 0; i < bytes; ++i)
      memory_[offset + i] = static_cast<unsigned char>(seed * 31 + i * 7);
  }
  bool holds(std::uint64_t offset, std::uint32_t bytes, std::uint64_t seed) const {
    for (std::uint32_t i = 0; i < bytes; ++i)
      if (memory_[offset + i] != static_cast<unsigned char>(seed * 31 + i * 7)) return false;
    return true;
  }
  void post(ibv_wr_opcode opcode, std::uint64_t offset, std::uint32_t bytes, std::uint64_t at) {
    ibv_sge local = sge(offset, bytes);
    ibv_send_wr wr{};
    ibv_send_wr* bad;
    wr.wr_id = 2;
    wr.opcode = opcode;
    wr.sg_list = &local;
    wr.num_sge = 1;
    const std::uint64_t remote = victim_.honest_address + at;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
      wr.wr.atomic = {
          .remote_addr = remote, .compare_add = 1, .swap = 0, .rkey = victim_.honest_key};
    else
      wr.wr.rdma = {.remote_addr = remote, .rkey = victim_.honest_key};
    ASSERT_EQ(ibv_post_send(qp_.get(), &wr, &bad), 0);
  }
  void complete(int count) {
    ibv_wc wc;
    ASSERT_TRUE(wait_until(
        [&] {
          for (; count != 0 && ibv_poll_cq(cq_.get(), 1, &wc) == 1; --count)
            if (wc.status != IBV_WC_SUCCESS) return true;
          return count == 0;
        },
        kLongestWaitMs))
        << "stalled";
    ASSERT_EQ(count, 0) << ibv_wc_status_str(wc.status);
  }

  std::vector<unsigned char> memory_;
  Session session_;
  CqHandle cq_;
  MrHandle mr_;
  QpHandle qp_;
  VictimFacts victim_{};
};

class HostilePeerTest : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(HostilePeerTest, HurtsNobodyButItself) {
  const AllowedLog broke("broke");
  const AllowedLog refused("refused a process");
  const AllowedLog version("version");
  const AllowedLog arena("arena that is not");
  const AllowedLog psn("expects 0x");
  const AllowedLog stopped("was stopped in the middle");
  // Before the victim could lead it on.
  const AllowedLog failed_early("cannot go from ERR to RTS");
  const std::uint32_t seed = GetParam();
  // Half of the seeds without CMA: then the service threads copy.
  const std::map<std::string, std::string> environment = {
      {"VERBATIM_SHM_CMA", seed % 2 == 0 ? "off" : ""}};
  Child victim("hostile_victim", environment);
  const auto facts = victim.control().receive_value<VictimFacts>();
  Honest honest;
  Child hostile("hostile_peer", environment);
  const std::uint32_t block = 0xe00 + seed;
  hostile.control().send_value(HostileOrder{seed, kRounds, block, facts, honest.qpn()});
  (void)hostile.control().receive_value<std::int32_t>();
  // The hostile one was there first and says that the honest one's numbers are its own.
  victim.control().send_value(VictimOrder{seed, block, honest.qpn()});
  (void)victim.control().receive_value<std::int32_t>();
  honest.connect(facts);
  hostile.control().send_value(std::int32_t{0});

  using Clock = std::chrono::steady_clock;
  Clock::duration longest{};
  std::uint64_t exchanges = 0;
  pollfd done{hostile.control().fd(), POLLIN, 0};
  while (poll(&done, 1, 0) == 0) {
    const auto start = Clock::now();
    honest.exchange(exchanges++);
    if (HasFatalFailure()) break;
    longest = std::max(longest, Clock::now() - start);
  }
  if (!HasFatalFailure()) {
    (void)hostile.control().receive_value<std::int32_t>();
    EXPECT_EQ(hostile.wait().exit_status, 0);
    honest.exchange(exchanges++);
  }
  victim.control().send_value(std::int32_t{0});
  const auto report = victim.control().receive_value<VictimReport>();
  victim.control().send_value(std::int32_t{0});
  const Ended ended = victim.wait();
  EXPECT_EQ(ended.exit_status, 0) << "signal " << ended.signal;

  EXPECT_EQ(report.echoes, exchanges);
  EXPECT_GE(exchanges, kLeast);
  // That there were hostilities at all.
  EXPECT_GE(report.connections, 8u);
  EXPECT_GE(report.completions, 1000u);
  EXPECT_GE(report.successes, kLeast);
  EXPECT_GE(report.xrc_connections, 8u);
  EXPECT_GE(report.xrc_completions, kLeast);
  EXPECT_GE(report.xrc_sent, 1u);
  EXPECT_GE(report.xrc_arrived, 1u);
  EXPECT_LE(report.descriptors_left, 0);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(longest).count();
  RecordProperty("longest_exchange_ms", static_cast<int>(ms));
  std::printf(
      "%llu exchanges, the longest of %lld ms; %llu connections, %llu completions, %llu "
      "of them successes; XRC: %llu connections, %llu completions, %llu sent, %llu arrived\n",
      static_cast<unsigned long long>(exchanges), static_cast<long long>(ms),
      static_cast<unsigned long long>(report.connections),
      static_cast<unsigned long long>(report.completions),
      static_cast<unsigned long long>(report.successes),
      static_cast<unsigned long long>(report.xrc_connections),
      static_cast<unsigned long long>(report.xrc_completions),
      static_cast<unsigned long long>(report.xrc_sent),
      static_cast<unsigned long long>(report.xrc_arrived));

  if (LogWatch* watch = LogWatch::instance()) {
    const auto complaints = watch->complaints();
    const std::string offender = "process " + std::to_string(hostile.pid());
    EXPECT_GE(std::count_if(complaints.begin(), complaints.end(),
                            [&](const auto& line) { return line.find(offender) != line.npos; }),
              1)
        << "nobody named " << offender;
    EXPECT_LE(complaints.size(), 40u) << "a flood";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostilePeerTest, ::testing::Range(1u, 5u));

}  // namespace
}  // namespace verbatim::hostile
