// SPDX-License-Identifier: BSD-2-Clause
#include "tests/vm/siw_end.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <verbatim/explain.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <rdma/ib_user_verbs.h>

extern "C" void ibv_copy_qp_attr_from_kern(ibv_qp_attr* to, ib_uverbs_qp_attr* from);

namespace verbatim::vm {
namespace {

using Clock = std::chrono::steady_clock;

ibv_context* open_by_guid(const rdma_cm::Address& address) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  VM_REQUIRE(list != nullptr);
  ibv_context* context = nullptr;
  for (int i = 0; i < count && context == nullptr; ++i) {
    if (ibv_get_device_guid(list[i]) != address.node_guid) continue;
    VM_REQUIRE(std::strcmp(ibv_get_device_name(list[i]), "siw0") == 0);
    VM_REQUIRE(list[i]->transport_type == IBV_TRANSPORT_IWARP);
    VM_REQUIRE(ibv_get_device_index(list[i]) == address.device_index);
    context = ibv_open_device(list[i]);
  }
  ibv_free_device_list(list);
  return context;
}

}  // namespace

void fail(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: not so: %s (errno %d, %s)\n", file, line, what, errno,
               std::strerror(errno));
  std::exit(1);
}

ibv_context* open_siw() {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  VM_REQUIRE(list != nullptr);
  ibv_context* context = nullptr;
  for (int i = 0; i < count; ++i) {
    if (std::strcmp(ibv_get_device_name(list[i]), "siw0") == 0) context = ibv_open_device(list[i]);
  }
  ibv_free_device_list(list);
  VM_REQUIRE(context != nullptr);
  return context;
}

rdma_cm::Event next_event(rdma_cm::EventChannel& channel, rdma_cm::EventType type) {
  rdma_cm::Event event;
  const int error = channel.get_event(event, kPatience);
  if (error != 0 || event.type != type) {
    std::fprintf(stderr, "event: error %d, type %d (wanted %d), status %d\n", error,
                 static_cast<int>(event.type), static_cast<int>(type), event.status);
    std::exit(1);
  }
  return event;
}

End::~End() {
  if (qp != nullptr) VM_REQUIRE(ibv_destroy_qp(qp) == 0);
  if (id.alive()) VM_REQUIRE(id.destroy() == 0);
  if (srq != nullptr) VM_REQUIRE(ibv_destroy_srq(srq) == 0);
  if (cq_ != nullptr) VM_REQUIRE(ibv_destroy_cq(cq_) == 0);
  if (events_ != nullptr) VM_REQUIRE(ibv_destroy_comp_channel(events_) == 0);
  if (lent_ != nullptr) VM_REQUIRE(ibv_dereg_mr(lent_) == 0);
  if (mr_ != nullptr) VM_REQUIRE(ibv_dereg_mr(mr_) == 0);
  if (pd_ != nullptr) VM_REQUIRE(ibv_dealloc_pd(pd_) == 0);
  if (context_ != nullptr) VM_REQUIRE(ibv_close_device(context_) == 0);
}

void End::close() {
  VM_REQUIRE(ibv_close_device(context_) == 0);
  context_ = nullptr;
}

void End::resolve(const char* address, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  VM_REQUIRE(::inet_pton(AF_INET, address, &to.sin_addr) == 1);
  VM_REQUIRE(id.create(channel_, RDMA_PS_TCP) == 0);
  VM_REQUIRE(id.resolve_addr(nullptr, reinterpret_cast<const sockaddr*>(&to), kPatience) == 0);
  next_event(channel_, rdma_cm::EventType::kAddrResolved);
  VM_REQUIRE(id.resolve_route(kPatience) == 0);
  next_event(channel_, rdma_cm::EventType::kRouteResolved);
}

void End::adopt(const rdma_cm::Event& request) {
  VM_REQUIRE(id.adopt(channel_, request) == 0);
  take_remote(request);
}

void End::make_completion_queue(bool with_cursor) {
  if (!with_cursor) {
    cq_ = ibv_create_cq(context_, 100, nullptr, events_, 0);
  } else {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 100;
    attr.channel = events_;
    attr.wc_flags = IBV_WC_STANDARD_FLAGS;
    cursor_ = ibv_create_cq_ex(context_, &attr);
    VM_REQUIRE(cursor_ != nullptr);
    cq_ = ibv_cq_ex_to_cq(cursor_);
  }
  VM_REQUIRE(cq_ != nullptr && cq_->cqe == 128);
}

