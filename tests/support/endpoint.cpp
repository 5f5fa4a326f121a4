// SPDX-License-Identifier: BSD-2-Clause
//
// Endpoint: memory, objects and the state machine. What moves data is in endpoint_traffic.cpp.
#include "tests/support/endpoint.hpp"

#include <gtest/gtest.h>
#include <verbatim/memory.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/support/fail.hpp"
#include "tests/support/pattern.hpp"

namespace verbatim::harness {
namespace {

std::shared_ptr<void> shared_memory(std::uint64_t size) {
  void* memory = vbt_alloc_shared(size);
  if (memory == nullptr) fail("vbt_alloc_shared", errno);
  return {memory, [](void* p) {
            if (const int error = vbt_free_shared(p))
              report_failed_destroy("vbt_free_shared", error);
          }};
}

std::shared_ptr<void> ordinary_memory(std::uint64_t size) {
  void* memory = std::calloc(1, size);
  if (memory == nullptr) fail("calloc", errno);
  return {memory, std::free};
}

bool answers_reads(ibv_qp_type type) { return type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV; }

std::uint8_t at_most(std::uint8_t wish, int limit) {
  return static_cast<std::uint8_t>(std::min<int>(wish, limit));
}

}  // namespace

Endpoint::~Endpoint() = default;

unsigned char* Endpoint::bytes(std::int32_t region) {
  return regions_.at(static_cast<std::size_t>(region)).start;
}

RegionInfo Endpoint::add_region(Region region, int access, ibv_pd* in) {
  region.mr.reset(ibv_reg_mr(in, region.start, region.size, access));
  if (!region.mr) fail("ibv_reg_mr", errno);
  region.iova = reinterpret_cast<std::uintptr_t>(region.start);
  return keep_region(std::move(region));
}

RegionInfo Endpoint::allocate(MemoryKind kind, std::uint64_t size, int access) {
  Region region;
  region.memory = kind == MemoryKind::kMapped ? shared_memory(size) : ordinary_memory(size);
  region.start = static_cast<unsigned char*>(region.memory.get());
  region.size = size;
  return add_region(std::move(region), access, pd());
}

RegionInfo Endpoint::register_part(std::int32_t region, std::uint64_t offset, std::uint64_t size,
                                   int access) {
  const Region& whole = regions_.at(static_cast<std::size_t>(region));
  Region part;
  part.memory = whole.memory;
  part.start = whole.start + offset;
  part.size = size;
  return add_region(std::move(part), access, pd());
}

RegionInfo Endpoint::register_foreign(std::int32_t region, int access) {
  const Region& ours = regions_.at(static_cast<std::size_t>(region));
  Region theirs;
  theirs.memory = ours.memory;
  theirs.start = ours.start;
  theirs.size = ours.size;
  return add_region(std::move(theirs), access, foreign_pd());
}

std::int32_t Endpoint::reregister(std::int32_t region, std::int32_t flags, std::uint64_t offset,
                                  std::uint64_t size, std::int32_t access) {
  Region& old = regions_.at(static_cast<std::size_t>(region));
  auto* const start = static_cast<unsigned char*>(old.memory.get()) + offset;
  // What it returns is a code of its own (man ibv_rereg_mr).
  if (ibv_rereg_mr(old.mr.get(), flags, pd(), start, size, access) != 0) return errno;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    old.start = start;
    old.size = size;
    old.iova = reinterpret_cast<std::uintptr_t>(start);
  }
  old.lkey = old.mr->lkey;
  return 0;
}

RegionInfo Endpoint::region_info(std::int32_t id) {
  const Region& region = regions_.at(static_cast<std::size_t>(id));
  return {id, region.mr->lkey, region.mr->rkey, region.iova, region.size};
}

std::int32_t Endpoint::deregister(std::int32_t region) {
  Region& doomed = regions_.at(static_cast<std::size_t>(region));
  const int error = ibv_dereg_mr(doomed.mr.get());
  if (error == 0) (void)doomed.mr.release();
  return error;
}

void Endpoint::fill(std::int32_t region, std::uint64_t offset, std::uint64_t length,
                    std::uint32_t seed) {
  fill_pattern({bytes(region) + offset, length}, seed);
}

std::int64_t Endpoint::mismatch(std::int32_t region, std::uint64_t offset, std::uint64_t length,
                                std::uint32_t seed) {
  return pattern_mismatch({bytes(region) + offset, length}, seed);
}

void Endpoint::set(std::int32_t region, std::uint64_t offset, std::uint64_t length,
                   std::uint8_t byte) {
  std::memset(bytes(region) + offset, byte, length);
}

