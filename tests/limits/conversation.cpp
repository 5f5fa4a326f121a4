// SPDX-License-Identifier: BSD-2-Clause
#include "tests/limits/conversation.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "tests/support/rc_states.hpp"
#include "verbatim/memory.h"

namespace verbatim::harness {
namespace {

constexpr std::size_t kBytes = 1u << 20;
constexpr std::int32_t kWaitMs = 10'000;

class Conversation {
 public:
  explicit Conversation(Side& partner) : partner_(partner), memory_(kBytes, 'v') {
    theirs_ = partner_.create_qp();
    their_memory_ = partner_.allocate(MemoryKind::kOrdinary, kBytes);
  }
  ~Conversation() {
    (void)partner_.deregister(their_memory_);
    (void)partner_.call<&Endpoint::destroy_qp>(theirs_.id);
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  Course hold() {
    course_.completed = open() && prepare() && talk_to_myself() && talk_to_partner();
    clean_up();
    return course_;
  }

 private:
  bool note(const char* verb, int error) {
    if (error == 0) return true;
    if (error < 0 || error > 4095) broken(verb, "answered " + std::to_string(error));
    if (course_.refusal.empty()) course_.refusal = std::string(verb) + ": " + std::strerror(error);
    return false;
  }
  void broken(const char* verb, const std::string& what) {
    if (course_.broken.empty()) course_.broken = std::string(verb) + " " + what;
  }
  /// A verb that makes something: NULL comes with an errno.
  template <class T, class Make>
  bool make(const char* verb, T*& out, Make&& make_it) {
    errno = 0;
    out = make_it();
    if (out != nullptr) return true;
    if (errno == 0) broken(verb, "made nothing and left errno 0");
    return note(verb, errno == 0 ? EIO : errno);
  }
  /// A verb that ends something: one failure of the system may make it refuse once, not twice.
  template <class T, class End>
  void end(const char* verb, T*& object, End&& end_it) {
    if (object == nullptr) return;
    if (int error = end_it(object); error != 0) {
      note(verb, error);
      error = end_it(object);
      if (error != 0) broken(verb, std::string("refuses for good: ") + std::strerror(error));
    }
    object = nullptr;
  }

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
  /// So many successes. A completion in error is a clean answer too; none at all is not.
  bool collect(unsigned wanted) {
    const Deadline deadline(kWaitMs);
    while (wanted != 0) {
      ibv_wc found{};
      const int got = ibv_poll_cq(cq_, 1, &found);
      if (got < 0) {
        broken("ibv_poll_cq", "answered " + std::to_string(got));
        return false;
      }
      if (got == 0) {
        if (deadline.passed()) {
          broken("ibv_poll_cq", "found no completion for a request that was accepted");
          return false;
        }
        sched_yield();
        continue;
      }
      if (found.status != IBV_WC_SUCCESS) {
        if (course_.refusal.empty())
          course_.refusal = std::string("completion: ") + ibv_wc_status_str(found.status);
        return false;
      }
      --wanted;
    }
    return true;
  }

  bool talk_to_myself() {
    return connect(qps_[0], qps_[1]->qp_num, port_.lid, 0) &&
           connect(qps_[1], qps_[0]->qp_num, port_.lid, 0) && post_receive(qps_[1]) &&
           post(qps_[0], IBV_WR_SEND, 8) && collect(2) && post_receive(qps_[1]) &&
           note("ibv_req_notify_cq", ibv_req_notify_cq(cq_, 0)) &&
           post(qps_[0], IBV_WR_SEND, 64u << 10) && collect(2);
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
  Course course_;
  ibv_device** list_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  void* shared_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_mr* shared_mr_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qps_[3] = {};
  ibv_port_attr port_{};
  ibv_gid gid_{};
};

}  // namespace

Course converse(Side& partner) { return Conversation(partner).hold(); }

}  // namespace verbatim::harness
