// SPDX-License-Identifier: BSD-2-Clause
// `verbatim doctor`: the devices that programs get, really opened, and what their ports lack.
#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "perf/cli/attribute_names.hpp"
#include "perf/cli/device_list.hpp"
#include "perf/cli/doctor_findings.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {
namespace {

using perf::ContextHandle;

unsigned bytes_of(ibv_mtu mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

std::string gid_text(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, gid.raw, text, sizeof text);
  return text;
}

bool is_link_local(const ibv_gid& gid) { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80; }

struct Gids {
  int count = 0;
  int best = -1;  // the index that programs should take
  bool has_v2 = false;
  bool best_is_local = false;
  std::string best_text;
};

Gids gids_of(ibv_context* context, unsigned port_number, const ibv_port_attr& port) {
  Gids gids;
  const bool roce = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  int best_rank = -1;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context, port_number, static_cast<unsigned>(i), &entry, 0) != 0) continue;
    constexpr ibv_gid kNone{};
    if (std::memcmp(entry.gid.raw, kNone.raw, sizeof kNone.raw) == 0) continue;
    ++gids.count;
    const bool v2 = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    gids.has_v2 = gids.has_v2 || v2;
    // An address that reaches other subnets before one that does not.
    const bool local = roce && is_link_local(entry.gid);
    const int rank = (v2 ? 2 : 0) + (local ? 0 : 1);
    if (rank <= best_rank) continue;
    best_rank = rank;
    gids.best = i;
    gids.best_is_local = local;
    gids.best_text = gid_text(entry.gid);
  }
  return gids;
}

void examine_gids(const std::string& who, const Gids& gids, bool roce, Findings& findings) {
  const Findings::Facts facts = {{"gids", gids.count},
                                 {"index", gids.best},
                                 {"gid", gids.best_text},
                                 {"roce_v2", gids.has_v2}};
  const char* const give =
      "give the network interface under it an IP address ('ip addr add ... dev "
      "<netdev>'; 'rdma link' tells which it is)";
  if (gids.count == 0) {
    findings.fail("GID", who + "no GID: no queue pair gets to RTR with a global route", give,
                  facts);
  } else if (!roce) {
    findings.ok("GID", who + "GID index " + std::to_string(gids.best) + ": " + gids.best_text,
                facts);
  } else if (!gids.has_v2) {
    findings.warn("GID",
                  who + "no RoCE v2 GID, only RoCE v1: peers in other subnets are not reached",
                  give, facts);
  } else if (gids.best_is_local) {
    findings.warn("GID",
                  who + "the RoCE v2 GIDs are link-local (index " + std::to_string(gids.best) +
                      ": " + gids.best_text + "): retries will be exceeded towards other subnets",
                  give, facts);
  } else {
    findings.ok(
        "GID",
        who + "use GID index " + std::to_string(gids.best) + ": " + gids.best_text + " (RoCE v2)",
        facts);
  }
}

void examine_port(const std::string& device, ibv_context* context, unsigned number,
                  Findings& findings) {
  const bool iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
  const std::string who = device + " port " + std::to_string(number) + ": ";
  ibv_port_attr port{};
  if (const int error = ibv_query_port(context, static_cast<std::uint8_t>(number), &port)) {
    findings.fail("port", who + "ibv_query_port: " + std::strerror(error), "see 'dmesg'");
    return;
  }
  const bool roce = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  const std::string state =
      who + port_state_name(port.state) + ", link layer " + link_layer_name(port.link_layer);
  if (port.state == IBV_PORT_ACTIVE) {
    findings.ok("port", state);
  } else {
    // Adapters have ports that nobody uses: no failure.
    findings.warn(
        "port", state + ": nothing is sent or received",
        roce ? "'ip link set <netdev> up', and see to its carrier ('rdma link' tells which "
               "it is)"
             : "see to the cable and the subnet manager (opensm)");
  }
  const unsigned active = bytes_of(port.active_mtu), most = bytes_of(port.max_mtu);
  const Findings::Facts facts = {{"active", active}, {"max", most}};
  const std::string mtu =
      who + "active MTU " + std::to_string(active) + ", max " + std::to_string(most);
  if (active >= most) {
    findings.ok("MTU", mtu, facts);
  } else {
    findings.warn("MTU", mtu + ": large messages take more packets than they must",
                  roce ? "raise the MTU of the network interface and its switches: 'ip link set "
                         "<netdev> mtu " +
                             std::to_string(most >= 4096 ? 4200 : most + 104) + "' or 9000"
                       : "raise the MTU in the subnet manager",
                  facts);
  }
  if (port.state != IBV_PORT_ACTIVE) return;
  if (iwarp) {
    // Its one GID is the interface's hardware address, and no path begins there.
    findings.ok("GID", who + "iWARP: connections are made by IP address (rdma_cm), not by GID");
  } else {
    examine_gids(who, gids_of(context, number, port), roce, findings);
  }
}

}  // namespace

void examine_devices(Findings& findings) {
  const DeviceList list;
  if (!list) {
    findings.fail("devices", std::string("ibv_get_device_list: ") + std::strerror(errno),
                  "see what the library logs (VERBATIM_LOG=info)");
    return;
  }
  if (list.size() == 0) {
    findings.fail(
        "devices", "No IB devices found",
        "link shm (RDMA_STATIC_PROVIDERS), which needs nothing, or see the kernel devices "
        "above; VERBATIM_LOG=info tells which were left out");
    return;
  }
  for (int i = 0; i < list.size(); ++i) {
    const std::string name = ibv_get_device_name(list.at(i));
    errno = 0;
    const ContextHandle context(ibv_open_device(list.at(i)));
    ibv_device_attr attributes{};
    if (!context) {
      findings.fail("device", name + ": Failed to open device: " + std::strerror(errno),
                    "see the other lines, and the library's own on stderr");
      continue;
    }
    if (const int error = ibv_query_device(context.get(), &attributes)) {
      findings.fail("device", name + ": ibv_query_device: " + std::strerror(error), "see 'dmesg'");
      continue;
    }
    findings.ok("device", name + ": opened; " + std::to_string(attributes.max_qp) + " QPs, " +
                              std::to_string(attributes.max_mr) + " MRs, " +
                              std::to_string(attributes.phys_port_cnt) + " ports");
    for (unsigned port = 1; port <= attributes.phys_port_cnt; ++port)
      examine_port(name, context.get(), port, findings);
  }
}

}  // namespace verbatim::cli