std::vector<std::uint8_t> Endpoint::peek(std::int32_t region, std::uint64_t offset,
                                         std::uint64_t length) {
  const unsigned char* from = bytes(region) + offset;
  return {from, from + length};
}

void Endpoint::poke(std::int32_t region, std::uint64_t offset, std::vector<std::uint8_t> data) {
  std::copy(data.begin(), data.end(), bytes(region) + offset);
}

// Watching memory that a peer writes is a race by the language and the point of RDMA: not
// ThreadSanitizer's business.
__attribute__((no_sanitize("thread"))) std::uint64_t Endpoint::load(std::int32_t region,
                                                                    std::uint64_t offset) {
  return __atomic_load_n(reinterpret_cast<std::uint64_t*>(bytes(region) + offset),
                         __ATOMIC_ACQUIRE);
}

void Endpoint::store(std::int32_t region, std::uint64_t offset, std::uint64_t value) {
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(bytes(region) + offset)).store(value);
}

void Endpoint::await_word(std::int32_t region, std::uint64_t offset, std::uint64_t value) {
  if (!wait_until([&] { return load(region, offset) == value; })) {
    throw std::runtime_error("the word in memory never changed to what was awaited");
  }
}

std::shared_ptr<ibv_comp_channel> Endpoint::new_channel() {
  ibv_comp_channel* channel = ibv_create_comp_channel(context());
  if (channel == nullptr) fail("ibv_create_comp_channel", errno);
  return {channel, Destroyer{}};
}

ibv_pd* Endpoint::new_domain() {
  ibv_td_init_attr none{};
  domains_.emplace_back(ibv_alloc_td(context(), &none));
  if (!domains_.back()) fail("ibv_alloc_td", errno);
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd();
  attr.td = domains_.back().get();
  parents_.emplace_back(ibv_alloc_parent_domain(context(), &attr));
  if (!parents_.back()) fail("ibv_alloc_parent_domain", errno);
  return parents_.back().get();
}

std::int32_t Endpoint::add_cq(std::int32_t depth, std::shared_ptr<ibv_comp_channel> channel,
                              ibv_pd* parent) {
  Cq cq;
  cq.channel = std::move(channel);
  if (parent == nullptr) {
    cq.handle.reset(ibv_create_cq(context(), depth, nullptr, cq.channel.get(), 0));
  } else {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = static_cast<std::uint32_t>(depth);
    attr.channel = cq.channel.get();
    attr.wc_flags = IBV_WC_STANDARD_FLAGS;
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    attr.parent_domain = parent;
    if (ibv_cq_ex* const made = ibv_create_cq_ex(context(), &attr))
      cq.handle.reset(ibv_cq_ex_to_cq(made));
  }
  if (!cq.handle) fail("ibv_create_cq", errno);
  cqs_.push_back(std::move(cq));
  return static_cast<std::int32_t>(cqs_.size() - 1);
}

std::int32_t Endpoint::adopt_cq(ibv_cq* made) {
  if (made == nullptr) fail("the CQ to adopt", errno);
  Cq cq;
  cq.handle.reset(made);
  cqs_.push_back(std::move(cq));
  return static_cast<std::int32_t>(cqs_.size() - 1);
}

std::int32_t Endpoint::create_cq(std::int32_t depth, std::int32_t with_channel) {
  return add_cq(depth, with_channel != 0 ? new_channel() : nullptr);
}

std::int32_t Endpoint::cq_depth(std::int32_t id) { return cq(id)->cqe; }

