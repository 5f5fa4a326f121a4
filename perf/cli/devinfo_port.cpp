// SPDX-License-Identifier: BSD-2-Clause
// The lines of `ibv_devinfo` about a port; see devinfo_lines.hpp.
#include <arpa/inet.h>

#include <cstdio>

#include "perf/cli/attribute_names.hpp"
#include "perf/cli/devinfo_lines.hpp"

namespace verbatim::cli {

void print_port(const ibv_port_attr& port) {
  std::printf("\t\t\tstate:\t\t\t%s (%d)\n", port_state_name(port.state),
              static_cast<int>(port.state));
  std::printf("\t\t\tmax_mtu:\t\t%s (%d)\n", mtu_name(port.max_mtu),
              static_cast<int>(port.max_mtu));
  std::printf("\t\t\tactive_mtu:\t\t%s (%d)\n", mtu_name(port.active_mtu),
              static_cast<int>(port.active_mtu));
  std::printf("\t\t\tsm_lid:\t\t\t%d\n", port.sm_lid);
  std::printf("\t\t\tport_lid:\t\t%d\n", port.lid);
  std::printf("\t\t\tport_lmc:\t\t0x%02x\n", port.lmc);
  std::printf("\t\t\tlink_layer:\t\t%s\n", link_layer_name(port.link_layer));
}

void print_port_details(const ibv_device& device, const ibv_port_attr& port) {
  std::printf("\t\t\tmax_msg_sz:\t\t0x%x\n", port.max_msg_sz);
  std::printf("\t\t\tport_cap_flags:\t\t0x%08x\n", port.port_cap_flags);
  std::printf("\t\t\tport_cap_flags2:\t0x%04x\n", port.port_cap_flags2);
  std::printf("\t\t\tmax_vl_num:\t\t%s (%d)\n", vl_count_name(port.max_vl_num), port.max_vl_num);
  std::printf("\t\t\tbad_pkey_cntr:\t\t0x%x\n", port.bad_pkey_cntr);
  std::printf("\t\t\tqkey_viol_cntr:\t\t0x%x\n", port.qkey_viol_cntr);
  std::printf("\t\t\tsm_sl:\t\t\t%d\n", port.sm_sl);
  std::printf("\t\t\tpkey_tbl_len:\t\t%d\n", port.pkey_tbl_len);
  std::printf("\t\t\tgid_tbl_len:\t\t%d\n", port.gid_tbl_len);
  std::printf("\t\t\tsubnet_timeout:\t\t%d\n", port.subnet_timeout);
  std::printf("\t\t\tinit_type_reply:\t%d\n", port.init_type_reply);
  std::printf("\t\t\tactive_width:\t\t%sX (%d)\n", width_name(port.active_width),
              port.active_width);
  std::printf("\t\t\tactive_speed:\t\t%s (%d)\n", speed_name(port.active_speed), port.active_speed);
  // Only InfiniBand defines the states of the physical link that this field counts.
  if (device.transport_type == IBV_TRANSPORT_IB) {
    std::printf("\t\t\tphys_state:\t\t%s (%d)\n", physical_state_name(port.phys_state),
                port.phys_state);
  }
}

void print_gid(int index, const union ibv_gid& gid, ibv_gid_type type, const ibv_port_attr& port) {
  const char* suffix = "";
  if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    suffix = type == IBV_GID_TYPE_ROCE_V2 ? ", RoCE v2" : ", RoCE v1";
  }
  if (type == IBV_GID_TYPE_ROCE_V2) {  // an IP address, and written as one
    char text[INET6_ADDRSTRLEN] = "";
    inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
    std::printf("\t\t\tGID[%3d]:\t\t%s%s\n", index, text, suffix);
    return;
  }
  std::printf("\t\t\tGID[%3d]:\t\t", index);
  for (int i = 0; i < 16; i += 2) {
    std::printf("%s%02x%02x", i == 0 ? "" : ":", gid.raw[i], gid.raw[i + 1]);
  }
  std::printf("%s\n", suffix);
}

}  // namespace verbatim::cli