void End::make_queues(Shape shape) {
  rdma_cm::Address address;
  VM_REQUIRE(id.query_addr(address) == 0);
  context_ = open_by_guid(address);
  VM_REQUIRE(context_ != nullptr);
  pd_ = ibv_alloc_pd(context_);
  VM_REQUIRE(pd_ != nullptr);
  mr_ = ibv_reg_mr(pd_, memory(), kBytes,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  VM_REQUIRE(mr_ != nullptr && mr_->lkey == mr_->rkey);
  lent_ =
      ibv_reg_mr(pd_, memory() + kTarget, kLent, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  VM_REQUIRE(lent_ != nullptr);
  events_ = ibv_create_comp_channel(context_);
  VM_REQUIRE(events_ != nullptr);
  make_completion_queue(shape.cursor);
  if (shape.srq) {
    ibv_srq_init_attr attr{};
    attr.attr.max_wr = kReceives;
    attr.attr.max_sge = 1;
    srq = ibv_create_srq(pd_, &attr);
    VM_REQUIRE(srq != nullptr);
  }
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = attr.recv_cq = cq_;
  attr.srq = srq;
  attr.pd = pd_;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {20, srq == nullptr ? 2 * kReceives : 0u, 4, srq == nullptr ? 2u : 0u, 64};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV |
                        IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
  qp = ibv_create_qp_ex(context_, &attr);
  VM_REQUIRE(qp != nullptr && attr.cap.max_send_wr == 32);
  extended = ibv_qp_to_qp_ex(qp);
  ib_uverbs_qp_attr told;
  VM_REQUIRE(id.init_qp_attr(IBV_QPS_INIT, told) == 0);
  ibv_qp_attr init{};
  ibv_copy_qp_attr_from_kern(&init, &told);
  VM_REQUIRE(ibv_modify_qp(qp, &init, static_cast<int>(told.qp_attr_mask)) == 0);
  VM_REQUIRE(send(IBV_WR_SEND, 0, 8) == EINVAL);  // there is no connection
  for (int slot = 0; slot < kReceives; ++slot) post_receive(slot);
  own_ = {reinterpret_cast<std::uintptr_t>(memory()), mr_->rkey, lent_->rkey};
}

rdma_cm::Parameters End::parameters() {
  rdma_cm::Parameters parameters;
  parameters.qp_num = qp->qp_num;
  parameters.private_data = {reinterpret_cast<const unsigned char*>(&own_), sizeof own_};
  parameters.responder_resources = 16;
  parameters.initiator_depth = 16;
  return parameters;
}

void End::take_remote(const rdma_cm::Event& event) {
  VM_REQUIRE(event.parameters.private_data_len >= sizeof remote);
  std::memcpy(&remote, event.parameters.private_data, sizeof remote);
}

void End::post_receive(int slot) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(received(static_cast<std::uint64_t>(slot))), kSlot,
              lkey()};
  ibv_recv_wr wr{};
  wr.wr_id = static_cast<std::uint64_t>(slot);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  VM_REQUIRE((srq != nullptr ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)) ==
             0);
}

int End::send(const ibv_send_wr& wr) {
  ibv_send_wr one = wr;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &one, &bad);
}

int End::send(ibv_wr_opcode opcode, std::size_t offset, std::size_t length, std::size_t at,
              unsigned flags) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory() + offset),
              static_cast<std::uint32_t>(length), lkey()};
  ibv_send_wr wr{};
  wr.wr_id = 1000 + offset;
  wr.sg_list = &sge;
  wr.num_sge = length == 0 ? 0 : 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED | flags;
  wr.wr.rdma = {remote.address + at, remote.rkey};
  return send(wr);
}

/// What a completion of the cursor's carries, as the classic call would tell it.
ibv_wc read_by_cursor(ibv_cq_ex* cq) {
  ibv_wc wc{};
  wc.status = cq->status;
  wc.wr_id = cq->wr_id;
  wc.opcode = ibv_wc_read_opcode(cq);
  wc.vendor_err = ibv_wc_read_vendor_err(cq);
  wc.byte_len = ibv_wc_read_byte_len(cq);
  wc.qp_num = ibv_wc_read_qp_num(cq);
  wc.wc_flags = ibv_wc_read_wc_flags(cq);
  wc.invalidated_rkey = ibv_wc_read_invalidated_rkey(cq);
  VM_REQUIRE(ibv_wc_read_src_qp(cq) == 0 && ibv_wc_read_slid(cq) == 0 && ibv_wc_read_sl(cq) == 0 &&
             ibv_wc_read_dlid_path_bits(cq) == 0);
  return wc;
}

