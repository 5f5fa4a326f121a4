// SPDX-License-Identifier: BSD-2-Clause
#include "perf/verbs/endpoint.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

#include "perf/ends/wire.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint8_t kPort = 1;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC;

template <class Object>
Object* must(Object* object, const char* what) {
  if (object == nullptr) throw_verbs(errno, what);
  return object;
}

void modify(ibv_qp* qp, ibv_qp_attr& attributes, int mask, const char* what) {
  const int error = ibv_modify_qp(qp, &attributes, mask);
  if (error != 0) throw_verbs(error, what);
}

std::byte* shared_memory(std::size_t size) {
  auto* memory = static_cast<std::byte*>(must(vbt_alloc_shared(size), "vbt_alloc_shared"));
  std::memset(memory, 0, size);
  return memory;
}

}  // namespace

void throw_verbs(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

void throw_bad_status(std::uint64_t wr_id, ibv_wc_status status) {
  throw std::runtime_error("completion of request " + std::to_string(wr_id) + ": " +
                           ibv_wc_status_str(status));
}

void await_completions(ibv_cq* cq, std::uint32_t count) {
  ibv_wc found[16];
  while (count > 0) {
    const std::size_t wanted = count < 16 ? count : 16;
    count -= static_cast<std::uint32_t>(poll_some(cq, std::span(found, wanted)));
  }
}

ContextHandle open_first_device() {
  int count = 0;
  ibv_device** list = must(ibv_get_device_list(&count), "ibv_get_device_list");
  ibv_context* context = count > 0 ? ibv_open_device(list[0]) : nullptr;
  const int error = count > 0 ? errno : ENODEV;
  ibv_free_device_list(list);
  if (context == nullptr) throw_verbs(error, "open the first device");
  return ContextHandle(context);
}

QpHandle create_rc_qp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq, std::uint32_t send_depth,
                      std::uint32_t recv_depth) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = send_cq;
  attributes.recv_cq = recv_cq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {send_depth, recv_depth, 1, 1, kInlineMax};
  return QpHandle(must(ibv_create_qp(pd, &attributes), "ibv_create_qp"));
}

QpHandle create_built_qp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq, std::uint32_t send_depth,
                         std::uint32_t recv_depth) {
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = send_cq;
  attributes.recv_cq = recv_cq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {send_depth, recv_depth, 1, 1, kInlineMax};
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attributes.pd = pd;
  attributes.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
  return QpHandle(must(ibv_create_qp_ex(pd->context, &attributes), "ibv_create_qp_ex"));
}

CqHandle create_cursor_cq(ibv_context* context, std::uint32_t entries, ibv_pd* parent,
                          std::uint32_t flags, std::uint64_t fields) {
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = entries;
  attributes.wc_flags = fields;
  if (parent != nullptr) attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  attributes.parent_domain = parent;
  if (flags != 0) attributes.comp_mask |= IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attributes.flags = flags;
  return CqHandle(
      ibv_cq_ex_to_cq(must(ibv_create_cq_ex(context, &attributes), "ibv_create_cq_ex")));
}

TdHandle create_thread_domain(ibv_context* context) {
  ibv_td_init_attr none{};
  return TdHandle(must(ibv_alloc_td(context, &none), "ibv_alloc_td"));
}

PdHandle create_parent_domain(ibv_pd* pd, ibv_td* domain) {
  ibv_parent_domain_init_attr attributes{};
  attributes.pd = pd;
  attributes.td = domain;
  return PdHandle(
      must(ibv_alloc_parent_domain(pd->context, &attributes), "ibv_alloc_parent_domain"));
}

QpAddress address_of(ibv_context* context, ibv_qp* qp) {
  QpAddress address{};
  ibv_port_attr port{};
  int error = ibv_query_port(context, kPort, &port);
  if (error != 0) throw_verbs(error, "ibv_query_port");
  error = ibv_query_gid(context, kPort, 0, &address.gid);
  if (error != 0) throw_verbs(errno, "ibv_query_gid");
  address.lid = port.lid;
  address.qpn = qp->qp_num;
  address.psn = (qp->qp_num * 2654435761u) & 0xffffff;
  return address;
}

