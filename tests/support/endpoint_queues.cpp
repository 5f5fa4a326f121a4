// SPDX-License-Identifier: BSD-2-Clause
//
// Endpoint: shared receive queues, XRC domains, address handles, multicast groups.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/support/endpoint.hpp"
#include "tests/support/fail.hpp"

namespace verbatim::harness {

ibv_xrcd* Endpoint::xrcd() {
  if (xrcd_) return xrcd_.get();
  ibv_xrcd_init_attr attr{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
  xrcd_.reset(ibv_open_xrcd(context(), &attr));
  if (!xrcd_) fail("ibv_open_xrcd", errno);
  return xrcd_.get();
}

void Endpoint::use_xrcd_of(std::string path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) fail(path, errno);
  ibv_xrcd_init_attr attr{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, file, O_CREAT};
  xrcd_.reset(ibv_open_xrcd(context(), &attr));
  const int error = errno;
  close(file);
  if (!xrcd_) fail("ibv_open_xrcd", error);
}

QpInfo Endpoint::open_qp(std::uint32_t qpn) {
  ibv_qp_open_attr attr{};
  attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  attr.qp_num = qpn;
  attr.xrcd = xrcd();
  attr.qp_type = IBV_QPT_XRC_RECV;
  Qp opened;
  opened.handle.reset(ibv_open_qp(context(), &attr));
  if (!opened.handle) fail("ibv_open_qp", errno);
  opened.info.id = static_cast<std::int32_t>(qps_.size());
  opened.info.qpn = opened.handle->qp_num;
  opened.info.type = IBV_QPT_XRC_RECV;
  qps_.push_back(std::move(opened));
  return qps_.back().info;
}

SrqInfo Endpoint::create_srq(SrqWish wish) {
  SrqInfo made;
  made.granted = {wish.depth, wish.max_sge, wish.limit};
  Srq srq;
  if (wish.xrc == 0) {
    ibv_srq_init_attr init{};
    init.attr = made.granted;
    srq.handle.reset(ibv_create_srq(pd(), &init));
    made.granted = init.attr;
  } else {
    const auto channel = wish.with_channel != 0 ? new_channel() : nullptr;
    made.cq = add_cq(static_cast<std::int32_t>(wish.depth), channel);
    ibv_srq_init_attr_ex init{};
    init.attr = made.granted;
    init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ;
    init.srq_type = IBV_SRQT_XRC;
    init.pd = pd();
    init.xrcd = xrcd();
    init.cq = cq(made.cq);
    srq.handle.reset(ibv_create_srq_ex(context(), &init));
    made.granted = init.attr;
  }
  if (!srq.handle) fail("ibv_create_srq", errno);
  if (wish.xrc != 0) {
    if (const int error = ibv_get_srq_num(srq.handle.get(), &made.srqn)) fail("srq_num", error);
  }
  made.id = static_cast<std::int32_t>(srqs_.size());
  srqs_.push_back(std::move(srq));
  return made;
}

std::int32_t Endpoint::destroy_srq(std::int32_t id) {
  SrqHandle& handle = srqs_.at(static_cast<std::size_t>(id)).handle;
  const int error = ibv_destroy_srq(handle.get());
  if (error == 0) (void)handle.release();
  return error;
}

std::int32_t Endpoint::modify_srq(std::int32_t id, ibv_srq_attr attr, std::int32_t mask) {
  return ibv_modify_srq(srq(id), &attr, mask);
}

ibv_srq_attr Endpoint::query_srq(std::int32_t id) {
  ibv_srq_attr attr{};
  if (const int error = ibv_query_srq(srq(id), &attr)) fail("ibv_query_srq", error);
  return attr;
}

std::int32_t Endpoint::add_ah(ibv_ah* ah) {
  if (ah == nullptr) fail("ibv_create_ah", errno);
  ahs_.emplace_back(ah);
  return static_cast<std::int32_t>(ahs_.size() - 1);
}

ibv_ah_attr Endpoint::path_to(const QpInfo& remote, bool global) {
  ibv_ah_attr path{};
  path.dlid = remote.lid;
  path.port_num = 1;
  if (global || session_->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    path.is_global = 1;
    path.grh.dgid = remote.gid;
    path.grh.sgid_index = session_->gid_index;
    path.grh.hop_limit = 1;
  }
  return path;
}

std::int32_t Endpoint::create_ah(QpInfo remote, std::int32_t global) {
  ibv_ah_attr path = path_to(remote, global != 0);
  return add_ah(ibv_create_ah(pd(), &path));
}

std::int32_t Endpoint::create_ah_like(QpInfo remote, ibv_ah_attr wish) {
  ibv_ah_attr path = path_to(remote, wish.is_global != 0);
  path.sl = wish.sl;
  path.grh.flow_label = wish.grh.flow_label;
  path.grh.traffic_class = wish.grh.traffic_class;
  path.grh.hop_limit = wish.grh.hop_limit;
  return add_ah(ibv_create_ah(pd(), &path));
}

std::int32_t Endpoint::create_ah_from_wc(ibv_wc wc, std::int32_t region, std::uint64_t offset) {
  ibv_grh grh;
  std::memcpy(&grh, bytes(region) + offset, sizeof grh);
  return add_ah(ibv_create_ah_from_wc(pd(), &wc, &grh, 1));
}

std::int32_t Endpoint::create_multicast_ah(ibv_gid group, std::uint16_t lid) {
  ibv_ah_attr path{};
  path.dlid = lid;
  path.port_num = 1;
  path.is_global = 1;
  path.grh.dgid = group;
  path.grh.sgid_index = session_->gid_index;
  path.grh.hop_limit = 1;
  return add_ah(ibv_create_ah(pd(), &path));
}

std::int32_t Endpoint::attach(std::int32_t id, ibv_gid group, std::uint16_t lid) {
  return ibv_attach_mcast(qp(id), &group, lid);
}

std::int32_t Endpoint::detach(std::int32_t id, ibv_gid group, std::uint16_t lid) {
  return ibv_detach_mcast(qp(id), &group, lid);
}

}  // namespace verbatim::harness
