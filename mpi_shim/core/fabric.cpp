// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/fabric.hpp"

#include <fcntl.h>
#include <verbatim/explain.h>
#include <verbatim/gid.h>
#include <verbatim/memory.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi_shim/core/pmi.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {

Fabric fabric;
Waiting waiting = Waiting::kShare;

namespace {

char reason[256];

const char* cannot(const char* what) noexcept {
  (void)std::snprintf(reason, sizeof reason, "%s: %s", what, std::strerror(errno));
  return reason;
}

bool is_active(ibv_context* context, std::uint8_t port_number, ibv_port_attr& out) noexcept {
  return ibv_query_port(context, port_number, &out) == 0 && out.state == IBV_PORT_ACTIVE;
}

/// All ranks are on this host, by the launcher's word, or their own.
bool is_one_host() noexcept {
  if (world.is_of_teams) return world.is_one_host;
  long number = 0;
  const char* const ranks = std::getenv("MPI_LOCALNRANKS");
  if (ranks != nullptr && parse_number(ranks, world.size, world.size, number)) return true;
  const char* const nodes = std::getenv("SLURM_STEP_NUM_NODES");
  return nodes != nullptr && parse_number(nodes, 1, 1, number);
}

/// Whether it is a device's turn. Within a host nothing is faster than its memory, beyond it that
/// leads nowhere.
bool is_in_turn(const char* name, const char* wanted, bool is_first_choice) noexcept {
  if (wanted != nullptr) return is_first_choice && std::strcmp(wanted, name) == 0;
  const bool is_memory = std::strncmp(name, "shm", 3) == 0;
  return (is_memory == is_one_host()) == is_first_choice;
}

}  // namespace

std::uint64_t hash_of_job() noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char* at = job_name(); *at != '\0'; ++at)
    hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3u;
  return hash;
}

const char* Fabric::open() noexcept {
  const char* wrong = open_device();
  if (wrong == nullptr) wrong = make_queues();
  if (wrong == nullptr) wrong = make_buffers();
  if (wrong != nullptr) close();
  return wrong;
}

