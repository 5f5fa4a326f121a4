// SPDX-License-Identifier: BSD-2-Clause
//
// The pieces of a flow rule: header fields to compare, and what to do with packets that pass.
// Part of <infiniband/verbs.h>; usable alone. Packet fields are in network byte order.
// Source: man ibv_create_flow.
#ifndef INFINIBAND_VERBS_FLOW_SPEC_H
#define INFINIBAND_VERBS_FLOW_SPEC_H

#include <infiniband/verbs/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_counters;
struct ibv_flow_action;

/// INNER is or-ed to a type to mean the header inside a tunnel.
enum ibv_flow_spec_type {
  IBV_FLOW_SPEC_ETH = 0x20,
  IBV_FLOW_SPEC_IPV4 = 0x30,
  IBV_FLOW_SPEC_IPV6 = 0x31,
  IBV_FLOW_SPEC_IPV4_EXT = 0x32,
  IBV_FLOW_SPEC_ESP = 0x34,
  IBV_FLOW_SPEC_TCP = 0x40,
  IBV_FLOW_SPEC_UDP = 0x41,
  IBV_FLOW_SPEC_VXLAN_TUNNEL = 0x50,
  IBV_FLOW_SPEC_GRE = 0x51,
  IBV_FLOW_SPEC_MPLS = 0x60,
  IBV_FLOW_SPEC_INNER = 0x100,
  IBV_FLOW_SPEC_ACTION_TAG = 0x1000,
  IBV_FLOW_SPEC_ACTION_DROP = 0x1001,
  IBV_FLOW_SPEC_ACTION_HANDLE = 0x1002,
  IBV_FLOW_SPEC_ACTION_COUNT = 0x1003,
};

// Filters: the fields of a header. A specification holds the values and the mask of bits to
// compare; `size` is its own size in bytes.
struct ibv_flow_eth_filter {
  uint8_t dst_mac[6];
  uint8_t src_mac[6];
  uint16_t ether_type;
  uint16_t vlan_tag;  // 3 bits priority, 1 bit CFI, 12 bits VLAN
};

struct ibv_flow_spec_eth {
  enum ibv_flow_spec_type type;
  uint16_t size;
  struct ibv_flow_eth_filter val;
  struct ibv_flow_eth_filter mask;
};

struct ibv_flow_ipv4_filter {
  uint32_t src_ip;
  uint32_t dst_ip;
};

struct ibv_flow_spec_ipv4 {
  enum ibv_flow_spec_type type;
  uint16_t size;
  struct ibv_flow_ipv4_filter val;
  struct ibv_flow_ipv4_filter mask;
};

struct ibv_flow_ipv4_ext_filter {
  uint32_t src_ip;
  uint32_t dst_ip;
  uint8_t proto;
  uint8_t tos;
  uint8_t ttl;
  uint8_t flags;
};

struct ibv_flow_spec_ipv4_ext {
  enum ibv_flow_spec_type type;
  uint16_t size;
  struct ibv_flow_ipv4_ext_filter val;
  struct ibv_flow_ipv4_ext_filter mask;
};

struct ibv_flow_ipv6_filter {
  uint8_t src_ip[16];
  uint8_t dst_ip[16];
  uint32_t flow_label;
  uint8_t next_hdr;
  uint8_t traffic_class;
  uint8_t hop_limit;
};

struct ibv_flow_spec_ipv6 {
  enum ibv_flow_spec_type type;
  uint16_t size;
  struct ibv_flow_ipv6_filter val;
  struct ibv_flow_ipv6_filter mask;
};

struct ibv_flow_esp_filter {
  uint32_t spi;
  uint32_t seq;
};

struct ibv_flow_spec_esp {
  enum ibv_flow_spec_type type;
  uint16_t size;
  struct ibv_flow_esp_filter val;
  struct ibv_flow_esp_filter mask;
};

struct ibv_flow_tcp_udp_filter {
  uint16_t dst_port;
  uint16_t src_port;
};

struct ibv_flow_spec_tcp_udp {
  enum ibv_flow_spec_type type;
  uint16_t size;
  struct ibv_flow_tcp_udp_filter val;
  struct ibv_flow_tcp_udp_filter mask;
};

struct ibv_flow_gre_filter {
  uint16_t c_ks_res0_ver;  // the header's first 16 bits: flags C, K, S and the version (RFC 2890)
  uint16_t protocol;
  uint32_t key;
};

struct ibv_flow_spec_gre {
  enum ibv_flow_spec_type type;
  uint16_t size;
  struct ibv_flow_gre_filter val;
  struct ibv_flow_gre_filter mask;
};

struct ibv_flow_mpls_filter {
  uint32_t label;  // the whole entry: 20 bits label, 3 class, 1 bottom of stack, 8 TTL (RFC 3032)
};

struct ibv_flow_spec_mpls {
  enum ibv_flow_spec_type type;
  uint16_t size;
  struct ibv_flow_mpls_filter val;
  struct ibv_flow_mpls_filter mask;
};

struct ibv_flow_tunnel_filter {
  uint32_t tunnel_id;
};

struct ibv_flow_spec_tunnel {
  enum ibv_flow_spec_type type;
  uint16_t size;
  struct ibv_flow_tunnel_filter val;
  struct ibv_flow_tunnel_filter mask;
};

// Actions: what to do with packets that pass all filters.
struct ibv_flow_spec_action_tag {
  enum ibv_flow_spec_type type;
  uint16_t size;
  uint32_t tag_id;  // comes back by ibv_wc_read_flow_tag
};

struct ibv_flow_spec_action_drop {
  enum ibv_flow_spec_type type;
  uint16_t size;
};

struct ibv_flow_spec_action_handle {
  enum ibv_flow_spec_type type;
  uint16_t size;
  const struct ibv_flow_action* action;
};

struct ibv_flow_spec_counter_action {
  enum ibv_flow_spec_type type;
  uint16_t size;
  struct ibv_counters* counters;
};

/// Any specification; `hdr` is what all begin with.
struct ibv_flow_spec {
  __extension__ union {
    struct {
      enum ibv_flow_spec_type type;
      uint16_t size;
    } hdr;
    struct ibv_flow_spec_eth eth;
    struct ibv_flow_spec_ipv4 ipv4;
    struct ibv_flow_spec_tcp_udp tcp_udp;
    struct ibv_flow_spec_ipv4_ext ipv4_ext;
    struct ibv_flow_spec_ipv6 ipv6;
    struct ibv_flow_spec_esp esp;
    struct ibv_flow_spec_tunnel tunnel;
    struct ibv_flow_spec_gre gre;
    struct ibv_flow_spec_mpls mpls;
    struct ibv_flow_spec_action_tag flow_tag;
    struct ibv_flow_spec_action_drop drop;
    struct ibv_flow_spec_action_handle handle;
    struct ibv_flow_spec_counter_action flow_count;
  };
};

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_FLOW_SPEC_H
