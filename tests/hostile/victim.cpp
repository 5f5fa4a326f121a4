// SPDX-License-Identifier: BSD-2-Clause
//
// The process in the middle: one thread serves an honest peer, another has connections to a hostile
// one, which it uses as any program would: posts, polls, connects anew when a connection ends. What
// the hostile one may not touch is watched.
#include <infiniband/verbs.h>
#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/fuzz/guarded_memory.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/liar.hpp"
#include "tests/hostile/orders.hpp"
#include "tests/hostile/xrc_front.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/handles.hpp"
#include "tests/support/process_census.hpp"
#include "tests/support/rc_states.hpp"
#include "tests/support/role.hpp"

namespace verbatim::hostile {
namespace {

using fuzz::GuardedMemory;
using fuzz::Liar;
using namespace harness;

/// The side that faces the hostile peer.
class Front {
 public:
  static constexpr std::uint32_t kPieces = 32;
  static constexpr std::uint64_t kPiece = 4096;
  static constexpr std::uint64_t kUsed = kPiece - 64;  ///< of a piece; the rest is nobody's
  static constexpr std::uint64_t kRegion = 2 * kPiece;
  static constexpr std::uint64_t kRemote = (kPieces + 1) * kPiece;
  static constexpr std::uint64_t kSource = (kPieces + 4) * kPiece;
  static constexpr std::uint64_t kForeign = (kPieces + 7) * kPiece;

  Front() {
    cq_.reset(ibv_create_cq(session_.context.get(), 512, nullptr, nullptr, 0));
    foreign_.reset(ibv_alloc_pd(session_.context.get()));
    mrs_[0].reset(
        ibv_reg_mr(session_.pd.get(), memory_.at(0), kPieces * kPiece, IBV_ACCESS_LOCAL_WRITE));
    mrs_[1].reset(
        ibv_reg_mr(session_.pd.get(), memory_.at(kRemote), kRegion, harness::kEveryRight));
    mrs_[2].reset(ibv_reg_mr(session_.pd.get(), memory_.at(kSource), kRegion, 0));
    mrs_[3].reset(ibv_reg_mr(foreign_.get(), memory_.at(kForeign), kRegion, harness::kEveryRight));
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_.get();
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {.max_send_wr = 16,
                .max_recv_wr = 16,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = 200};
    for (Line& line : lines_) {
      line.qp.reset(ibv_create_qp(session_.pd.get(), &init));
      VBT_HOLDS(line.qp != nullptr);
    }
  }

  void tell(VictimFacts& facts) {
    xrc_.tell(facts);
    for (std::uint32_t i = 0; i < kQps; ++i) facts.qpns[i] = lines_[i].qp->qp_num;
    constexpr std::uint64_t kPlaces[] = {0, kRemote, kSource, kForeign};
    for (std::uint32_t i = 0; i < 4; ++i) {
      facts.keys[i] = mrs_[i]->rkey;
      facts.addresses[i] = reinterpret_cast<std::uint64_t>(memory_.at(kPlaces[i]));
    }
  }

  void run(const VictimOrder& order, const std::atomic<bool>& stop) {
    std::mt19937_64 random(order.seed + 1);
    while (!stop.load(std::memory_order_relaxed)) {
      for (std::uint32_t i = 0; i < kQps; ++i) {
        Line& line = lines_[i];
        if (line.connected && (line.failed || random() % 512 == 0)) end(line);
        if (!line.connected) start(line, order.hostile_block << 12 | i);
        if (line.connected) use(line, random);
      }
      poll();
      xrc_.turn(order, random);
      if (random() % 256 == 0) (void)ibv_req_notify_cq(cq_.get(), 0);
      if (random() % 64 == 0) judge();
    }
  }
  /// All of it, when nobody is left who could be in the way.
  void finish(VictimReport& report) {
    VBT_HOLDS(wait_until([&] {
      for (Line& line : lines_)
        if (line.connected) end(line);
      bool left = false;
      for (const Line& line : lines_) left = left || line.connected;
      return !left;
    }));
    judge();
    xrc_.finish(report);
    report.connections = connections_;
    report.completions = completions_;
    report.successes = successes_;
  }

 private:
  struct Line {
    QpHandle qp;
    bool connected = false;
    bool failed = false;
    std::unordered_map<std::uint64_t, std::uint64_t> outstanding;  ///< wr_id -> bytes, receives
  };

