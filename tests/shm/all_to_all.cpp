// SPDX-License-Identifier: BSD-2-Clause
#include "tests/shm/all_to_all.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "tests/support/expect.hpp"
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
    for (const ibv_wc& wc : one_of_each(wish_.receive_cq, "message", round)) {
      check_message(wc, round);
    }
    for (const ibv_wc& wc : one_of_each(wish_.send_cq, "completion", round)) {
      if (wc.status != IBV_WC_SUCCESS) fail(task_, "send: " + describe({wc}));
    }
    // A fast peer must not overwrite what a slow one still looks at.
    barrier();
  }

  /// A completion of each rank. Who waits in vain says whose is missing, which queue pair is not
  /// in RTS, and whether it had a core: the longest time between two looks.
  std::vector<ibv_wc> one_of_each(std::int32_t cq, const char* what, std::uint32_t round) {
    using Clock = std::chrono::steady_clock;
    std::vector<ibv_wc> all;
    std::vector<bool> has_come(task_.processes);
    Clock::time_point looked = Clock::now();
    Clock::duration longest{};
    const bool in_time = wait_until([&] {
      const auto left = task_.processes - static_cast<std::uint32_t>(all.size());
      for (const ibv_wc& wc : endpoint_.poll_once(cq, left)) {
        has_come.at(wc.wr_id) = true;
        all.push_back(wc);
      }
      const Clock::time_point now = Clock::now();
      longest = std::max(longest, now - looked);
      looked = now;
      return all.size() == task_.processes;
    });
    if (in_time) return all;
    std::string missing = "round " + std::to_string(round) + ": no " + what + " of";
    for (std::uint32_t r = 0; r < task_.processes; ++r) {
      if (has_come[r]) continue;
      missing += ' ' + std::to_string(r);
      const ibv_qp_state state = endpoint_.query_qp(qps_[r].id).qp_state;
      if (state != IBV_QPS_RTS) missing += " (state " + std::to_string(state) + ')';
    }
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(longest).count();
    fail(task_, missing + "; at most " + std::to_string(ms) + " ms between two looks");
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

using Members = std::vector<std::unique_ptr<Child>>;

/// Lets nobody on before all have come. False: some have not. Then each is heard, to the end of its
/// wait, and those who are late are looked for: who waits in vain is seldom to blame.
bool barrier_of(Members& members, std::uint32_t number) {
  const Deadline deadline(2 * kDefaultWaitMs);
  bool all = true;
  for (std::size_t r = 0; r < members.size(); ++r) {
    try {
      members[r]->control().receive_value<std::uint32_t>(deadline.remaining_ms());
    } catch (const std::exception& error) {
      std::string late;
      for (std::size_t i = r; all && i < members.size(); ++i)
        late += "\nrank " + std::to_string(i) + ": " + members[i]->whereabouts();
      ADD_FAILURE() << "barrier " << number << ", rank " << r << ": " << error.what() << late;
      all = false;
    }
  }
  for (std::size_t r = 0; all && r < members.size(); ++r) members[r]->control().send_value(number);
  return all;
}

}  // namespace

void all_to_all(std::uint32_t processes, std::uint32_t rounds,
                const std::map<std::string, std::string>& environment) {
  Members members;
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
  for (std::uint32_t barrier = 0; barrier < rounds + 2; ++barrier)
    if (!barrier_of(members, barrier)) return;
  for (auto& member : members) {
    const Ended ended = member->wait();
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.exit_status, 0);
  }
}

}  // namespace verbatim::harness