/// The device that VERBATIM_MPI_DEVICE names, or the first in turn with an active port.
const char* Fabric::open_device() noexcept {
  const char* wanted = std::getenv("VERBATIM_MPI_DEVICE");
  if (wanted != nullptr && wanted[0] == '\0') wanted = nullptr;
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  if (devices == nullptr) return cannot("no list of devices");
  for (int tried = 0; tried < 2 * count && context == nullptr; ++tried) {
    ibv_device* const device = devices[tried % count];
    if (!is_in_turn(ibv_get_device_name(device), wanted, tried < count)) continue;
    context = ibv_open_device(device);
    if (context == nullptr) continue;
    ibv_device_attr attr{};
    bool is_usable = ibv_query_device(context, &attr) == 0 && attr.max_srq > 0;
    reads_ = static_cast<std::uint8_t>(
        std::clamp(std::min(attr.max_qp_rd_atom, attr.max_qp_init_rd_atom), 1, 16));
    port_number_ = 1;
    while (is_usable && !is_active(context, port_number_, port_))
      is_usable = port_number_++ < attr.phys_port_cnt;
    if (!is_usable) {
      (void)ibv_close_device(context);
      context = nullptr;
    }
  }
  ibv_free_device_list(devices);
  if (context == nullptr) {
    if (wanted != nullptr)
      (void)std::snprintf(reason, sizeof reason,
                          "VERBATIM_MPI_DEVICE names \"%.60s\", and there is no such device with "
                          "an active port",
                          wanted);
    else
      (void)std::snprintf(reason, sizeof reason,
                          "no RDMA device has an active port and shared receive queues: run "
                          "'verbatim doctor'");
    return reason;
  }
  longest = port_.max_msg_sz != 0 ? port_.max_msg_sz : 1u << 30;
  address.lid = port_.lid;
  ibv_gid_entry entry{};
  if (vbt_pick_gid(context, port_number_, nullptr, &entry, sizeof entry) == 0) {
    address.gid = entry.gid;
    gid_index_ = static_cast<std::uint8_t>(entry.gid_index);
  } else if (port_.link_layer == IBV_LINK_LAYER_ETHERNET) {
    return cannot("the port has no GID");
  }
  // Asynchronous events are looked for now and then, never waited for.
  const int flags = ::fcntl(context->async_fd, F_GETFL);
  if (flags < 0 || ::fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return cannot("asynchronous events cannot be read without waiting");
  return nullptr;
}

const char* Fabric::make_queues() noexcept {
  pd = ibv_alloc_pd(context);
  if (pd == nullptr) return cannot("no protection domain");
  if (waiting == Waiting::kSleep) {
    channel = ibv_create_comp_channel(context);
    if (channel == nullptr) return cannot("no completion channel");
    const int flags = ::fcntl(channel->fd, F_GETFL);
    if (flags < 0 || ::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0)
      return cannot("no completion channel");
  }
  completions_ = 4 * kSendQueue + kReceiveBuffers + 2 * kHelloBuffers;
  cq = ibv_create_cq(context, static_cast<int>(completions_), nullptr, channel, 0);
  if (cq == nullptr) return cannot("no completion queue");
  ibv_srq_init_attr shared{};
  shared.attr.max_wr = kReceiveBuffers;
  shared.attr.max_sge = 1;
  srq = ibv_create_srq(pd, &shared);
  if (srq == nullptr) return cannot("no shared receive queue");

  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_UD;
  init.cap = {.max_send_wr = kHelloBuffers,
              .max_recv_wr = kHelloBuffers,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = sizeof(Hello)};
  ud = ibv_create_qp(pd, &init);
  if (ud == nullptr) return cannot("no UD queue pair");
  key_ = static_cast<std::uint32_t>(hash_of_job()) & 0x7fffffffu;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = port_number_;
  attr.qkey = key_;
  if (ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0)
    return cannot("the UD queue pair cannot be used");
  attr.qp_state = IBV_QPS_RTR;
  if (ibv_modify_qp(ud, &attr, IBV_QP_STATE) != 0)
    return cannot("the UD queue pair cannot receive");
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = 0;
  if (ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
    return cannot("the UD queue pair cannot send");
  address.ud_qpn = ud->qp_num;
  return nullptr;
}

const char* Fabric::make_buffers() noexcept {
  constexpr std::size_t kBytes = std::size_t{kReceiveBuffers + kBounceBuffers} * kBufferBytes +
                                 std::size_t{kHelloBuffers} * kHelloBytes;
  memory = static_cast<unsigned char*>(vbt_alloc_shared(kBytes));
  if (memory == nullptr) return cannot("no memory for messages");
  // With remote rights peers of this host map it, and copy once.
  mr = ibv_reg_mr(pd, memory, kBytes,
                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (mr == nullptr) return cannot("memory for messages cannot be registered");
  std::uint32_t indices[kReceiveBuffers];
  for (std::uint32_t i = 0; i < kReceiveBuffers; ++i) indices[i] = i;
  post_receives(indices, kReceiveBuffers);
  for (std::uint32_t i = 0; i < kHelloBuffers; ++i) post_hello(i);
  for (std::uint32_t i = 0; i < kBounceBuffers; ++i)
    if (!free_bounces.push_back(i)) return cannot("no memory");
  return is_failed ? "no receives can be posted" : nullptr;
}

void Fabric::close() noexcept {
  if (ud != nullptr) (void)ibv_destroy_qp(ud);
  if (srq != nullptr) (void)ibv_destroy_srq(srq);
  if (cq != nullptr) (void)ibv_destroy_cq(cq);
  if (channel != nullptr) (void)ibv_destroy_comp_channel(channel);
  if (mr != nullptr) (void)ibv_dereg_mr(mr);
  if (memory != nullptr) (void)vbt_free_shared(memory);
  if (pd != nullptr) (void)ibv_dealloc_pd(pd);
  if (context != nullptr) (void)ibv_close_device(context);
  ud = nullptr;
  srq = nullptr;
  cq = nullptr;
  channel = nullptr;
  mr = nullptr;
  memory = nullptr;
  pd = nullptr;
  context = nullptr;
  free_bounces = {};
  pairs_ = 0;
}

void Fabric::post_receives(const std::uint32_t* indices, std::uint32_t count) noexcept {
  constexpr std::uint32_t kAtOnce = 16;
  ibv_sge pieces[kAtOnce];
  ibv_recv_wr requests[kAtOnce];
  while (count != 0) {
    const std::uint32_t now = std::min(count, kAtOnce);
    for (std::uint32_t i = 0; i < now; ++i) {
      pieces[i] = {reinterpret_cast<std::uintptr_t>(receive_buffer(indices[i])), kBufferBytes,
                   mr->lkey};
      requests[i] = {.wr_id = WorkId{WorkId::Kind::kReceive, 0, 0, indices[i]}.packed(),
                     .next = i + 1 < now ? &requests[i + 1] : nullptr,
                     .sg_list = &pieces[i],
                     .num_sge = 1};
    }
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_srq_recv(srq, requests, &bad) != 0) is_failed = true;
    indices += now;
    count -= now;
  }
}

void Fabric::post_hello(std::uint32_t index) noexcept {
  ibv_sge piece = {reinterpret_cast<std::uintptr_t>(hello_buffer(index)), kHelloBytes, mr->lkey};
  ibv_recv_wr request = {.wr_id = WorkId{WorkId::Kind::kHello, 0, 0, index}.packed(),
                         .next = nullptr,
                         .sg_list = &piece,
                         .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  if (ibv_post_recv(ud, &request, &bad) != 0) is_failed = true;
}

/// Every queue pair may leave as many completions as its queue is long.
bool Fabric::find_room_for_completions() noexcept {
  const std::uint32_t needed = (pairs_ + 1) * kSendQueue + kReceiveBuffers + 2 * kHelloBuffers;
  if (needed <= completions_) return true;
  const std::uint32_t asked = std::max(needed, 2 * completions_);
  if (ibv_resize_cq(cq, static_cast<int>(asked)) != 0) return false;
  completions_ = asked;
  return true;
}

ibv_qp* Fabric::make_queue_pair() noexcept {
  if (!find_room_for_completions()) return nullptr;
  ibv_qp* qp = nullptr;
  for (std::uint32_t inlined : {kWantedInline, 64u, 0u}) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.srq = srq;
    init.qp_type = IBV_QPT_RC;
    init.cap.max_send_wr = kSendQueue;
    init.cap.max_send_sge = 1;
    init.cap.max_inline_data = inlined;
    qp = ibv_create_qp(pd, &init);
    if (qp == nullptr) continue;
    inline_bytes = std::min(init.cap.max_inline_data, kWantedInline);
    break;
  }
  if (qp == nullptr) return nullptr;
  // Members of teams that are over end when they like; what ends a team is said by it.
  if (world.is_of_teams) (void)vbt_log_failures(qp, 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = port_number_;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
    (void)ibv_destroy_qp(qp);
    return nullptr;
  }
  ++pairs_;
  return qp;
}

ibv_ah_attr Fabric::path_to(const Address& peer) const noexcept {
  ibv_ah_attr path{};
  path.port_num = port_number_;
  path.dlid = peer.lid;
  if (port_.link_layer == IBV_LINK_LAYER_ETHERNET) {
    path.is_global = 1;
    path.grh.dgid = peer.gid;
    path.grh.sgid_index = gid_index_;
    path.grh.hop_limit = 64;
  }
  return path;
}

bool Fabric::connect(ibv_qp* qp, const Address& peer, std::uint32_t qpn) noexcept {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = port_.active_mtu;
  attr.dest_qp_num = qpn;
  attr.max_dest_rd_atomic = reads_;
  attr.min_rnr_timer = 1;
  attr.ah_attr = path_to(peer);
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
    return false;
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;  // for ever: a peer that computes drains nothing
  attr.max_rd_atomic = reads_;
  return ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

ibv_ah* Fabric::make_handle(const Address& peer) noexcept {
  ibv_ah_attr path = path_to(peer);
  return ibv_create_ah(pd, &path);
}

void Fabric::say_hello(ibv_ah* to, std::uint32_t qpn, const Hello& hello) noexcept {
  ibv_sge piece = {reinterpret_cast<std::uintptr_t>(&hello), sizeof hello, 0};
  ibv_send_wr request{};
  request.wr_id = WorkId{WorkId::Kind::kHelloSent, 1, 0, 0}.packed();
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  request.wr.ud.ah = to;
  request.wr.ud.remote_qpn = qpn;
  request.wr.ud.remote_qkey = key_;
  ibv_send_wr* bad = nullptr;
  // What does not go now is said again later.
  (void)ibv_post_send(ud, &request, &bad);
}

}  // namespace vmpi