  void start(Line& line, std::uint32_t remote) {
    line.failed = false;
    VBT_HOLDS(harness::modify_rc(line.qp.get(), IBV_QPS_INIT) == 0);
    VBT_HOLDS(harness::modify_rc(line.qp.get(), IBV_QPS_RTR, {.remote_qpn = remote}) == 0);
    line.connected = true;
    ++connections_;
    // What was received may have ended it already.
    if (harness::modify_rc(line.qp.get(), IBV_QPS_RTS) != 0) line.failed = true;
  }
  /// EBUSY, since it says that it is at work in our memory: then it is asked again later.
  void end(Line& line) {
    line.failed = true;
    if (harness::modify_rc(line.qp.get(), IBV_QPS_ERR) != 0) return;
    const bool all = wait_until(
        [&] {
          poll();
          return line.outstanding.empty();
        },
        5000);
    VBT_HOLDS(all);
    if (harness::modify_rc(line.qp.get(), IBV_QPS_RESET) != 0) return;
    line.connected = false;
  }

  void use(Line& line, std::mt19937_64& random) {
    const auto below = [&random](std::uint64_t bound) {
      return static_cast<std::uint32_t>(random() % bound);
    };
    ibv_sge sges[2];
    const int count = 1 + static_cast<int>(below(2));
    std::uint64_t bytes = 0;
    for (int i = 0; i < count; ++i) {
      const std::uint32_t n = below(4) == 0 ? below(kUsed + 1) : below(100);
      sges[i] = {reinterpret_cast<std::uint64_t>(memory_.at(below(kPieces) * kPiece)), n,
                 mrs_[0]->lkey};
      bytes += n;
    }
    const std::uint64_t id = next_id_;
    if (below(2) == 0) {
      ibv_recv_wr wr{};
      ibv_recv_wr* bad;
      wr.wr_id = id;
      wr.sg_list = sges;
      wr.num_sge = count;
      if (ibv_post_recv(line.qp.get(), &wr, &bad) != 0) return;
    } else {
      static constexpr ibv_wr_opcode kOpcodes[] = {
          IBV_WR_SEND,          IBV_WR_SEND,
          IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
          IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE_WITH_IMM,
          IBV_WR_RDMA_READ,     IBV_WR_ATOMIC_FETCH_AND_ADD};
      ibv_send_wr wr{};
      ibv_send_wr* bad;
      wr.wr_id = id;
      wr.opcode = kOpcodes[below(8)];
      wr.sg_list = sges;
      wr.num_sge = count;
      const std::uint32_t rkey = Liar::key_of(below(fuzz::Stranger::kRegions));
      if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.num_sge = 1;
        sges[0].length = 8;
        wr.wr.atomic = {.remote_addr = Liar::kIova, .compare_add = 1, .swap = 0, .rkey = rkey};
      } else {
        wr.wr.rdma = {.remote_addr = Liar::kIova + below(64), .rkey = rkey};
      }
      if (ibv_post_send(line.qp.get(), &wr, &bad) != 0) return;
      bytes = ~std::uint64_t{0};
    }
    ++next_id_;
    line.outstanding[id] = bytes;
  }

  void poll() {
    ibv_wc wcs[16];
    const int got = ibv_poll_cq(cq_.get(), 16, wcs);
    VBT_HOLDS(got >= 0 && got <= 16);
    for (int i = 0; i < got; ++i) {
      const ibv_wc& wc = wcs[i];
      for (Line& line : lines_) {
        if (line.qp->qp_num != wc.qp_num) continue;
        const auto found = line.outstanding.find(wc.wr_id);
        VBT_HOLDS(found != line.outstanding.end());
        if (wc.status != IBV_WC_SUCCESS)
          line.failed = true;
        else if (wc.opcode == IBV_WC_RECV)
          VBT_HOLDS(wc.byte_len <= found->second);
        line.outstanding.erase(found);
        ++completions_;
        successes_ += wc.status == IBV_WC_SUCCESS;
      }
    }
  }

  void judge() {
    for (std::uint32_t piece = 0; piece < kPieces; ++piece)
      VBT_HOLDS(memory_.untouched(piece * kPiece + kUsed, (piece + 1) * kPiece));
    VBT_HOLDS(memory_.untouched(kPieces * kPiece, kRemote));
    VBT_HOLDS(memory_.untouched(kRemote + kRegion, memory_.bytes()));
    xrc_.judge();
  }

  GuardedMemory memory_{(kPieces + 10) * kPiece};
  Session session_;
  PdHandle foreign_;
  CqHandle cq_;
  MrHandle mrs_[4];
  Line lines_[kQps];
  XrcFront xrc_;
  std::uint64_t next_id_ = 1;
  std::uint64_t connections_ = 0;
  std::uint64_t completions_ = 0;
  std::uint64_t successes_ = 0;
};

/// The side that faces the honest peer: answers each message with its own bytes, and shows memory
/// that he alone reads and writes.
class Back {
 public:
  static constexpr std::uint32_t kDepth = 16;
  static constexpr std::uint32_t kMessage = 4096;
  static constexpr std::uint64_t kShown = 64u << 10;

