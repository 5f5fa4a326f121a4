// SPDX-License-Identifier: BSD-2-Clause
#include "tests/hostile/xrc_front.hpp"

#include <infiniband/verbs.h>

#include <fcntl.h>

#include "tests/fuzz/liar.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/rc_states.hpp"

namespace verbatim::hostile {

using fuzz::Liar;
using harness::modify_rc;

XrcFront::XrcFront() {
  ibv_context* const context = session_.context.get();
  send_cq_.reset(ibv_create_cq(context, 64, nullptr, nullptr, 0));
  receive_cq_.reset(ibv_create_cq(context, 256, nullptr, nullptr, 0));
  ibv_xrcd_init_attr of_nobody{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
  xrcd_.reset(ibv_open_xrcd(context, &of_nobody));
  local_.reset(
      ibv_reg_mr(session_.pd.get(), memory_.at(0), kPieces * kPiece, IBV_ACCESS_LOCAL_WRITE));
  remote_.reset(
      ibv_reg_mr(session_.pd.get(), memory_.at(kRemote), 2 * kPiece, harness::kEveryRight));
  ibv_srq_init_attr_ex srq{};
  srq.attr = {kMostReceives, 2, 0};
  srq.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  srq.srq_type = IBV_SRQT_XRC;
  srq.pd = session_.pd.get();
  srq.xrcd = xrcd_.get();
  srq.cq = receive_cq_.get();
  srq_.reset(ibv_create_srq_ex(context, &srq));
  VBT_HOLDS(srq_ != nullptr && ibv_get_srq_num(srq_.get(), &srqn_) == 0);
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_XRC_SEND;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = session_.pd.get();
  init.send_cq = send_cq_.get();
  init.sq_sig_all = 1;
  init.cap.max_send_wr = 16;
  init.cap.max_send_sge = 2;
  init.cap.max_inline_data = 200;
  initiator_.reset(ibv_create_qp_ex(context, &init));
  init = {};
  init.qp_type = IBV_QPT_XRC_RECV;
  init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  init.xrcd = xrcd_.get();
  target_.reset(ibv_create_qp_ex(context, &init));
  VBT_HOLDS(initiator_ != nullptr && target_ != nullptr);
}

void XrcFront::tell(VictimFacts& facts) const {
  facts.xrc_initiator = initiator_->qp_num;
  facts.xrc_target = target_->qp_num;
  facts.xrc_queue = srqn_;
}

void XrcFront::connect(const VictimOrder& order) {
  const std::uint32_t base = order.hostile_block << 12;
  if (!initiates_) {
    VBT_HOLDS(modify_rc(initiator_.get(), IBV_QPS_INIT) == 0);
    VBT_HOLDS(modify_rc(initiator_.get(), IBV_QPS_RTR, {.remote_qpn = base | kXrcTargetAt}) == 0);
    initiates_ = true;
    failed_ = modify_rc(initiator_.get(), IBV_QPS_RTS) != 0;
    ++connections_;
  }
  if (!answers_) {
    VBT_HOLDS(modify_rc(target_.get(), IBV_QPS_INIT) == 0);
    VBT_HOLDS(modify_rc(target_.get(), IBV_QPS_RTR, {.remote_qpn = base | kXrcInitiatorAt}) == 0);
    answers_ = true;
    ++connections_;
  }
}

/// False: somebody says that it is at work in our memory; later.
bool XrcFront::end_initiator() {
  failed_ = true;
  if (modify_rc(initiator_.get(), IBV_QPS_ERR) != 0) return false;
  VBT_HOLDS(harness::wait_until(
      [&] {
        poll();
        return sends_.empty();
      },
      5000));
  if (modify_rc(initiator_.get(), IBV_QPS_RESET) != 0) return false;
  initiates_ = false;
  return true;
}

bool XrcFront::end_target() {
  if (modify_rc(target_.get(), IBV_QPS_RESET) != 0) return false;
  answers_ = false;
  return true;
}

void XrcFront::send(const VictimOrder& order, std::mt19937_64& random) {
  const auto below = [&random](std::uint64_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  static constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_SEND,          IBV_WR_SEND,
                                               IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                               IBV_WR_RDMA_READ,     IBV_WR_ATOMIC_FETCH_AND_ADD};
  // Most to its queue, some home, some to what is no queue.
  const std::uint32_t base = order.hostile_block << 12;
  const std::uint32_t kind = below(16);
  const bool home = kind == 0;
  ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_.at(below(kPieces) * kPiece)),
              below(4) == 0 ? below(kUsed + 1) : below(100), local_->lkey};
  ibv_send_wr wr{};
  ibv_send_wr* bad;
  wr.wr_id = next_id_;
  wr.opcode = kOpcodes[below(6)];
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.qp_type.xrc.remote_srqn = home ? srqn_ : kind == 1 ? base | below(16) : base | kXrcQueueAt;
  const std::uint32_t rkey = home ? remote_->rkey : Liar::key_of(below(fuzz::Stranger::kRegions));
  const std::uint64_t there =
      home ? reinterpret_cast<std::uint64_t>(memory_.at(kRemote)) : Liar::kIova + below(64);
  if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    sge.length = 8;
    wr.wr.atomic = {.remote_addr = there & ~7ull, .compare_add = 1, .swap = 0, .rkey = rkey};
  } else {
    wr.wr.rdma = {.remote_addr = there, .rkey = rkey};
  }
  if (ibv_post_send(initiator_.get(), &wr, &bad) != 0) return;
  sends_[next_id_++] = !home;
}

