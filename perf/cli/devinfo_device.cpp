// SPDX-License-Identifier: BSD-2-Clause
// The lines of `ibv_devinfo` about a device; see devinfo_lines.hpp.
#include <endian.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <span>

#include "perf/cli/attribute_names.hpp"
#include "perf/cli/devinfo_lines.hpp"

namespace verbatim::cli {
namespace {

struct Flag {
  std::uint64_t bit;
  const char* name;
};

constexpr Flag kDeviceCaps[] = {
    {IBV_DEVICE_RESIZE_MAX_WR, "RESIZE_MAX_WR"},
    {IBV_DEVICE_BAD_PKEY_CNTR, "BAD_PKEY_CNTR"},
    {IBV_DEVICE_BAD_QKEY_CNTR, "BAD_QKEY_CNTR"},
    {IBV_DEVICE_RAW_MULTI, "RAW_MULTI"},
    {IBV_DEVICE_AUTO_PATH_MIG, "AUTO_PATH_MIG"},
    {IBV_DEVICE_CHANGE_PHY_PORT, "CHANGE_PHY_PORT"},
    {IBV_DEVICE_UD_AV_PORT_ENFORCE, "UD_AV_PORT_ENFORCE"},
    {IBV_DEVICE_CURR_QP_STATE_MOD, "CURR_QP_STATE_MOD"},
    {IBV_DEVICE_SHUTDOWN_PORT, "SHUTDOWN_PORT"},
    {IBV_DEVICE_INIT_TYPE, "INIT_TYPE"},
    {IBV_DEVICE_PORT_ACTIVE_EVENT, "PORT_ACTIVE_EVENT"},
    {IBV_DEVICE_SYS_IMAGE_GUID, "SYS_IMAGE_GUID"},
    {IBV_DEVICE_RC_RNR_NAK_GEN, "RC_RNR_NAK_GEN"},
    {IBV_DEVICE_SRQ_RESIZE, "SRQ_RESIZE"},
    {IBV_DEVICE_N_NOTIFY_CQ, "N_NOTIFY_CQ"},
    {IBV_DEVICE_MEM_WINDOW, "MEM_WINDOW"},
    {IBV_DEVICE_UD_IP_CSUM, "UD_IP_CSUM"},
    {IBV_DEVICE_XRC, "XRC"},
    {IBV_DEVICE_MEM_MGT_EXTENSIONS, "MEM_MGT_EXTENSIONS"},
    {IBV_DEVICE_MEM_WINDOW_TYPE_2A, "MEM_WINDOW_TYPE_2A"},
    {IBV_DEVICE_MEM_WINDOW_TYPE_2B, "MEM_WINDOW_TYPE_2B"},
    {IBV_DEVICE_RC_IP_CSUM, "RC_IP_CSUM"},
    {IBV_DEVICE_RAW_IP_CSUM, "RAW_IP_CSUM"},
    {IBV_DEVICE_MANAGED_FLOW_STEERING, "MANAGED_FLOW_STEERING"},
};

constexpr Flag kOdpGeneral[] = {
    {IBV_ODP_SUPPORT, "ODP_SUPPORT"},
    {IBV_ODP_SUPPORT_IMPLICIT, "ODP_SUPPORT_IMPLICIT"},
};

constexpr Flag kOdpTransport[] = {
    {IBV_ODP_SUPPORT_SEND, "SUPPORT_SEND"},     {IBV_ODP_SUPPORT_RECV, "SUPPORT_RECV"},
    {IBV_ODP_SUPPORT_WRITE, "SUPPORT_WRITE"},   {IBV_ODP_SUPPORT_READ, "SUPPORT_READ"},
    {IBV_ODP_SUPPORT_ATOMIC, "SUPPORT_ATOMIC"}, {IBV_ODP_SUPPORT_SRQ_RECV, "SUPPORT_SRQ"},
};

constexpr Flag kRawPacket[] = {
    {IBV_RAW_PACKET_CAP_CVLAN_STRIPPING, "C-VLAN stripping offload"},
    {IBV_RAW_PACKET_CAP_SCATTER_FCS, "Scatter FCS offload"},
    {IBV_RAW_PACKET_CAP_IP_CSUM, "IP csum offload"},
    {IBV_RAW_PACKET_CAP_DELAY_DROP, "Delay drop"},
};

constexpr Flag kDeviceCapsEx[] = {
    {IBV_DEVICE_RAW_SCATTER_FCS, "RAW_SCATTER_FCS"},
    {IBV_DEVICE_PCI_WRITE_END_PADDING, "PCI_WRITE_END_PADDING"},
};

constexpr Flag kOffloadQpTypes[] = {
    {1u << IBV_QPT_RAW_PACKET, "SUPPORT_RAW_PACKET"},
    {1u << IBV_QPT_UD, "SUPPORT_UD"},
};

constexpr Flag kTagMatching[] = {{IBV_TM_CAP_RC, "IBV_TM_CAP_RC"}};

/// Prints the name of each flag set; answers the bits that have no name.
std::uint64_t print_flags(std::uint64_t set, std::span<const Flag> flags) {
  std::uint64_t unknown = set;
  for (const Flag& flag : flags) {
    unknown &= ~flag.bit;
    if ((set & flag.bit) != 0) std::printf("\t\t\t\t\t%s\n", flag.name);
  }
  return unknown;
}

void print_unknown(std::uint64_t unknown) {
  if (unknown != 0) std::printf("\t\t\t\t\tUnknown flags: 0x%" PRIX64 "\n", unknown);
}

void print_guid(const char* label, __be64 guid) {
  const std::uint64_t g = be64toh(guid);
  std::printf("\t%s:\t\t\t%04x:%04x:%04x:%04x\n", label, static_cast<unsigned>(g >> 48),
              static_cast<unsigned>(g >> 32) & 0xffff, static_cast<unsigned>(g >> 16) & 0xffff,
              static_cast<unsigned>(g) & 0xffff);
}

void print_odp_transport(const char* label, std::uint32_t caps) {
  std::printf("\t%s:\n", label);
  if (caps == 0) {
    std::printf("\t\t\t\t\tNO SUPPORT\n");
    return;
  }
  print_unknown(print_flags(caps, kOdpTransport));
}

void print_offload_qp_types(std::uint32_t types) {
  std::printf("\t\tsupported_qp:\n");
  print_unknown(print_flags(types, kOffloadQpTypes));
}

void print_odp(const ibv_device_attr_ex& attr) {
  std::printf("\tgeneral_odp_caps:\n");
  print_unknown(print_flags(attr.odp_caps.general_caps, kOdpGeneral));
  print_odp_transport("rc_odp_caps", attr.odp_caps.per_transport_caps.rc_odp_caps);
  print_odp_transport("uc_odp_caps", attr.odp_caps.per_transport_caps.uc_odp_caps);
  print_odp_transport("ud_odp_caps", attr.odp_caps.per_transport_caps.ud_odp_caps);
  print_odp_transport("xrc_odp_caps", attr.xrc_odp_caps);
}

void print_clocks(const ibv_device_attr_ex& attr) {
  if (attr.completion_timestamp_mask != 0) {
    std::printf("\tcompletion timestamp_mask:\t\t\t0x%016" PRIx64 "\n",
                attr.completion_timestamp_mask);
  } else {
    std::printf("\tcompletion_timestamp_mask not supported\n");
  }
  if (attr.hca_core_clock != 0) {
    std::printf("\thca_core_clock:\t\t\t%" PRIu64 "kHZ\n", attr.hca_core_clock);
  } else {
    std::printf("\tcore clock not supported\n");
  }
}

void print_offloads(const ibv_device_attr_ex& attr) {
  if (attr.raw_packet_caps != 0) {
    std::printf("\traw packet caps:\n");
    print_flags(attr.raw_packet_caps, kRawPacket);
  }
  std::printf("\tdevice_cap_flags_ex:\t\t0x%" PRIX64 "\n", attr.device_cap_flags_ex);
  // The low half repeats device_cap_flags, which has been printed.
  print_unknown(print_flags(attr.device_cap_flags_ex & ~std::uint64_t{0xffffffff}, kDeviceCapsEx));

  std::printf("\ttso_caps:\n\t\tmax_tso:\t\t\t%d\n", static_cast<int>(attr.tso_caps.max_tso));
  if (attr.tso_caps.max_tso != 0) print_offload_qp_types(attr.tso_caps.supported_qpts);

  const ibv_rss_caps& rss = attr.rss_caps;
  std::printf("\trss_caps:\n");
  std::printf("\t\tmax_rwq_indirection_tables:\t\t\t%u\n", rss.max_rwq_indirection_tables);
  std::printf("\t\tmax_rwq_indirection_table_size:\t\t\t%u\n", rss.max_rwq_indirection_table_size);
  std::printf("\t\trx_hash_function:\t\t\t\t0x%x\n", rss.rx_hash_function);
  std::printf("\t\trx_hash_fields_mask:\t\t\t\t0x%" PRIX64 "\n", rss.rx_hash_fields_mask);
  if (rss.supported_qpts != 0) print_offload_qp_types(rss.supported_qpts);
  std::printf("\tmax_wq_type_rq:\t\t\t%u\n", attr.max_wq_type_rq);

  const ibv_packet_pacing_caps& pacing = attr.packet_pacing_caps;
  std::printf("\tpacket_pacing_caps:\n");
  std::printf("\t\tqp_rate_limit_min:\t%ukbps\n", pacing.qp_rate_limit_min);
  std::printf("\t\tqp_rate_limit_max:\t%ukbps\n", pacing.qp_rate_limit_max);
  if (pacing.qp_rate_limit_max != 0) print_offload_qp_types(pacing.supported_qpts);
}

void print_queues(const ibv_device_attr_ex& attr) {
  const ibv_tm_caps& tm = attr.tm_caps;
  if (tm.max_num_tags != 0) {
    std::printf("\tmax_rndv_hdr_size:\t\t%u\n", tm.max_rndv_hdr_size);
    std::printf("\tmax_num_tags:\t\t\t%u\n", tm.max_num_tags);
    std::printf("\tmax_ops:\t\t\t%u\n", tm.max_ops);
    std::printf("\tmax_sge:\t\t\t%u\n", tm.max_sge);
    std::printf("\tflags:\n");
    print_flags(tm.flags, kTagMatching);
  } else {
    std::printf("\ttag matching not supported\n");
  }
  if (attr.cq_mod_caps.max_cq_count != 0 && attr.cq_mod_caps.max_cq_period != 0) {
    std::printf("\n\tcq moderation caps:\n");
    std::printf("\t\tmax_cq_count:\t%u\n", attr.cq_mod_caps.max_cq_count);
    std::printf("\t\tmax_cq_period:\t%u us\n\n", attr.cq_mod_caps.max_cq_period);
  }
  if (attr.max_dm_size != 0) {
    std::printf("\tmaximum available device memory:\t%" PRIu64 "Bytes\n\n", attr.max_dm_size);
  }
}

}  // namespace

void print_device_identity(const ibv_device& device, const ibv_device_attr& attr,
                           std::string_view board_id) {
  std::printf("hca_id:\t%s\n", device.name);
  std::printf("\ttransport:\t\t\t%s (%d)\n", transport_name(device.transport_type),
              static_cast<int>(device.transport_type));
  // The field need not be terminated when the version fills it.
  std::printf("\tfw_ver:\t\t\t\t%.*s\n", static_cast<int>(sizeof(attr.fw_ver)), attr.fw_ver);
  print_guid("node_guid", attr.node_guid);
  print_guid("sys_image_guid", attr.sys_image_guid);
  std::printf("\tvendor_id:\t\t\t0x%04x\n", attr.vendor_id);
  std::printf("\tvendor_part_id:\t\t\t%d\n", static_cast<int>(attr.vendor_part_id));
  std::printf("\thw_ver:\t\t\t\t0x%X\n", attr.hw_ver);
  if (!board_id.empty()) {
    std::printf("\tboard_id:\t\t\t%.*s\n", static_cast<int>(board_id.size()), board_id.data());
  }
  std::printf("\tphys_port_cnt:\t\t\t%d\n", attr.phys_port_cnt);
}

void print_device_limits(const ibv_device_attr& attr) {
  std::printf("\tmax_mr_size:\t\t\t0x%" PRIx64 "\n", attr.max_mr_size);
  std::printf("\tpage_size_cap:\t\t\t0x%" PRIx64 "\n", attr.page_size_cap);
  std::printf("\tmax_qp:\t\t\t\t%d\n", attr.max_qp);
  std::printf("\tmax_qp_wr:\t\t\t%d\n", attr.max_qp_wr);
  std::printf("\tdevice_cap_flags:\t\t0x%08x\n", attr.device_cap_flags);
  print_unknown(print_flags(attr.device_cap_flags, kDeviceCaps));
  std::printf("\tmax_sge:\t\t\t%d\n", attr.max_sge);
  std::printf("\tmax_sge_rd:\t\t\t%d\n", attr.max_sge_rd);
  std::printf("\tmax_cq:\t\t\t\t%d\n", attr.max_cq);
  std::printf("\tmax_cqe:\t\t\t%d\n", attr.max_cqe);
  std::printf("\tmax_mr:\t\t\t\t%d\n", attr.max_mr);
  std::printf("\tmax_pd:\t\t\t\t%d\n", attr.max_pd);
  std::printf("\tmax_qp_rd_atom:\t\t\t%d\n", attr.max_qp_rd_atom);
  std::printf("\tmax_ee_rd_atom:\t\t\t%d\n", attr.max_ee_rd_atom);
  std::printf("\tmax_res_rd_atom:\t\t%d\n", attr.max_res_rd_atom);
  std::printf("\tmax_qp_init_rd_atom:\t\t%d\n", attr.max_qp_init_rd_atom);
  std::printf("\tmax_ee_init_rd_atom:\t\t%d\n", attr.max_ee_init_rd_atom);
  std::printf("\tatomic_cap:\t\t\t%s (%d)\n", atomic_cap_name(attr.atomic_cap),
              static_cast<int>(attr.atomic_cap));
  std::printf("\tmax_ee:\t\t\t\t%d\n", attr.max_ee);
  std::printf("\tmax_rdd:\t\t\t%d\n", attr.max_rdd);
  std::printf("\tmax_mw:\t\t\t\t%d\n", attr.max_mw);
  std::printf("\tmax_raw_ipv6_qp:\t\t%d\n", attr.max_raw_ipv6_qp);
  std::printf("\tmax_raw_ethy_qp:\t\t%d\n", attr.max_raw_ethy_qp);
  std::printf("\tmax_mcast_grp:\t\t\t%d\n", attr.max_mcast_grp);
  std::printf("\tmax_mcast_qp_attach:\t\t%d\n", attr.max_mcast_qp_attach);
  std::printf("\tmax_total_mcast_qp_attach:\t%d\n", attr.max_total_mcast_qp_attach);
  std::printf("\tmax_ah:\t\t\t\t%d\n", attr.max_ah);
  std::printf("\tmax_fmr:\t\t\t%d\n", attr.max_fmr);
  if (attr.max_fmr != 0) std::printf("\tmax_map_per_fmr:\t\t%d\n", attr.max_map_per_fmr);
  std::printf("\tmax_srq:\t\t\t%d\n", attr.max_srq);
  if (attr.max_srq != 0) {
    std::printf("\tmax_srq_wr:\t\t\t%d\n", attr.max_srq_wr);
    std::printf("\tmax_srq_sge:\t\t\t%d\n", attr.max_srq_sge);
  }
  std::printf("\tmax_pkeys:\t\t\t%d\n", attr.max_pkeys);
  std::printf("\tlocal_ca_ack_delay:\t\t%d\n", attr.local_ca_ack_delay);
}

void print_pci_atomics(const ibv_pci_atomic_caps& caps) {
  const struct {
    const char* operation;
    unsigned sizes;
  } kOperations[] = {
      {"fetch_add", caps.fetch_add}, {"swap", caps.swap}, {"compare_swap", caps.compare_swap}};
  std::printf("\tpci_atomic_caps (for the processor too):\n");
  for (const auto& each : kOperations) {
    if (each.sizes == 0) continue;
    std::printf("\t\t\t\t\t%s of", each.operation);
    for (unsigned bytes = 4, sizes = each.sizes & 7; sizes != 0; sizes >>= 1, bytes *= 2) {
      if ((sizes & 1) != 0) std::printf(" %u", bytes);
    }
    std::printf(" bytes\n");
  }
}

void print_device_extended_caps(const ibv_device_attr_ex& attr) {
  print_odp(attr);
  print_clocks(attr);
  print_offloads(attr);
  print_queues(attr);
}

}  // namespace verbatim::cli
