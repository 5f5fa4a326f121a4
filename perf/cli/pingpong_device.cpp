// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/pingpong_device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "perf/cli/device_list.hpp"
#include "perf/cli/failure.hpp"

namespace verbatim::cli {
namespace {

ibv_device* choose_device(const DeviceList& list, const char* wanted) {
  if (wanted == nullptr) {
    if (list.size() == 0) fail("No IB devices found");
    return list.at(0);
  }
  ibv_device* device = list.find(wanted);
  if (device == nullptr) {
    fail("IB device %s not found (there is: %s)", wanted, list.names().c_str());
  }
  return device;
}

void check_features(const ibv_device_attr_ex& attr, const PingpongOptions& options) {
  if (options.on_demand && options.transport == Transport::kXsrq) {
    constexpr std::uint32_t kNeeded =
        IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
    if ((attr.odp_caps.general_caps & IBV_ODP_SUPPORT) == 0 ||
        (attr.xrc_odp_caps & kNeeded) != kNeeded) {
      fail(
          "The device isn't ODP capable or does not support XRC send, receive and srq with ODP: "
          "leave out -o");
    }
  } else if (options.on_demand) {
    const bool shared = options.transport == Transport::kSrq;
    std::uint32_t needed = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
    if (shared) needed |= IBV_ODP_SUPPORT_SRQ_RECV;
    const ibv_odp_caps& odp = attr.odp_caps;
    if ((odp.general_caps & IBV_ODP_SUPPORT) == 0 ||
        (odp.per_transport_caps.rc_odp_caps & needed) != needed) {
      fail("The device isn't ODP capable or does not support RC send%s with ODP: leave out %s",
           shared ? ", receive and srq" : " and receive", shared ? "-o" : "-o and -O");
    }
    if (options.implicit_on_demand && (odp.general_caps & IBV_ODP_SUPPORT_IMPLICIT) == 0) {
      fail("The device doesn't support implicit ODP: use -o");
    }
  }
  if (options.timestamps && attr.completion_timestamp_mask == 0) {
    fail("The device isn't completion timestamp capable: leave out -t");
  }
}

}  // namespace

Device open_device(const char* wanted, std::uint8_t ib_port) {
  const DeviceList list;
  if (!list) throw Failure{};  // the list has said why
  ibv_device* chosen = choose_device(list, wanted);
  Device device;
  device.context.reset(ibv_open_device(chosen));
  if (!device.context) {
    fail("Couldn't get context for %s: %s", chosen->name, std::strerror(errno));
  }
  ibv_context* context = device.context.get();
  if (ibv_query_device_ex(context, nullptr, &device.attr) != 0) {
    fail("Couldn't query device for its features");
  }
  const int ports = device.attr.orig_attr.phys_port_cnt;
  if (ib_port > ports) {
    fail("Couldn't get port info: %s has %d port%s, not %d (-i)", device.name(), ports,
         ports == 1 ? "" : "s", ib_port);
  }
  if (ibv_query_port(context, ib_port, &device.port) != 0) {
    fail("Couldn't get port info of port %d of %s", ib_port, device.name());
  }
  return device;
}

ibv_ah_attr path_to(const PingpongOptions& options, std::uint16_t lid, const ibv_gid& gid) {
  ibv_ah_attr path = {};
  path.dlid = lid;
  path.sl = options.service_level;
  path.port_num = options.ib_port;
  if (gid.global.interface_id != 0) {
    if (options.gid_index < 0) {
      fail("Couldn't connect to remote QP: the other side runs with -g, so this one must too");
    }
    path.is_global = 1;
    path.grh.dgid = gid;
    path.grh.hop_limit = 1;
    path.grh.sgid_index = static_cast<std::uint8_t>(options.gid_index);
  }
  return path;
}

void check_limits(const Device& device, const PingpongOptions& options) {
  const ibv_device_attr& attr = device.attr.orig_attr;
  if (options.transport == Transport::kUd) {
    const std::uint32_t mtu = 128u << device.port.active_mtu;
    if (options.size > mtu) {
      fail(
          "Requested size larger than port MTU (%u): a datagram is one packet; choose a smaller -s",
          mtu);
    }
  } else if (options.mtu > device.port.active_mtu) {
    fail("path MTU %d is more than the port's %d; choose a smaller -m", 128 << options.mtu,
         128 << device.port.active_mtu);
  }
  if (options.size > device.port.max_msg_sz) {
    fail("size %u is more than %s sends in one message (%u bytes); choose a smaller -s",
         options.size, device.name(), device.port.max_msg_sz);
  }
  const bool shared = shares_receives(options.transport);
  const int deepest = std::min(shared ? attr.max_srq_wr : attr.max_qp_wr,
                               attr.max_cqe - static_cast<int>(options.queue_pairs));  // the sends
  if (static_cast<long long>(options.rx_depth) > deepest) {
    fail("rx depth %u is more than %s takes (%d); choose a smaller -r", options.rx_depth,
         device.name(), deepest);
  }
  if (device.port.link_layer == IBV_LINK_LAYER_ETHERNET && options.gid_index < 0) {
    fail("port %d of %s is Ethernet, which addresses by GID: choose one with -g", options.ib_port,
         device.name());
  }
  check_features(device.attr, options);
}

}  // namespace verbatim::cli
