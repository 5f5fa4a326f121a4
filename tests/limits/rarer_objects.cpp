// SPDX-License-Identifier: BSD-2-Clause
// The kinds of objects that conversation.cpp leaves out, each made, used once and ended.
#include <arpa/inet.h>

#include <array>
#include <cstdint>
#include <utility>

#include "tests/limits/attempt.hpp"
#include "tests/support/rc_states.hpp"
#include "verbatim/memory.h"

namespace verbatim::harness {
namespace {

constexpr std::size_t kRarerBytes = 64u << 10;
constexpr std::uint32_t kQkey = 0x11;
constexpr std::uint32_t kGroupQpn = 0xFFFFFF;
constexpr std::uint16_t kGroupLid = 0xC055;
constexpr int kRights = kEveryRight | IBV_ACCESS_MW_BIND;

class RarerObjects : Attempt {
 public:
  Course hold() {
    group_.raw[0] = 0xFF;
    group_.raw[1] = 0x12;
    group_.raw[15] = 9;
    course_.completed = open() && place_memory() && use_pool() && use_regions() && make_queues() &&
                        talk_reliably() && use_window() && talk_unreliably() && talk_to_group();
    clean_up();
    return course_;
  }

 private:
  bool open() {
    if (!make("ibv_get_device_list", list_, [] { return ibv_get_device_list(nullptr); }))
      return false;
    if (list_[0] == nullptr) broken("ibv_get_device_list", "gave an empty list");
    ibv_td_init_attr thread{};
    return list_[0] != nullptr &&
           make("ibv_open_device", context_, [&] { return ibv_open_device(list_[0]); }) &&
           note("ibv_query_port", ibv_query_port(context_, 1, &port_)) &&
           make("ibv_alloc_pd", pd_, [&] { return ibv_alloc_pd(context_); }) &&
           make("ibv_alloc_td", td_, [&] { return ibv_alloc_td(context_, &thread); }) &&
           make("ibv_alloc_parent_domain", parent_, [&] {
             ibv_parent_domain_init_attr of{};
             of.pd = pd_;
             of.td = td_;
             return ibv_alloc_parent_domain(context_, &of);
           });
  }

  bool place_memory() {
    vbt_alloc_attr wish{};
    wish.size = kRarerBytes;
    wish.where = VBT_WHERE_INTERLEAVED;
    vbt_alloc_attr shared = wish;
    shared.flags = VBT_ALLOC_SHARED;
    vbt_alloc_attr huge = wish;
    huge.page_size = 2u << 20;
    vbt_alloc_facts facts{};
    const std::pair<const vbt_alloc_attr*, void**> blocks[] = {
        {&wish, &mine_}, {&shared, &ours_}, {&huge, &huge_}};
    for (const auto& block : blocks) {
      if (!make("vbt_alloc", *block.second,
                [&] { return vbt_alloc(block.first, sizeof wish, &facts, sizeof facts); }))
        return false;
    }
    return true;
  }

  bool use_pool() {
    vbt_pool_attr wish{};
    wish.buffer_size = 256;
    wish.count = 8;
    wish.pd = pd_;
    wish.access = kEveryRight;
    if (!make("vbt_create_pool", pool_,
              [&] { return vbt_create_pool(&wish, sizeof wish, nullptr, 0); }))
      return false;
    std::array<void*, 8> buffers{};
    bool all = true;
    for (void*& buffer : buffers)
      all = all && make("vbt_pool_alloc", buffer, [&] { return vbt_pool_alloc(pool_); });
    for (void* buffer : buffers) all = note("vbt_pool_free", vbt_pool_free(pool_, buffer)) && all;
    return all;
  }