QpInfo Endpoint::create_qp(QpWish wish) {
  QpInfo made;
  const auto channel = wish.with_channel != 0 ? new_channel() : nullptr;
  ibv_pd* const parent = wish.in_domain != 0 ? new_domain() : nullptr;
  made.send_cq = wish.send_cq >= 0 ? wish.send_cq : add_cq(wish.cq_depth, channel, parent);
  made.receive_cq = wish.receive_cq >= 0 ? wish.receive_cq : add_cq(wish.cq_depth, channel, parent);
  ibv_qp_init_attr init{};
  init.send_cq = cq(made.send_cq);
  init.recv_cq = cq(made.receive_cq);
  init.cap = {wish.send_depth, wish.receive_depth, wish.max_sge, wish.max_sge, wish.max_inline};
  init.qp_type = wish.type;
  init.sq_sig_all = wish.signal_all;
  if (wish.srq >= 0) init.srq = srq(wish.srq);
  Qp qp;
  if (wish.type == IBV_QPT_XRC_RECV) {
    ibv_qp_init_attr_ex extended{};
    extended.qp_type = wish.type;
    extended.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    extended.xrcd = xrcd();
    qp.handle.reset(ibv_create_qp_ex(context(), &extended));
  } else if (wish.send_ops != 0 || parent != nullptr) {
    ibv_qp_init_attr_ex extended{};
    extended.qp_type = wish.type;
    extended.send_cq = init.send_cq;
    extended.recv_cq = init.recv_cq;
    extended.srq = init.srq;
    extended.cap = init.cap;
    extended.sq_sig_all = init.sq_sig_all;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    extended.pd = parent != nullptr ? parent : pd();
    extended.send_ops_flags = wish.send_ops;
    qp.handle.reset(ibv_create_qp_ex(context(), &extended));
    init.cap = extended.cap;
  } else {
    if (wish.type == IBV_QPT_XRC_SEND) init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
    qp.handle.reset(ibv_create_qp(pd(), &init));
  }
  if (!qp.handle) fail("ibv_create_qp", errno);
  made.type = wish.type;
  made.id = static_cast<std::int32_t>(qps_.size());
  made.qpn = qp.handle->qp_num;
  made.psn = (made.qpn * 0x9E3779B1u) & 0xFFFFFF;
  made.lid = session_->port.lid;
  made.gid = session_->gid;
  made.cap = init.cap;
  made.vendor = session_->attr.vendor_id;
  qp.info = made;
  qps_.push_back(std::move(qp));
  return made;
}

std::int32_t Endpoint::destroy_qp(std::int32_t id) {
  QpHandle& handle = qps_.at(static_cast<std::size_t>(id)).handle;
  const int error = ibv_destroy_qp(handle.get());
  if (error == 0) (void)handle.release();
  return error;
}

std::int32_t Endpoint::destroy_cq(std::int32_t id) {
  CqHandle& handle = cqs_.at(static_cast<std::size_t>(id)).handle;
  const int error = ibv_destroy_cq(handle.get());
  if (error == 0) (void)handle.release();
  return error;
}

std::int32_t Endpoint::to_init(std::int32_t id, Link link) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.pkey_index = 0;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(link.access);
  attr.qkey = link.qkey;
  const int rights = info(id).type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  return ibv_modify_qp(qp(id), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | rights);
}

std::int32_t Endpoint::to_rtr(std::int32_t id, QpInfo remote, Link link) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  if (info(id).type == IBV_QPT_UD) return ibv_modify_qp(qp(id), &attr, IBV_QP_STATE);
  attr.path_mtu = std::min(link.mtu, session_->port.active_mtu);
  attr.dest_qp_num = remote.qpn;
  attr.rq_psn = remote.psn;
  attr.max_dest_rd_atomic = at_most(link.max_rd_atomic, session_->attr.max_qp_rd_atom);
  attr.min_rnr_timer = link.min_rnr_timer;
  attr.ah_attr = path_to(remote, link.use_gid != 0);
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (answers_reads(info(id).type)) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  return ibv_modify_qp(qp(id), &attr, mask);
}

std::int32_t Endpoint::to_rts(std::int32_t id, Link link) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = link.timeout;
  attr.retry_cnt = link.retry_count;
  attr.rnr_retry = link.rnr_retry;
  attr.sq_psn = info(id).psn;
  attr.max_rd_atomic = at_most(link.max_rd_atomic, session_->attr.max_qp_init_rd_atom);
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  const ibv_qp_type type = info(id).type;
  if (type == IBV_QPT_XRC_RECV) mask |= IBV_QP_TIMEOUT;
  if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND) {
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  return ibv_modify_qp(qp(id), &attr, mask);
}

std::int32_t Endpoint::to_state(std::int32_t id, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  return ibv_modify_qp(qp(id), &attr, IBV_QP_STATE);
}

void Endpoint::connect(std::int32_t id, QpInfo remote, Link link) {
  if (const int error = to_init(id, link)) fail("RESET to INIT", error);
  if (const int error = to_rtr(id, remote, link)) fail("INIT to RTR", error);
  if (const int error = to_rts(id, link)) fail("RTR to RTS", error);
}

std::int32_t Endpoint::state(std::int32_t id) { return query_qp(id).qp_state; }

std::int32_t Endpoint::modify_qp(std::int32_t id, ibv_qp_attr attr, std::int32_t mask) {
  return ibv_modify_qp(qp(id), &attr, mask);
}

ibv_qp_attr Endpoint::query_qp(std::int32_t id) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  if (const int error = ibv_query_qp(qp(id), &attr, IBV_QP_STATE, &init)) fail("query_qp", error);
  return attr;
}

}  // namespace verbatim::harness
