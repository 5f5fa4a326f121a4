// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/software/soft_device.hpp"

#include <endian.h>

#include <cerrno>

namespace verbatim {
namespace {

// Of ibv_port_attr, by the words of ibv_devinfo; IBTA 14.2.5.6.
constexpr std::uint8_t kPolling = 2, kDisabled = 3, kLinkUp = 5;
constexpr std::uint8_t k4X = 2, kEdr = 32;

}  // namespace

void describe_device(const QueueLimits& limits, ibv_device_attr_ex& attr) noexcept {
  ibv_device_attr& a = attr.orig_attr;
  a.max_mr_size = ~std::uint64_t{0};
  a.page_size_cap = ~std::uint64_t{0xfff};
  a.max_qp_wr = a.max_srq_wr = static_cast<int>(limits.max_wr);
  a.max_sge = a.max_sge_rd = a.max_srq_sge = static_cast<int>(limits.max_sge);
  a.max_cqe = static_cast<int>(limits.max_cqe);
  a.max_pd = a.max_ah = 1 << 24;
  a.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN;
  // They are the processor's own atomics, so it could be GLOB; but programs know adapters, and ask
  // for HCA alone. That the application's atomics see them is what PCI atomics would say.
  a.atomic_cap = IBV_ATOMIC_HCA;
  attr.pci_atomic_caps.fetch_add = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
  attr.pci_atomic_caps.compare_swap = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
  a.max_pkeys = 1;
  a.phys_port_cnt = 1;
  attr.phys_port_cnt_ex = 1;
}

void describe_port(bool is_up, bool is_ethernet, ibv_port_attr& attr) noexcept {
  attr.state = is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  // When it is down it says what adapters say of a cut line.
  attr.phys_state = is_up ? kLinkUp : is_ethernet ? kDisabled : kPolling;
  attr.max_mtu = attr.active_mtu = IBV_MTU_4096;
  attr.gid_tbl_len = attr.pkey_tbl_len = 1;
  attr.max_vl_num = 1;
  attr.active_width = k4X;
  attr.active_speed = kEdr;  // a name for "fast"
  attr.link_layer = is_ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  attr.sm_lid = is_ethernet ? 0 : 1;
}

int SoftPortVerbs::query_pkey(Context&, std::uint8_t, int index, __be16& pkey) noexcept {
  if (index != 0) return EINVAL;
  pkey = htobe16(0xffff);
  return 0;
}

}  // namespace verbatim