/// A turn of the cursor takes all there is.
bool End::look_by_cursor(ibv_wc& wc) {
  if (gathered_.empty()) {
    ibv_poll_cq_attr attr{};
    const int error = ibv_start_poll(cursor_, &attr);
    if (error == ENOENT) return false;
    VM_REQUIRE(error == 0);
    int more = 0;
    do gathered_.push_back(read_by_cursor(cursor_));
    while ((more = ibv_next_poll(cursor_)) == 0);
    VM_REQUIRE(more == ENOENT);
    ibv_end_poll(cursor_);
  }
  wc = gathered_.front();
  gathered_.pop_front();
  return true;
}

bool End::look(ibv_wc& wc) {
  if (cursor_ != nullptr) return look_by_cursor(wc);
  const int found = ibv_poll_cq(cq_, 1, &wc);
  VM_REQUIRE(found == 0 || found == 1);
  return found == 1;
}

bool End::idle() {
  ibv_wc wc;
  return passed_over_.empty() && !look(wc);
}

ibv_wc End::poll() {
  const auto end = Clock::now() + std::chrono::milliseconds(kPatience);
  ibv_wc wc{};
  bool found = false;
  while (!(found = look(wc)) && Clock::now() < end) {
  }
  VM_REQUIRE(found);
  VM_REQUIRE(wc.qp_num == qp->qp_num);
  return wc;
}

ibv_wc End::next() {
  if (passed_over_.empty()) return poll();
  const ibv_wc wc = passed_over_.front();
  passed_over_.erase(passed_over_.begin());
  return wc;
}

ibv_wc End::next(ibv_wc_opcode opcode) {
  // An answer may be here before what it answers is known to have been sent.
  const auto of_that_side = [opcode](const ibv_wc& wc) {
    return ((wc.opcode ^ opcode) & IBV_WC_RECV) == 0;
  };
  const auto passed = std::find_if(passed_over_.begin(), passed_over_.end(), of_that_side);
  ibv_wc wc{};
  if (passed != passed_over_.end()) {
    wc = *passed;
    passed_over_.erase(passed);
  } else {
    for (wc = poll(); !of_that_side(wc); wc = poll()) passed_over_.push_back(wc);
  }
  if (wc.status != IBV_WC_SUCCESS || wc.opcode != opcode) {
    std::fprintf(stderr, "completion: %s, opcode %d (wanted %d)\n", ibv_wc_status_str(wc.status),
                 static_cast<int>(wc.opcode), static_cast<int>(opcode));
    VM_REQUIRE(wc.status == IBV_WC_SUCCESS);
    VM_REQUIRE(wc.opcode == opcode);
  }
  return wc;
}

ibv_wc End::next_by_event() {
  ibv_cq* told = nullptr;
  void* user = nullptr;
  pollfd polled{events_->fd, POLLIN, 0};
  VM_REQUIRE(::poll(&polled, 1, kPatience) == 1);
  VM_REQUIRE(ibv_get_cq_event(events_, &told, &user) == 0 && told == cq_);
  ibv_ack_cq_events(cq_, 1);
  return next();
}

ibv_async_event End::next_async(ibv_event_type type) {
  ibv_async_event event{};
  do {
    pollfd polled{context_->async_fd, POLLIN, 0};
    VM_REQUIRE(::poll(&polled, 1, kPatience) == 1);
    VM_REQUIRE(ibv_get_async_event(context_, &event) == 0);
    ibv_ack_async_event(&event);
    std::printf("event: %s\n", ibv_event_type_str(event.event_type));
    VM_REQUIRE(event.event_type == type || event.event_type == IBV_EVENT_SQ_DRAINED ||
               event.event_type == IBV_EVENT_COMM_EST);
  } while (event.event_type != type);
  return event;
}

std::string End::explained(const ibv_wc* wc) {
  char line[1024];
  VM_REQUIRE(vbt_explain(qp, wc, line, sizeof line) > 0);
  std::printf("%s\n", line);
  return line;
}

ibv_qp_state End::state() {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  VM_REQUIRE(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
  VM_REQUIRE(attr.qp_state == qp->state);
  return attr.qp_state;
}

}  // namespace verbatim::vm
