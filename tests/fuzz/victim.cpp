// SPDX-License-Identifier: BSD-2-Clause
#include "tests/fuzz/victim.hpp"

#include <sched.h>
#include <stdlib.h>

#include "providers/shm/device/service_hooks.hpp"
#include "providers/shm/fabric/fabric_folder.hpp"
#include "providers/shm/fabric/process.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/fabric_directory.hpp"
#include "tests/support/rc_states.hpp"

namespace verbatim::fuzz {

Victim::Victim(Stranger& stranger) : stranger_(stranger) {
  static const harness::FabricDirectory folder;
  setenv("VERBATIM_LOG", "off", 0);
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  VBT_HOLDS(count > 0);
  context_ = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  VBT_HOLDS(context_ != nullptr);
  pd_ = ibv_alloc_pd(context_);
  cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
  ibv_pd* const foreign = ibv_alloc_pd(context_);
  mrs_[0] = ibv_reg_mr(pd_, memory_.at(0), kLanding * kPiece, IBV_ACCESS_LOCAL_WRITE);
  mrs_[1] = ibv_reg_mr(pd_, memory_.at(kRemote), kRegionBytes, harness::kEveryRight);
  mrs_[2] = ibv_reg_mr(pd_, memory_.at(kSource), kRegionBytes, 0);
  mrs_[3] = ibv_reg_mr(foreign, memory_.at(kForeign), kRegionBytes, harness::kEveryRight);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  init.cap = {.max_send_wr = kDepth,
              .max_recv_wr = kDepth,
              .max_send_sge = kSges,
              .max_recv_sge = kSges,
              .max_inline_data = 200};
  qp_ = ibv_create_qp(pd_, &init);
  VBT_HOLDS(qp_ != nullptr && mrs_[3] != nullptr);
  shm::Process& process = shm::Process::get();
  bit_ = shm::Process::index_in(process.self(), qp_->qp_num);
  record_ = &process.segment().qps()[bit_];
  meet();
}

void Victim::meet() {
  shm::FabricFolder folder;
  VBT_HOLDS(folder.open() == 0);
  VBT_HOLDS(harness::wait_until(
      [&] { return folder.connect(qp_->qp_num >> shm::kQpnBlockBits, socket_) == 0; }));
  VBT_HOLDS(stranger_.introduce(socket_.get(), false) == 0);
  VBT_HOLDS(harness::wait_until([&] {
    peer_ = shm::Process::get().find_peer(stranger_.qpn(0));
    return peer_ != nullptr;
  }));
  folder.close();
  // As if it had been asked for and mapped.
  peer_->arenas[0].size = arena_.bytes();
  peer_->arenas[0].base.store(arena_.at(0), std::memory_order_release);
}

void Victim::modify(ibv_qp_state state) {
  VBT_HOLDS(harness::modify_rc(qp_, state, {.remote_qpn = stranger_.qpn(0), .timeout = 8}) == 0);
}

void Victim::begin() {
  memory_.fill();
  arena_.fill();
  landings_ = 0;
  for (auto& bytes : landed_) bytes = 0;
  modify(IBV_QPS_INIT);
  modify(IBV_QPS_RTR);
}

void Victim::go() { modify(IBV_QPS_RTS); }

Target Victim::target() {
  Target target{.record = record_, .qpn = qp_->qp_num, .arena_bytes = arena_.bytes()};
  for (std::uint32_t i = 0; i < 4; ++i) {
    target.keys[i] = mrs_[i]->rkey;
    target.addresses[i] = address(i);
  }
  return target;
}

/// The next piece of the landing ground, of which `bytes` may change.
ibv_sge Victim::land(std::uint64_t bytes) {
  const std::uint32_t piece = landings_++ % kLanding;
  if (bytes > landed_[piece]) landed_[piece] = bytes;
  return {reinterpret_cast<std::uint64_t>(memory_.at(piece * kPiece)),
          static_cast<std::uint32_t>(bytes), mrs_[0]->lkey};
}

void Victim::post_receive(Input& input) {
  ibv_sge sges[kSges];
  ibv_recv_wr wr{};
  wr.wr_id = next_id_;
  wr.sg_list = sges;
  wr.num_sge = static_cast<int>(input.below(kSges + 1));
  std::uint64_t bytes = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    sges[i] = land(input.below(kPiece + 1));
    bytes += sges[i].length;
  }
  ibv_recv_wr* bad;
  if (ibv_post_recv(qp_, &wr, &bad) == 0) outstanding_[next_id_++] = {true, bytes};
}