  Back() {
    std::memset(memory_.at(0), 0, memory_.bytes());
    cq_.reset(ibv_create_cq(session_.context.get(), 128, nullptr, nullptr, 0));
    mr_.reset(ibv_reg_mr(session_.pd.get(), memory_.at(0), memory_.bytes(), harness::kEveryRight));
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 64,
                .max_recv_wr = kDepth,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    init.sq_sig_all = 1;
    qp_.reset(ibv_create_qp(session_.pd.get(), &init));
    VBT_HOLDS(qp_ != nullptr && mr_ != nullptr);
  }
  void tell(VictimFacts& facts) {
    facts.honest_qpn = qp_->qp_num;
    facts.honest_key = mr_->rkey;
    facts.honest_address = reinterpret_cast<std::uint64_t>(memory_.at(kDepth * kMessage));
  }
  void connect(std::uint32_t qpn) {
    VBT_HOLDS(harness::modify_rc(qp_.get(), IBV_QPS_INIT) == 0);
    for (std::uint32_t i = 0; i < kDepth; ++i) post(i);
    VBT_HOLDS(harness::modify_rc(qp_.get(), IBV_QPS_RTR, {.remote_qpn = qpn}) == 0);
    VBT_HOLDS(harness::modify_rc(qp_.get(), IBV_QPS_RTS) == 0);
  }
  void serve() {
    ibv_wc wcs[8];
    const int got = ibv_poll_cq(cq_.get(), 8, wcs);
    for (int i = 0; i < got; ++i) {
      VBT_HOLDS(wcs[i].status == IBV_WC_SUCCESS);
      if (wcs[i].opcode != IBV_WC_RECV) {
        post(static_cast<std::uint32_t>(wcs[i].wr_id));
        continue;
      }
      ibv_sge sge = piece(static_cast<std::uint32_t>(wcs[i].wr_id));
      sge.length = wcs[i].byte_len;
      ibv_send_wr wr{};
      ibv_send_wr* bad;
      wr.wr_id = wcs[i].wr_id;
      wr.opcode = IBV_WR_SEND;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      VBT_HOLDS(ibv_post_send(qp_.get(), &wr, &bad) == 0);
      ++echoes;
    }
  }
  std::uint64_t echoes = 0;

 private:
  ibv_sge piece(std::uint32_t i) {
    return {reinterpret_cast<std::uint64_t>(memory_.at(i * kMessage)), kMessage, mr_->lkey};
  }
  void post(std::uint32_t i) {
    ibv_sge sge = piece(i);
    ibv_recv_wr wr{};
    ibv_recv_wr* bad;
    wr.wr_id = i;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    VBT_HOLDS(ibv_post_recv(qp_.get(), &wr, &bad) == 0);
  }

  GuardedMemory memory_{kDepth * kMessage + kShown};
  Session session_;
  CqHandle cq_;
  MrHandle mr_;
  QpHandle qp_;
};

bool told(const Control& control) {
  pollfd word{control.fd(), POLLIN, 0};
  return ::poll(&word, 1, 0) != 0;
}

VBT_ROLE(hostile_victim) {
  VictimReport report{};
  Back back;
  const auto descriptors = [] { return ProcessCensus::take().descriptors.size(); };
  std::size_t before;
  {
    Front front;
    VictimFacts facts{};
    front.tell(facts);
    back.tell(facts);
    control.send_value(facts);
    const auto order = control.receive_value<VictimOrder>();
    before = descriptors();
    back.connect(order.honest_qpn);
    control.send_value(std::int32_t{0});
    std::atomic<bool> stop{false};
    std::thread hostilities([&] { front.run(order, stop); });
    while (!told(control)) back.serve();
    (void)control.receive_value<std::int32_t>();
    stop.store(true);
    hostilities.join();
    front.finish(report);
  }
  report.echoes = back.echoes;
  // The honest one is still there: its socket, doorbells and whatever tells of its life.
  constexpr std::size_t kOfHonest = 6;
  (void)wait_until([&] { return descriptors() <= before + kOfHonest; }, 5000);
  report.descriptors_left =
      static_cast<std::int64_t>(descriptors()) - static_cast<std::int64_t>(before + kOfHonest);
  control.send_value(report);
  while (!told(control)) back.serve();
  return 0;
}

}  // namespace
}  // namespace verbatim::hostile
