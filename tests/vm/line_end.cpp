// SPDX-License-Identifier: BSD-2-Clause
#include "tests/vm/line_end.hpp"

#include <verbatim/gid.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace verbatim::vm {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC;

}  // namespace

void fail(const std::string& what) {
  std::fprintf(stderr, "line: %s (errno %d, %s)\n", what.c_str(), errno, std::strerror(errno));
  std::exit(1);
}

LineDevice::LineDevice(const char* name) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  need(list != nullptr, "ibv_get_device_list");
  for (int i = 0; i < count && context_ == nullptr; ++i)
    if (std::strcmp(ibv_get_device_name(list[i]), name) == 0) context_ = ibv_open_device(list[i]);
  ibv_free_device_list(list);
  need(context_ != nullptr, std::string("cannot open ") + name);
}

LineDevice::~LineDevice() { need(ibv_close_device(context_) == 0, "ibv_close_device"); }

ibv_gid_entry LineDevice::pick(const ibv_gid* remote) const {
  ibv_gid_entry entry{};
  errno = vbt_pick_gid(context_, 1, remote, &entry, sizeof entry);
  need(errno == 0, "vbt_pick_gid");
  return entry;
}

LineEnd::LineEnd(const LineDevice& device, ibv_qp_type type, std::uint32_t depth, std::size_t bytes)
    : memory_(bytes) {
  pd_ = ibv_alloc_pd(device.context());
  need(pd_ != nullptr, "ibv_alloc_pd");
  mr_ = ibv_reg_mr(pd_, memory_.data(), bytes, kAccess);
  need(mr_ != nullptr, "ibv_reg_mr");
  cq_ = ibv_create_cq(device.context(), static_cast<int>(2 * depth), nullptr, nullptr, 0);
  need(cq_ != nullptr, "ibv_create_cq");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = type;
  init.cap = {depth, depth, 1, 1, 0};
  qp_ = ibv_create_qp(pd_, &init);
  need(qp_ != nullptr, "ibv_create_qp");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = kQkey;
  attr.qp_access_flags = kAccess;
  errno = ibv_modify_qp(qp_, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                            (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
  need(errno == 0, "to INIT");
}

LineEnd::~LineEnd() {
  need(ibv_destroy_qp(qp_) == 0, "ibv_destroy_qp");
  need(way_ == nullptr || ibv_destroy_ah(way_) == 0, "ibv_destroy_ah");
  need(ibv_destroy_cq(cq_) == 0, "ibv_destroy_cq");
  need(ibv_dereg_mr(mr_) == 0, "ibv_dereg_mr");
  need(ibv_dealloc_pd(pd_) == 0, "ibv_dealloc_pd");
}

void LineEnd::connect(const LineEnd& to, const ibv_gid_entry& own, const ibv_gid& remote) {
  const bool datagrams = qp_->qp_type == IBV_QPT_UD;
  other_ = to.qp_->qp_num;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = other_;
  attr.max_dest_rd_atomic = attr.max_rd_atomic = 8;
  attr.min_rnr_timer = 1;
  // 16 ms: an emulated machine often takes longer, and then what had arrived comes again.
  attr.timeout = 12;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = remote;
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(own.gid_index);
  attr.ah_attr.grh.hop_limit = 64;
  errno = ibv_modify_qp(qp_, &attr,
                        datagrams
                            ? int{IBV_QP_STATE}
                            : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  need(errno == 0, "to RTR");
  attr.qp_state = IBV_QPS_RTS;
  errno = ibv_modify_qp(qp_, &attr,
                        IBV_QP_STATE | IBV_QP_SQ_PSN |
                            (datagrams ? 0
                                       : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                             IBV_QP_MAX_QP_RD_ATOMIC));
  need(errno == 0, "to RTS");
  if (!datagrams) return;
  way_ = ibv_create_ah(pd_, &attr.ah_attr);
  need(way_ != nullptr, "ibv_create_ah");
}

void LineEnd::receive(std::uint64_t wr_id, std::size_t offset, std::size_t length) {
  ibv_sge sge{address() + offset, static_cast<std::uint32_t>(length), mr_->lkey};
  ibv_recv_wr wr{wr_id, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  errno = ibv_post_recv(qp_, &wr, &bad);
  need(errno == 0, "ibv_post_recv");
}

void LineEnd::send(ibv_send_wr wr, std::size_t offset, std::size_t length) {
  ibv_sge sge{address() + offset, static_cast<std::uint32_t>(length), mr_->lkey};
  ibv_send_wr* bad = nullptr;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.send_flags |= IBV_SEND_SIGNALED;
  if (way_ != nullptr) wr.wr.ud = {way_, other_, kQkey};
  errno = ibv_post_send(qp_, &wr, &bad);
  need(errno == 0, "ibv_post_send");
}

std::vector<ibv_wc> LineEnd::poll() {
  std::vector<ibv_wc> found(16);
  const int count = ibv_poll_cq(cq_, static_cast<int>(found.size()), found.data());
  need(count >= 0, "ibv_poll_cq");
  found.resize(static_cast<std::size_t>(count));
  for (const ibv_wc& wc : found)
    if (wc.status != IBV_WC_SUCCESS)
      fail(std::string("a completion: ") + ibv_wc_status_str(wc.status) + ", wr_id " +
           std::to_string(wc.wr_id));
  return found;
}

void connect(LineEnd& a, const LineDevice& on_a, LineEnd& b, const LineDevice& on_b) {
  const ibv_gid_entry of_a = on_a.pick(nullptr);
  const ibv_gid_entry of_b = on_b.pick(&of_a.gid);
  a.connect(b, of_a, of_b.gid);
  b.connect(a, of_b, of_a.gid);
}

}  // namespace verbatim::vm
