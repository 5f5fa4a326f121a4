// SPDX-License-Identifier: BSD-2-Clause
// Encodings: IBTA volume 1, PortInfo (14.2.5.6).
#include "perf/cli/attribute_names.hpp"

namespace verbatim::cli {

const char* transport_name(ibv_transport_type transport) {
  switch (transport) {
    case IBV_TRANSPORT_IB:
      return "InfiniBand";
    case IBV_TRANSPORT_IWARP:
      return "iWARP";
    case IBV_TRANSPORT_USNIC:
      return "usNIC";
    case IBV_TRANSPORT_USNIC_UDP:
      return "usNIC UDP";
    case IBV_TRANSPORT_UNSPECIFIED:
      return "unspecified";
    default:
      return "invalid transport";
  }
}

const char* atomic_cap_name(ibv_atomic_cap cap) {
  switch (cap) {
    case IBV_ATOMIC_NONE:
      return "ATOMIC_NONE";
    case IBV_ATOMIC_HCA:
      return "ATOMIC_HCA";
    case IBV_ATOMIC_GLOB:
      return "ATOMIC_GLOB";
    default:
      return "invalid atomic capability";
  }
}

const char* port_state_name(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "PORT_DOWN";
    case IBV_PORT_INIT:
      return "PORT_INIT";
    case IBV_PORT_ARMED:
      return "PORT_ARMED";
    case IBV_PORT_ACTIVE:
      return "PORT_ACTIVE";
    default:
      return "invalid state";
  }
}

const char* mtu_name(ibv_mtu mtu) {
  switch (mtu) {
    case IBV_MTU_256:
      return "256";
    case IBV_MTU_512:
      return "512";
    case IBV_MTU_1024:
      return "1024";
    case IBV_MTU_2048:
      return "2048";
    case IBV_MTU_4096:
      return "4096";
    default:
      return "invalid MTU";
  }
}

const char* link_layer_name(std::uint8_t link_layer) {
  switch (link_layer) {
    case IBV_LINK_LAYER_UNSPECIFIED:
      return "Unspecified";
    case IBV_LINK_LAYER_INFINIBAND:
      return "InfiniBand";
    case IBV_LINK_LAYER_ETHERNET:
      return "Ethernet";
    default:
      return "Unknown";
  }
}

const char* vl_count_name(std::uint8_t encoded) {
  switch (encoded) {
    case 1:
      return "1";
    case 2:
      return "2";
    case 3:
      return "4";
    case 4:
      return "8";
    case 5:
      return "15";
    default:
      return "invalid value";
  }
}

const char* width_name(std::uint8_t encoded) {
  switch (encoded) {
    case 1:
      return "1";
    case 2:
      return "4";
    case 4:
      return "8";
    case 8:
      return "12";
    case 16:
      return "2";
    default:
      return "invalid width";
  }
}

const char* speed_name(std::uint8_t encoded) {
  switch (encoded) {
    case 1:
      return "2.5 Gbps";
    case 2:
      return "5.0 Gbps";
    case 4:  // QDR
    case 8:  // FDR10: the same signalling rate, another line code
      return "10.0 Gbps";
    case 16:
      return "14.0 Gbps";
    case 32:
      return "25.0 Gbps";
    case 64:
      return "50.0 Gbps";
    case 128:
      return "100.0 Gbps";
    default:
      return "invalid speed";
  }
}

const char* physical_state_name(std::uint8_t state) {
  switch (state) {
    case 1:
      return "SLEEP";
    case 2:
      return "POLLING";
    case 3:
      return "DISABLED";
    case 4:
      return "PORT_CONFIGURATION TRAINNING";  // sic: scripts know it so
    case 5:
      return "LINK_UP";
    case 6:
      return "LINK_ERROR_RECOVERY";
    case 7:
      return "PHY TEST";
    default:
      return "invalid physical state";
  }
}

}  // namespace verbatim::cli
