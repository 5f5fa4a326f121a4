// SPDX-License-Identifier: BSD-2-Clause
#include "tests/shm/all_to_all.hpp"

#include <memory>
#include <string>

#include "tests/shm/rc_expect.hpp"
#include "tests/support/role.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint64_t kSlot = 16_KiB;

struct Task {
  std::uint32_t processes;
  std::uint32_t rounds;
  std::uint32_t rank;
};

/// What rank `r` has for each other rank: a queue pair, and the one region that all may write.
struct Card {
  QpInfo qp;
  RegionInfo region;
};

std::uint64_t length_of(std::uint32_t from, std::uint32_t to, std::uint32_t round) {
  constexpr std::uint64_t kLengths[] = {0, 8, 57, 300, 4096, 9000, 16'384};
  return kLengths[(from * 3 + to * 5 + round) % 7];
}

std::uint32_t seed_of(std::uint32_t from, std::uint32_t to, std::uint32_t round) {
  return (from << 24) | (to << 16) | round;
}

[[noreturn]] void fail(const Task& task, const std::string& what) {
  throw std::runtime_error("rank " + std::to_string(task.rank) + ": " + what);
}

/// Slots: of the region, one per source rank for writes; of the inbox, one per source rank for
/// sends.
class Member {
 public:
  Member(Control& control, const Task& task)
      : control_(control), task_(task), endpoint_(std::make_shared<Session>()) {
    const auto depth = static_cast<std::int32_t>(8 * task.processes);
    wish_.send_cq = endpoint_.create_cq(depth, 0);
    wish_.receive_cq = endpoint_.create_cq(depth, 0);
    wish_.send_depth = wish_.receive_depth = 4;
    const MemoryKind kind = task.rank % 2 == 0 ? MemoryKind::kMapped : MemoryKind::kOrdinary;
    region_ = endpoint_.allocate(kind, task.processes * kSlot, kAllAccess);
    inbox_ = endpoint_.allocate(kind, task.processes * kSlot, kAllAccess);
    outbox_ = endpoint_.allocate(kind, task.processes * kSlot, kAllAccess);
  }

  void run() {
    std::vector<Card> cards;
    for (std::uint32_t r = 0; r < task_.processes; ++r) {
      cards.push_back({endpoint_.create_qp(wish_), region_});
    }
    control_.send_value(cards);
    others_ = control_.receive_value<std::vector<Card>>(3 * kDefaultWaitMs);
    for (std::uint32_t r = 0; r < task_.processes; ++r) {
      endpoint_.connect(cards[r].qp.id, others_[r].qp, Link{});
      qps_.push_back(cards[r].qp);
      post_receive(r);
    }
    // Nobody sends before all are connected, nobody leaves before all have finished.
    barrier();
    for (std::uint32_t round = 0; round < task_.rounds; ++round) one_round(round);
    barrier();
  }

 private:
  void barrier() {
    control_.send_value(task_.rank);
    control_.receive_value<std::uint32_t>(3 * kDefaultWaitMs);
  }

  void post_receive(std::uint32_t from) {
    if (endpoint_.post_receive(qps_[from].id, {receive(from, slice(inbox_, from * kSlot, kSlot))})
            .error != 0) {
      fail(task_, "post_receive");
    }
  }

  void one_round(std::uint32_t round) {
    const std::uint32_t me = task_.rank;
    for (std::uint32_t r = 0; r < task_.processes; ++r) {
      const std::uint64_t length = length_of(me, r, round);
      endpoint_.fill(outbox_.id, r * kSlot, length, seed_of(me, r, round));
      const SliceList data = slice(outbox_, r * kSlot, length);
      const Posted posted = endpoint_.post_send(
          qps_[r].id, {write(r, data, others_[r].region, me * kSlot).unsignaled(),
                       send(r, data).with_imm(round)});
      if (posted.error != 0) fail(task_, "post_send: " + std::to_string(posted.error));
    }
    for (const ibv_wc& wc : endpoint_.poll(wish_.receive_cq, task_.processes, kDefaultWaitMs)) {
      check_message(wc, round);
    }
    for (const ibv_wc& wc : endpoint_.poll(wish_.send_cq, task_.processes, kDefaultWaitMs)) {
      if (wc.status != IBV_WC_SUCCESS) fail(task_, "send: " + describe({wc}));
    }
    // A fast peer must not overwrite what a slow one still looks at.
    barrier();
  }

  void check_message(const ibv_wc& wc, std::uint32_t round) {
    const auto from = static_cast<std::uint32_t>(wc.wr_id);
    if (wc.status != IBV_WC_SUCCESS) fail(task_, "receive: " + describe({wc}));
    const std::uint64_t length = length_of(from, task_.rank, round);
    const std::uint32_t seed = seed_of(from, task_.rank, round);
    if (wc.byte_len != length || ntohl(wc.imm_data) != round || wc.qp_num != qps_[from].qpn) {
      fail(task_, "a message of another length, number or queue pair");
    }
    if (endpoint_.mismatch(inbox_.id, from * kSlot, length, seed) != -1) fail(task_, "bad message");
    if (endpoint_.mismatch(region_.id, from * kSlot, length, seed) != -1) fail(task_, "bad write");
    post_receive(from);
  }

  Control& control_;
  Task task_;
  Endpoint endpoint_;
  QpWish wish_;
  RegionInfo region_;
  RegionInfo inbox_;
  RegionInfo outbox_;
  std::vector<QpInfo> qps_;
  std::vector<Card> others_;
};

VBT_ROLE(all_to_all_member) {
  const Task task = control.receive_value<Task>();
  Member(control, task).run();
  return 0;
}

}  // namespace

void all_to_all(std::uint32_t processes, std::uint32_t rounds,
                const std::map<std::string, std::string>& environment) {
  std::vector<std::unique_ptr<Child>> members;
  for (std::uint32_t r = 0; r < processes; ++r) {
    members.push_back(std::make_unique<Child>("all_to_all_member", environment));
    members[r]->control().send_value(Task{processes, rounds, r});
  }
  std::vector<std::vector<Card>> cards;
  for (auto& member : members) {
    cards.push_back(member->control().receive_value<std::vector<Card>>());
    ASSERT_EQ(cards.back().size(), processes);
  }
  for (std::uint32_t r = 0; r < processes; ++r) {
    // What the others have made for rank r.
    std::vector<Card> for_r;
    for (std::uint32_t other = 0; other < processes; ++other) for_r.push_back(cards[other][r]);
    members[r]->control().send_value(for_r);
  }
  for (std::uint32_t barrier = 0; barrier < rounds + 2; ++barrier) {
    for (auto& member : members) member->control().receive_value<std::uint32_t>(2 * kDefaultWaitMs);
    for (auto& member : members) member->control().send_value(barrier);
  }
  for (auto& member : members) {
    const Ended ended = member->wait();
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.exit_status, 0);
  }
}

}  // namespace verbatim::harness