void XrcFront::receive(std::mt19937_64& random) {
  if (receives_.size() >= kMostReceives) return;
  const std::uint64_t bytes = random() % (kUsed + 1);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_.at(random() % kPieces * kPiece)),
              static_cast<std::uint32_t>(bytes), local_->lkey};
  ibv_recv_wr wr{};
  ibv_recv_wr* bad;
  wr.wr_id = next_id_;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  if (ibv_post_srq_recv(srq_.get(), &wr, &bad) != 0) return;
  receives_[next_id_++] = bytes;
}

void XrcFront::poll() {
  ibv_wc wcs[16];
  int got = ibv_poll_cq(send_cq_.get(), 16, wcs);
  VBT_HOLDS(got >= 0 && got <= 16);
  for (int i = 0; i < got; ++i) {
    const auto found = sends_.find(wcs[i].wr_id);
    VBT_HOLDS(wcs[i].qp_num == initiator_->qp_num && found != sends_.end());
    if (wcs[i].status != IBV_WC_SUCCESS)
      failed_ = true;
    else if (found->second)
      ++sent_;
    sends_.erase(found);
    ++completions_;
  }
  got = ibv_poll_cq(receive_cq_.get(), 16, wcs);
  VBT_HOLDS(got >= 0 && got <= 16);
  for (int i = 0; i < got; ++i) {
    const auto found = receives_.find(wcs[i].wr_id);
    VBT_HOLDS(found != receives_.end());
    if (wcs[i].status == IBV_WC_SUCCESS) {
      VBT_HOLDS((wcs[i].opcode & IBV_WC_RECV) != 0);
      if (wcs[i].opcode == IBV_WC_RECV) VBT_HOLDS(wcs[i].byte_len <= found->second);
      arrived_ += wcs[i].qp_num == target_->qp_num;  // ours come over the hostile one's target
    }
    receives_.erase(found);
    ++completions_;
  }
}

void XrcFront::turn(const VictimOrder& order, std::mt19937_64& random) {
  if (initiates_ && (failed_ || random() % 512 == 0)) (void)end_initiator();
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  if (answers_ && random() % 16 == 0) {
    VBT_HOLDS(ibv_query_qp(target_.get(), &attr, IBV_QP_STATE, &init) == 0);
    if (attr.qp_state == IBV_QPS_ERR || random() % 64 == 0) (void)end_target();
  }
  connect(order);
  if (!failed_) send(order, random);
  receive(random);
  poll();
  if (random() % 256 == 0) (void)ibv_req_notify_cq(receive_cq_.get(), 0);
}

void XrcFront::judge() const {
  for (std::uint32_t piece = 0; piece < kPieces; ++piece)
    VBT_HOLDS(memory_.untouched(piece * kPiece + kUsed, (piece + 1) * kPiece));
  VBT_HOLDS(memory_.untouched(kPieces * kPiece, kRemote));
  VBT_HOLDS(memory_.untouched(kRemote + 2 * kPiece, memory_.bytes()));
}

void XrcFront::finish(VictimReport& report) {
  VBT_HOLDS(harness::wait_until([&] { return !initiates_ || end_initiator(); }));
  VBT_HOLDS(harness::wait_until([&] { return !answers_ || end_target(); }));
  VBT_HOLDS(harness::wait_until([&] { return ibv_destroy_srq(srq_.get()) == 0; }));
  (void)srq_.release();
  judge();
  report.xrc_connections = connections_;
  report.xrc_completions = completions_;
  report.xrc_sent = sent_;
  report.xrc_arrived = arrived_;
}

}  // namespace verbatim::hostile