std::uint64_t Victim::address(std::uint32_t i) {
  constexpr std::uint64_t kPlaces[] = {0, kRemote, kSource, kForeign};
  return reinterpret_cast<std::uint64_t>(memory_.at(kPlaces[i % 4]));
}

void Victim::post_send(Input& input) {
  static constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_SEND,
                                               IBV_WR_SEND_WITH_IMM,
                                               IBV_WR_RDMA_WRITE,
                                               IBV_WR_RDMA_WRITE_WITH_IMM,
                                               IBV_WR_RDMA_READ,
                                               IBV_WR_ATOMIC_CMP_AND_SWP,
                                               IBV_WR_ATOMIC_FETCH_AND_ADD};
  ibv_send_wr wr{};
  wr.wr_id = next_id_;
  wr.opcode = kOpcodes[input.below(7)];
  const std::uint8_t how = input.take();
  wr.send_flags = (how & 1u) != 0 ? unsigned{IBV_SEND_SOLICITED} : 0u;
  const bool atomic = wr.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP;
  const bool fetches = atomic || wr.opcode == IBV_WR_RDMA_READ;
  ibv_sge sges[kSges];
  wr.sg_list = sges;
  wr.num_sge = 1 + static_cast<int>(!atomic && (how & 2u) != 0);
  std::uint64_t bytes = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    const std::uint64_t n = atomic ? 8 : input.below((how & 4u) != 0 ? 64 : kPiece + 1);
    bytes += n;
    if (fetches)
      sges[i] = land(n);
    else
      sges[i] = {address(2), static_cast<std::uint32_t>(n), mrs_[2]->lkey};
  }
  if (!fetches && bytes <= 200 && (how & 8u) != 0) wr.send_flags |= IBV_SEND_INLINE;
  const std::uint32_t rkey = Liar::key_of(input.below(Stranger::kRegions));
  const std::uint64_t to = Liar::kIova + (atomic ? input.below(32) * 8 : input.below(256));
  if (atomic)
    wr.wr.atomic = {.remote_addr = to, .compare_add = 1, .swap = 2, .rkey = rkey};
  else
    wr.wr.rdma = {.remote_addr = to, .rkey = rkey};
  ibv_send_wr* bad;
  if (ibv_post_send(qp_, &wr, &bad) == 0) outstanding_[next_id_++] = {false, bytes};
}

void Victim::poll() {
  ibv_wc wcs[4];
  const int got = ibv_poll_cq(cq_, 4, wcs);
  VBT_HOLDS(got >= 0 && got <= 4);
  for (int i = 0; i < got; ++i) {
    const ibv_wc& wc = wcs[i];
    const auto found = outstanding_.find(wc.wr_id);
    VBT_HOLDS(found != outstanding_.end());
    VBT_HOLDS(wc.qp_num == qp_->qp_num);
    const bool of_write = wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    if (found->second.receive && wc.status == IBV_WC_SUCCESS) {
      VBT_HOLDS(wc.opcode == IBV_WC_RECV || of_write);
      // Who takes these many bytes out of his buffer must find them there.
      VBT_HOLDS(of_write || wc.byte_len <= found->second.bytes);
    }
    outstanding_.erase(found);
  }
}

void Victim::arm(bool solicited) { VBT_HOLDS(ibv_req_notify_cq(cq_, solicited) == 0); }

void Victim::serve() {
  (void)shm::service_hooks.request(bit_);
  shm::Process::get().segment().doorbells().requests.ring(bit_);
  (void)shm::service_hooks.asked();
  shm::service_hooks.cq_wake(0);
}

void Victim::end() {
  // Who says for ever that it is busy is waited for, up to a bound; that is too long here.
  stranger_.qp(0).active.store(0);
  modify(IBV_QPS_ERR);
  VBT_HOLDS(harness::wait_until([&] {
    poll();
    return outstanding_.empty();
  }));
  modify(IBV_QPS_RESET);

  for (std::uint32_t piece = 0; piece < kLanding; ++piece)
    VBT_HOLDS(memory_.untouched(piece * kPiece + landed_[piece], (piece + 1) * kPiece));
  VBT_HOLDS(memory_.untouched(kLanding * kPiece, kRemote));
  VBT_HOLDS(memory_.untouched(kRemote + kRegionBytes, memory_.bytes()));
}

}  // namespace verbatim::fuzz