void connect_rc(ibv_qp* qp, const QpAddress& own, const QpAddress& peer) {
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = kPort;
  init.qp_access_flags = kAccess;
  modify(qp, init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
         "modify QP to INIT");

  ibv_qp_attr rtr{};
  rtr.qp_state = IBV_QPS_RTR;
  rtr.path_mtu = IBV_MTU_4096;
  rtr.dest_qp_num = peer.qpn;
  rtr.rq_psn = peer.psn;
  rtr.max_dest_rd_atomic = 16;
  rtr.min_rnr_timer = 12;
  rtr.ah_attr.dlid = peer.lid;
  rtr.ah_attr.port_num = kPort;
  if (peer.lid == 0) {  // an Ethernet link has no LIDs
    rtr.ah_attr.is_global = 1;
    rtr.ah_attr.grh.dgid = peer.gid;
    rtr.ah_attr.grh.hop_limit = 1;
  }
  modify(qp, rtr,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "modify QP to RTR");

  ibv_qp_attr rts{};
  rts.qp_state = IBV_QPS_RTS;
  rts.timeout = 14;
  rts.retry_cnt = 7;
  rts.rnr_retry = 7;  // without end
  rts.sq_psn = own.psn;
  rts.max_rd_atomic = 16;
  modify(qp, rts,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "modify QP to RTS");
}

QpHandle create_sharing_qp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq, ibv_srq* srq) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = send_cq;
  attributes.recv_cq = recv_cq;
  attributes.srq = srq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {kSendDepth, 0, 1, 0, kInlineMax};
  return QpHandle(must(ibv_create_qp(pd, &attributes), "ibv_create_qp (SRQ)"));
}

QpHandle create_datagram_qp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = send_cq;
  attributes.recv_cq = recv_cq;
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap = {kSendDepth, kRecvDepth, 1, 1, kInlineMax};
  return QpHandle(must(ibv_create_qp(pd, &attributes), "ibv_create_qp (UD)"));
}

void start_datagrams(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qkey = kQkey;
  modify(qp, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
         "modify UD QP to INIT");
  attributes.qp_state = IBV_QPS_RTR;
  modify(qp, attributes, IBV_QP_STATE, "modify UD QP to RTR");
  attributes.qp_state = IBV_QPS_RTS;
  modify(qp, attributes, IBV_QP_STATE | IBV_QP_SQ_PSN, "modify UD QP to RTS");
}

AhHandle create_ah_to(ibv_pd* pd, const QpAddress& peer) {
  ibv_ah_attr attributes{};
  attributes.dlid = peer.lid;
  attributes.port_num = kPort;
  if (peer.lid == 0) {
    attributes.is_global = 1;
    attributes.grh.dgid = peer.gid;
    attributes.grh.hop_limit = 1;
  }
  return AhHandle(must(ibv_create_ah(pd, &attributes), "ibv_create_ah"));
}

