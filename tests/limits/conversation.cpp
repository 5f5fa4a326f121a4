// SPDX-License-Identifier: BSD-2-Clause
#include "tests/limits/conversation.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>

#include "tests/limits/attempt.hpp"
#include "tests/support/rc_states.hpp"
#include "verbatim/memory.h"

namespace verbatim::harness {
namespace {

constexpr std::size_t kBytes = 1u << 20;

class Conversation : Attempt {
 public:
  explicit Conversation(Side& partner) : partner_(partner), memory_(kBytes, 'v') {
    theirs_ = partner_.create_qp();
    their_memory_ = partner_.allocate(MemoryKind::kOrdinary, kBytes);
    file_ = std::tmpfile();
    if (file_ == nullptr) throw std::runtime_error("no temporary file");
  }
  ~Conversation() {
    (void)std::fclose(file_);
    (void)partner_.deregister(their_memory_);
    (void)partner_.call<&Endpoint::destroy_qp>(theirs_.id);
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  Course hold() {
    course_.completed =
        open() && prepare() && talk_to_myself() && talk_by_xrc() && talk_to_partner();
    clean_up();
    return course_;
  }

 private:
  bool open() {
    int count = 0;
    if (!make("ibv_get_device_list", list_, [&] { return ibv_get_device_list(&count); }))
      return false;
    if (count < 1) broken("ibv_get_device_list", "gave an empty list");
    return count >= 1 &&
           make("ibv_open_device", context_, [&] { return ibv_open_device(list_[0]); });
  }

  bool prepare() {
    if (!make("ibv_alloc_pd", pd_, [&] { return ibv_alloc_pd(context_); }) ||
        !make("vbt_alloc_shared", shared_, [&] { return vbt_alloc_shared(4096); }) ||
        !make("ibv_reg_mr", mr_,
              [&] { return ibv_reg_mr(pd_, memory_.data(), kBytes, kAllAccess); }) ||
        !make("ibv_reg_mr", shared_mr_,
              [&] { return ibv_reg_mr(pd_, shared_, 4096, kAllAccess); }) ||
        !make("ibv_create_comp_channel", channel_,
              [&] { return ibv_create_comp_channel(context_); }) ||
        !make("ibv_create_cq", cq_,
              [&] { return ibv_create_cq(context_, 64, nullptr, channel_, 0); }) ||
        !note("ibv_query_port", ibv_query_port(context_, 1, &port_)) ||
        !note("ibv_query_gid", ibv_query_gid(context_, 1, 0, &gid_) == 0 ? 0 : errno))
      return false;
    for (ibv_qp*& qp : qps_) {
      ibv_qp_init_attr wish{};
      wish.send_cq = wish.recv_cq = cq_;
      wish.qp_type = IBV_QPT_RC;
      wish.cap = {16, 16, 1, 1, 0};
      if (!make("ibv_create_qp", qp, [&] { return ibv_create_qp(pd_, &wish); })) return false;
    }
    return true;
  }

  bool connect(ibv_qp* qp, std::uint32_t to_qpn, std::uint16_t to_lid, std::uint32_t to_psn) {
    RcWay way{.remote_qpn = to_qpn, .remote_lid = to_lid, .rq_psn = to_psn, .sq_psn = 0};
    way.timeout = 14;
    way.retry_count = 3;
    way.rnr_retry = 6;
    way.min_rnr_timer = 12;
    return note("ibv_modify_qp to INIT", modify_rc(qp, IBV_QPS_INIT, way)) &&
           note("ibv_modify_qp to RTR", modify_rc(qp, IBV_QPS_RTR, way)) &&
           note("ibv_modify_qp to RTS", modify_rc(qp, IBV_QPS_RTS, way));
  }

  bool post_receive(ibv_qp* qp) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()), kBytes, mr_->lkey};
    ibv_recv_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return note("ibv_post_recv", ibv_post_recv(qp, &request, &bad));
  }
  bool post(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t bytes) {
    const bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()), atomic ? 8 : bytes, mr_->lkey};
    ibv_send_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    if (atomic)
      request.wr.atomic = {their_memory_.address, 1, 0, their_memory_.rkey};
    else
      request.wr.rdma = {their_memory_.address, their_memory_.rkey};
    ibv_send_wr* bad = nullptr;
    return note("ibv_post_send", ibv_post_send(qp, &request, &bad));
  }
  bool collect(unsigned wanted) { return Attempt::collect(cq_, wanted); }

  bool talk_to_myself() {
    return connect(qps_[0], qps_[1]->qp_num, port_.lid, 0) &&
           connect(qps_[1], qps_[0]->qp_num, port_.lid, 0) && post_receive(qps_[1]) &&
           post(qps_[0], IBV_WR_SEND, 8) && collect(2) && post_receive(qps_[1]) &&
           note("ibv_req_notify_cq", ibv_req_notify_cq(cq_, 0)) &&
           post(qps_[0], IBV_WR_SEND, 64u << 10) && collect(2);
  }
  /// A message to myself through an XRC domain that a file stands for.
  bool talk_by_xrc() {
    ibv_xrcd_init_attr of{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, fileno(file_),
                          O_CREAT};
    if (!make("ibv_open_xrcd", xrcd_, [&] { return ibv_open_xrcd(context_, &of); })) return false;
    ibv_srq_init_attr_ex wish{};
    wish.attr = {4, 1, 0};
    wish.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ;
    wish.srq_type = IBV_SRQT_XRC;
    wish.pd = pd_;
    wish.xrcd = xrcd_;
    wish.cq = cq_;
    std::uint32_t number = 0;
    if (!make("ibv_create_srq_ex", queue_, [&] { return ibv_create_srq_ex(context_, &wish); }) ||
        !note("ibv_get_srq_num", ibv_get_srq_num(queue_, &number)))
      return false;
    ibv_qp_init_attr_ex target{};
    target.qp_type = IBV_QPT_XRC_RECV;
    target.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    target.xrcd = xrcd_;
    ibv_qp_init_attr_ex initiator{};
    initiator.qp_type = IBV_QPT_XRC_SEND;
    initiator.send_cq = cq_;
    initiator.cap = {4, 0, 1, 0, 0};
    initiator.comp_mask = IBV_QP_INIT_ATTR_PD;
    initiator.pd = pd_;
    ibv_qp_open_attr again{};
    if (!make("ibv_create_qp_ex", target_, [&] { return ibv_create_qp_ex(context_, &target); }) ||
        !make("ibv_create_qp_ex", initiator_,
              [&] { return ibv_create_qp_ex(context_, &initiator); }))
      return false;
    again.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    again.qp_num = target_->qp_num;
    again.xrcd = xrcd_;
    again.qp_type = IBV_QPT_XRC_RECV;
    if (!make("ibv_open_qp", opened_, [&] { return ibv_open_qp(context_, &again); }) ||
        !lead_xrc(target_, *initiator_) || !lead_xrc(initiator_, *target_))
      return false;
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()), 4096, mr_->lkey};
    ibv_recv_wr taken{};
    taken.sg_list = &sge;
    taken.num_sge = 1;
    ibv_recv_wr* bad_receive = nullptr;
    ibv_send_wr sent{};
    sent.sg_list = &sge;
    sent.num_sge = 1;
    sent.opcode = IBV_WR_SEND;
    sent.send_flags = IBV_SEND_SIGNALED;
    sent.qp_type.xrc.remote_srqn = number;
    ibv_send_wr* bad_send = nullptr;
    return note("ibv_post_srq_recv", ibv_post_srq_recv(queue_, &taken, &bad_receive)) &&
           note("ibv_post_send", ibv_post_send(initiator_, &sent, &bad_send)) && collect(2);
  }
  bool lead_xrc(ibv_qp* qp, const ibv_qp& to) {
    const bool asks = qp == initiator_;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    if (!note("ibv_modify_qp to INIT",
              ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)))
      return false;
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = to.qp_num;
    attr.min_rnr_timer = 12;
    attr.ah_attr.dlid = port_.lid;
    attr.ah_attr.port_num = 1;
    if (!note("ibv_modify_qp to RTR",
              ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN |
                                (asks ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))))
      return false;
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 3;
    attr.rnr_retry = 6;
    const int more = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return note("ibv_modify_qp to RTS",
                ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | (asks ? more : 0)));
  }
  bool talk_to_partner() {
    if (!connect(qps_[2], theirs_.qpn, theirs_.lid, theirs_.psn)) return false;
    QpInfo ours;
    ours.qpn = qps_[2]->qp_num;
    ours.lid = port_.lid;
    ours.gid = gid_;
    partner_.connect(theirs_, ours);
    for (int i = 0; i < 2; ++i)
      (void)partner_.post_receive(theirs_, receive(1, slice(their_memory_, 0, kBytes)));
    return post(qps_[2], IBV_WR_SEND, 8) && collect(1) && post(qps_[2], IBV_WR_SEND, kBytes) &&
           collect(1) && post(qps_[2], IBV_WR_RDMA_WRITE, kBytes) && collect(1) &&
           post(qps_[2], IBV_WR_RDMA_READ, kBytes) && collect(1) &&
           post(qps_[2], IBV_WR_ATOMIC_FETCH_AND_ADD, 8) && collect(1);
  }

  void clean_up() {
    for (ibv_qp** qp : {&initiator_, &opened_, &target_})
      end("ibv_destroy_qp", *qp, ibv_destroy_qp);
    end("ibv_destroy_srq", queue_, ibv_destroy_srq);
    end("ibv_close_xrcd", xrcd_, [](ibv_xrcd* xrcd) { return ibv_close_xrcd(xrcd); });
    for (ibv_qp*& qp : qps_) end("ibv_destroy_qp", qp, ibv_destroy_qp);
    end("ibv_destroy_cq", cq_, ibv_destroy_cq);
    end("ibv_destroy_comp_channel", channel_, ibv_destroy_comp_channel);
    end("ibv_dereg_mr", shared_mr_, ibv_dereg_mr);
    end("ibv_dereg_mr", mr_, ibv_dereg_mr);
    end("vbt_free_shared", shared_, vbt_free_shared);
    end("ibv_dealloc_pd", pd_, ibv_dealloc_pd);
    end("ibv_close_device", context_, ibv_close_device);
    if (list_ != nullptr) ibv_free_device_list(list_);
  }

  Side& partner_;
  QpInfo theirs_;
  RegionInfo their_memory_;
  std::vector<char> memory_;
  ibv_device** list_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  void* shared_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_mr* shared_mr_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qps_[3] = {};
  std::FILE* file_ = nullptr;
  ibv_xrcd* xrcd_ = nullptr;
  ibv_srq* queue_ = nullptr;
  ibv_qp* target_ = nullptr;
  ibv_qp* opened_ = nullptr;
  ibv_qp* initiator_ = nullptr;
  ibv_port_attr port_{};
  ibv_gid gid_{};
};

}  // namespace

Course converse(Side& partner) { return Conversation(partner).hold(); }

}  // namespace verbatim::harness