  bool use_regions() {
    ibv_alloc_dm_attr on_device{};
    on_device.length = 4096;
    if (!make("ibv_reg_mr", mr_, [&] { return ibv_reg_mr(pd_, ours_, kRarerBytes, kRights); }) ||
        !make("ibv_reg_mr", changed_,
              [&] { return ibv_reg_mr(pd_, mine_, kRarerBytes, IBV_ACCESS_LOCAL_WRITE); }) ||
        !make("ibv_alloc_null_mr", null_, [&] { return ibv_alloc_null_mr(pd_); }) ||
        !make("ibv_alloc_dm", dm_, [&] { return ibv_alloc_dm(context_, &on_device); }) ||
        !make("ibv_reg_dm_mr", dm_mr_, [&] {
          return ibv_reg_dm_mr(pd_, dm_, 0, 4096, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
        }))
      return false;
    const std::uint64_t word = 0x0123456789abcdef;
    std::uint64_t back = 0;
    if (!note("ibv_memcpy_to_dm", ibv_memcpy_to_dm(dm_, 64, &word, sizeof word)) ||
        !note("ibv_memcpy_from_dm", ibv_memcpy_from_dm(&back, dm_, 64, sizeof back)))
      return false;
    if (back != word) broken("ibv_memcpy_from_dm", "gave other bytes");
    return reregister(IBV_REREG_MR_CHANGE_ACCESS, mine_) &&
           reregister(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, huge_);
  }
  /// Its answers are an enum of their own, with an errno beside.
  bool reregister(int flags, void* at) {
    errno = 0;
    const int answer = ibv_rereg_mr(changed_, flags, nullptr, at, kRarerBytes, kEveryRight);
    if (answer == 0) return true;
    if (errno == 0) broken("ibv_rereg_mr", "answered " + std::to_string(answer) + ", errno 0");
    return note("ibv_rereg_mr", errno == 0 ? EIO : errno);
  }

  bool make_queues() {
    ibv_cq_init_attr_ex of{};
    of.cqe = 16;
    of.channel = nullptr;
    of.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP;
    ibv_srq_init_attr shared{};
    shared.attr = {8, 1, 0};
    ibv_srq_attr larger{};
    larger.max_wr = 64;
    if (!make("ibv_create_cq_ex", cq_ex_, [&] { return ibv_create_cq_ex(context_, &of); }) ||
        !make("ibv_create_cq", cq_,
              [&] { return ibv_create_cq(context_, 16, nullptr, nullptr, 0); }) ||
        !note("ibv_resize_cq", ibv_resize_cq(cq_, 512)) ||
        !make("ibv_create_srq", srq_, [&] { return ibv_create_srq(pd_, &shared); }) ||
        !note("ibv_modify_srq", ibv_modify_srq(srq_, &larger, IBV_SRQ_MAX_WR)))
      return false;
    constexpr std::array<ibv_qp_type, 6> kTypes = {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC,
                                                   IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_UD};
    for (std::size_t i = 0; i < kTypes.size(); ++i) {
      ibv_qp_init_attr_ex wish{};
      wish.qp_type = kTypes[i];
      wish.send_cq = cq_;
      wish.recv_cq = i == 1 ? ibv_cq_ex_to_cq(cq_ex_) : cq_;
      wish.srq = i == 1 ? srq_ : nullptr;
      wish.cap = {8, i == 1 ? 0u : 8u, 1, i == 1 ? 0u : 1u, 0};
      wish.comp_mask = IBV_QP_INIT_ATTR_PD;
      wish.pd = i == 0 ? parent_ : pd_;
      if (i % 2 == 0) {
        wish.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wish.send_ops_flags = IBV_QP_EX_WITH_SEND;
      }
      if (!make("ibv_create_qp_ex", qps_[i], [&] { return ibv_create_qp_ex(context_, &wish); }))
        return false;
    }
    return true;
  }

  bool lead(ibv_qp* qp, const ibv_qp& to) {
    ibv_qp_attr attr{};
    attr.port_num = 1;
    attr.qkey = kQkey;
    attr.qp_access_flags = kEveryRight;
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = to.qp_num;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 12;
    attr.ah_attr.dlid = port_.lid;
    attr.ah_attr.port_num = 1;
    attr.timeout = 14;
    attr.retry_cnt = 3;
    attr.rnr_retry = 6;
    const bool ud = qp->qp_type == IBV_QPT_UD;
    const bool rc = qp->qp_type == IBV_QPT_RC;
    const int to_init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    const int to_rtr = (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
                       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    const int to_rts =
        IBV_QP_SQ_PSN |
        (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
    for (const auto& [state, mask] :
         {std::pair{IBV_QPS_INIT, to_init}, {IBV_QPS_RTR, to_rtr}, {IBV_QPS_RTS, to_rts}}) {
      attr.qp_state = state;
      if (!note("ibv_modify_qp", ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask))) return false;
    }
    return true;
  }
  bool lead_both(std::size_t first) {
    return lead(qps_[first], *qps_[first + 1]) && lead(qps_[first + 1], *qps_[first]);
  }

  ibv_sge part(std::size_t from, std::uint32_t bytes) const {
    return {reinterpret_cast<std::uintptr_t>(ours_) + from, bytes, mr_->lkey};
  }
  bool post_receive(ibv_qp* qp) {
    ibv_sge sge = part(kRarerBytes / 2, kRarerBytes / 2);
    ibv_recv_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return note("ibv_post_recv", ibv_post_recv(qp, &request, &bad));
  }
  /// By the calls of ibv_qp_ex; a datagram says to whom.
  bool send(ibv_qp* qp, std::uint32_t bytes, ibv_ah* ah = nullptr, std::uint32_t qpn = 0) {
    ibv_qp_ex* const with = ibv_qp_to_qp_ex(qp);
    if (with == nullptr) {
      broken("ibv_qp_to_qp_ex", "gave nothing");
      return false;
    }
    const ibv_sge sge = part(0, bytes);
    ibv_wr_start(with);
    with->wr_id = 1;
    with->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(with);
    if (ah != nullptr) ibv_wr_set_ud_addr(with, ah, qpn, kQkey);
    ibv_wr_set_sge(with, sge.lkey, sge.addr, sge.length);
    return note("ibv_wr_complete", ibv_wr_complete(with));
  }
  /// One success of the extended queue, by start_poll.
  bool collect_extended() {
    const Deadline deadline(10'000);
    ibv_poll_cq_attr none{};
    int error = ibv_start_poll(cq_ex_, &none);
    while (error == ENOENT && !deadline.passed()) {
      sched_yield();
      error = ibv_start_poll(cq_ex_, &none);
    }
    if (error == ENOENT) broken("ibv_start_poll", "found no completion");
    if (!note("ibv_start_poll", error)) return false;
    const ibv_wc_status status = cq_ex_->status;
    ibv_end_poll(cq_ex_);
    return !failed_completion(status);
  }

  /// Into a shared receive queue; the sender's queue pair is of a parent domain.
  bool talk_reliably() {
    ibv_sge sge = part(kRarerBytes / 2, kRarerBytes / 2);
    ibv_recv_wr taken{};
    taken.sg_list = &sge;
    taken.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return lead_both(0) && note("ibv_post_srq_recv", ibv_post_srq_recv(srq_, &taken, &bad)) &&
           send(qps_[0], kRarerBytes / 2) && collect(cq_, 1) && collect_extended();
  }
  bool use_window() {
    if (!make("ibv_alloc_mw", window_, [&] { return ibv_alloc_mw(pd_, IBV_MW_TYPE_1); }))
      return false;
    ibv_mw_bind asked{};
    asked.send_flags = IBV_SEND_SIGNALED;
    asked.bind_info = {mr_, reinterpret_cast<std::uintptr_t>(ours_), 4096, IBV_ACCESS_REMOTE_WRITE};
    return note("ibv_bind_mw", ibv_bind_mw(qps_[1], window_, &asked)) && collect(cq_, 1);
  }
  /// What is sent may be lost on the way to a receiver that cannot be reached, but not the word
  /// that it was sent.
  bool collect_or_lose(unsigned receives) {
    const Deadline deadline(500);
    unsigned sends = 1;
    while (sends + receives != 0) {
      ibv_wc found{};
      const int got = ibv_poll_cq(cq_, 1, &found);
      if (got < 0) broken("ibv_poll_cq", "answered " + std::to_string(got));
      if (got < 0) return false;
      if (got == 0) {
        if (!deadline.passed()) {
          sched_yield();
          continue;
        }
        if (sends != 0) return collect(cq_, 1);
        if (course_.refusal.empty()) course_.refusal = "a message was lost";
        return false;
      }
      if (failed_completion(found.status)) return false;
      unsigned& left = (found.opcode & IBV_WC_RECV) != 0 ? receives : sends;
      if (left == 0) {
        broken("ibv_poll_cq", "found more completions than requests");
        return false;
      }
      --left;
    }
    return true;
  }
  bool talk_unreliably() {
    return lead_both(2) && post_receive(qps_[3]) && send(qps_[2], 4096) && collect_or_lose(1);
  }
  bool talk_to_group() {
    ibv_ah_attr to_self{};
    to_self.dlid = port_.lid;
    to_self.port_num = 1;
    ibv_ah_attr to_group = to_self;
    to_group.dlid = kGroupLid;
    to_group.is_global = 1;
    to_group.grh.dgid = group_;
    to_group.grh.hop_limit = 1;
    if (!lead_both(4) ||
        !make("ibv_create_ah", ah_, [&] { return ibv_create_ah(pd_, &to_self); }) ||
        !make("ibv_create_ah", group_ah_, [&] { return ibv_create_ah(pd_, &to_group); }) ||
        !post_receive(qps_[5]) || !post_receive(qps_[5]) ||
        !send(qps_[4], 1024, ah_, qps_[5]->qp_num) || !collect_or_lose(1) ||
        !note("ibv_attach_mcast", ibv_attach_mcast(qps_[5], &group_, kGroupLid)))
      return false;
    member_ = qps_[5];
    return send(qps_[4], 1024, group_ah_, kGroupQpn) && collect_or_lose(1);
  }

  void clean_up() {
    end("ibv_detach_mcast", member_,
        [&](ibv_qp* qp) { return ibv_detach_mcast(qp, &group_, kGroupLid); });
    end("ibv_destroy_ah", group_ah_, ibv_destroy_ah);
    end("ibv_destroy_ah", ah_, ibv_destroy_ah);
    end("ibv_dealloc_mw", window_, [](ibv_mw* window) { return ibv_dealloc_mw(window); });
    for (ibv_qp*& qp : qps_) end("ibv_destroy_qp", qp, ibv_destroy_qp);
    end("ibv_destroy_srq", srq_, ibv_destroy_srq);
    end("ibv_destroy_cq", cq_, ibv_destroy_cq);
    end("ibv_destroy_cq", cq_ex_,
        [](ibv_cq_ex* cq) { return ibv_destroy_cq(ibv_cq_ex_to_cq(cq)); });
    for (ibv_mr** mr : {&dm_mr_, &null_, &changed_, &mr_}) end("ibv_dereg_mr", *mr, ibv_dereg_mr);
    end("ibv_free_dm", dm_, [](ibv_dm* dm) { return ibv_free_dm(dm); });
    end("vbt_destroy_pool", pool_, vbt_destroy_pool);
    for (void** block : {&huge_, &ours_, &mine_}) end("vbt_free", *block, vbt_free);
    end("ibv_dealloc_pd of a parent", parent_, ibv_dealloc_pd);
    end("ibv_dealloc_td", td_, [](ibv_td* td) { return ibv_dealloc_td(td); });
    end("ibv_dealloc_pd", pd_, ibv_dealloc_pd);
    end("ibv_close_device", context_, ibv_close_device);
    if (list_ != nullptr) ibv_free_device_list(list_);
  }

  ibv_device** list_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_port_attr port_{};
  ibv_gid group_{};
  ibv_pd* pd_ = nullptr;
  ibv_td* td_ = nullptr;
  ibv_pd* parent_ = nullptr;
  void* mine_ = nullptr;
  void* ours_ = nullptr;
  void* huge_ = nullptr;
  vbt_pool* pool_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_mr* changed_ = nullptr;
  ibv_mr* null_ = nullptr;
  ibv_dm* dm_ = nullptr;
  ibv_mr* dm_mr_ = nullptr;
  ibv_cq_ex* cq_ex_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  /// RC, UC and UD: the first of each pair sends by ibv_wr_*.
  std::array<ibv_qp*, 6> qps_{};
  ibv_mw* window_ = nullptr;
  ibv_ah* ah_ = nullptr;
  ibv_ah* group_ah_ = nullptr;
  ibv_qp* member_ = nullptr;
};

}  // namespace

Course make_the_rarer_objects() { return RarerObjects().hold(); }

}  // namespace verbatim::harness