Endpoint::Endpoint(End& end)
    : context_(open_first_device()),
      pd_(must(ibv_alloc_pd(context_.get()), "ibv_alloc_pd")),
      shared_memory_(shared_memory(2 * kAreaBytes)) {
  const Area areas[2] = {{shared_memory_.get(), shared_memory_.get() + kAreaBytes}, end.local()};
  for (std::size_t i = 0; i < 2; ++i) {
    mrs_[i].reset(must(ibv_reg_mr(pd_.get(), areas[i].out, 2 * kAreaBytes, kAccess), "ibv_reg_mr"));
    regions_[i] = {areas[i], mrs_[i]->lkey};
  }
  send_cq_ = create_cursor_cq(context_.get(), kSendDepth);
  recv_cq_ = create_cursor_cq(context_.get(), kRecvDepth);
  qp_ = create_built_qp(pd_.get(), send_cq_.get(), recv_cq_.get(), kSendDepth, kRecvDepth);

  channel_.reset(must(ibv_create_comp_channel(context_.get()), "ibv_create_comp_channel"));
  event_cq_.reset(
      must(ibv_create_cq(context_.get(), static_cast<int>(kRecvDepth), nullptr, channel_.get(), 0),
           "ibv_create_cq"));
  event_qp_ = create_rc_qp(pd_.get(), send_cq_.get(), event_cq_.get(), kSendDepth, kRecvDepth);
  domain_ = create_thread_domain(context_.get());
  parent_ = create_parent_domain(pd_.get(), domain_.get());
  domain_send_cq_ = create_cursor_cq(context_.get(), kSendDepth, parent_.get());
  domain_recv_cq_ = create_cursor_cq(context_.get(), kRecvDepth, parent_.get());
  domain_qp_ = create_built_qp(parent_.get(), domain_send_cq_.get(), domain_recv_cq_.get(),
                               kSendDepth, kRecvDepth);

  ibv_srq_init_attr shared{};
  shared.attr = {kRecvDepth, 1, 0};
  srq_.reset(must(ibv_create_srq(pd_.get(), &shared), "ibv_create_srq"));
  sharing_qp_ = create_sharing_qp(pd_.get(), send_cq_.get(), recv_cq_.get(), srq_.get());
  datagram_qp_ = create_datagram_qp(pd_.get(), send_cq_.get(), recv_cq_.get());

  struct Card {
    QpAddress qp, event, domain, sharing, datagram;
    RemoteRegion regions[2];
  };
  Card own{
      address_of(context_.get(), qp_.get()),          address_of(context_.get(), event_qp_.get()),
      address_of(context_.get(), domain_qp_.get()),   address_of(context_.get(), sharing_qp_.get()),
      address_of(context_.get(), datagram_qp_.get()), {}};
  for (std::size_t i = 0; i < 2; ++i) {
    own.regions[i] = {reinterpret_cast<std::uintptr_t>(areas[i].out),
                      reinterpret_cast<std::uintptr_t>(areas[i].in), mrs_[i]->rkey};
  }
  const Card peer = exchange_record(end.peer_fd(), own);
  for (std::size_t i = 0; i < 2; ++i) remotes_[i] = peer.regions[i];
  connect_rc(qp_.get(), own.qp, peer.qp);
  connect_rc(event_qp_.get(), own.event, peer.event);
  connect_rc(domain_qp_.get(), own.domain, peer.domain);
  connect_rc(sharing_qp_.get(), own.sharing, peer.sharing);
  start_datagrams(datagram_qp_.get());
  ah_ = create_ah_to(pd_.get(), peer.datagram);
  remote_datagram_qpn_ = peer.datagram.qpn;
  // Nobody sends before both are ready to receive.
  exchange_record(end.peer_fd(), own.qp.qpn);
}

Way Endpoint::way(Service service) const {
  Way way{qp_.get(), send_cq_.get(), recv_cq_.get(), nullptr, nullptr, 0, 0, nullptr};
  if (service == Service::kEvents) {
    way.qp = event_qp_.get();
    way.recv_cq = event_cq_.get();
    way.channel = channel_.get();
  } else if (service == Service::kDomain) {
    way.qp = domain_qp_.get();
    way.send_cq = domain_send_cq_.get();
    way.recv_cq = domain_recv_cq_.get();
  } else if (service == Service::kShared) {
    way.qp = sharing_qp_.get();
    way.srq = srq_.get();
  } else if (service == Service::kDatagram) {
    way.qp = datagram_qp_.get();
    way.ah = ah_.get();
    way.remote_qpn = remote_datagram_qpn_;
    way.header = kDatagramHeader;
  }
  return way;
}

void Endpoint::post_receives(Memory memory, std::uint64_t size, std::uint32_t count,
                             std::uint32_t slots, Service service) {
  const Region& region = this->region(memory);
  const Way way = this->way(service);
  size += way.header;
  for (std::uint32_t i = 0; i < count; ++i) {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(region.area.in + i % slots * size),
                   static_cast<std::uint32_t>(size), region.lkey};
    ibv_recv_wr request{};
    request.wr_id = i;
    request.sg_list = &sge;
    request.num_sge = 1;
    way.post_recv(&request);
  }
}

void run_connect(End& end, const Request&, Reply&) {
  end.endpoint_slot() = std::make_unique<Endpoint>(end);
}

}  // namespace verbatim::perf
