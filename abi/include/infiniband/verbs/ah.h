// SPDX-License-Identifier: BSD-2-Clause
//
// Addresses: global routes, address handles, multicast groups, static rates.
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these.
// Source: IBTA 8.3 (GRH), 11.2.2 (address handles), 11.3 (multicast); man ibv_create_ah,
// ibv_create_ah_from_wc, ibv_attach_mcast, ibv_rate_to_mbps.
#ifndef INFINIBAND_VERBS_AH_H
#define INFINIBAND_VERBS_AH_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Static rates: a code of PathRecord:Rate, not a number of bits.
enum ibv_rate {
  IBV_RATE_MAX = 0,
  IBV_RATE_2_5_GBPS = 2,
  IBV_RATE_10_GBPS = 3,
  IBV_RATE_30_GBPS = 4,
  IBV_RATE_5_GBPS = 5,
  IBV_RATE_20_GBPS = 6,
  IBV_RATE_40_GBPS = 7,
  IBV_RATE_60_GBPS = 8,
  IBV_RATE_80_GBPS = 9,
  IBV_RATE_120_GBPS = 10,
  IBV_RATE_14_GBPS = 11,
  IBV_RATE_56_GBPS = 12,
  IBV_RATE_112_GBPS = 13,
  IBV_RATE_168_GBPS = 14,
  IBV_RATE_25_GBPS = 15,
  IBV_RATE_100_GBPS = 16,
  IBV_RATE_200_GBPS = 17,
  IBV_RATE_300_GBPS = 18,
  IBV_RATE_28_GBPS = 19,
  IBV_RATE_50_GBPS = 20,
  IBV_RATE_400_GBPS = 21,
  IBV_RATE_600_GBPS = 22,
  IBV_RATE_800_GBPS = 23,
  IBV_RATE_1200_GBPS = 24,
};

/// The multiple of 2.5 Gbit/s that a rate is, or -1.
int VBT_CONST_FUNCTION_ ibv_rate_to_mult(enum ibv_rate rate);

/// The rate that is `mult` times 2.5 Gbit/s, or IBV_RATE_MAX.
enum ibv_rate VBT_CONST_FUNCTION_ mult_to_ibv_rate(int mult);

/// The rate in Mbit/s, or -1.
int VBT_CONST_FUNCTION_ ibv_rate_to_mbps(enum ibv_rate rate);

/// The rate of `mbps` Mbit/s, or IBV_RATE_MAX.
enum ibv_rate VBT_CONST_FUNCTION_ mbps_to_ibv_rate(int mbps);

/// The part of an address that a global route header needs.
struct ibv_global_route {
  union ibv_gid dgid;
  uint32_t flow_label;  // 20 bits
  uint8_t sgid_index;
  uint8_t hop_limit;
  uint8_t traffic_class;
};

/// A global route header as UD delivers it, in front of the data, in network byte order.
struct ibv_grh {
  __be32 version_tclass_flow;
  __be16 paylen;
  uint8_t next_hdr;
  uint8_t hop_limit;
  union ibv_gid sgid;
  union ibv_gid dgid;
};

/// A path to a port. `grh` counts only when `is_global` is not 0.
struct ibv_ah_attr {
  struct ibv_global_route grh;
  uint16_t dlid;  // host byte order
  uint8_t sl;
  uint8_t src_path_bits;
  uint8_t static_rate;  // enum ibv_rate
  uint8_t is_global;
  uint8_t port_num;
};

struct ibv_ah {
  struct ibv_context* context;
  struct ibv_pd* pd;
  uint32_t handle;
};

struct ibv_wc;

/// An address handle for UD sends; the caller destroys it. NULL + errno.
struct ibv_ah* ibv_create_ah(struct ibv_pd* pd, struct ibv_ah_attr* attr);

/// The path back to who sent `wc`. `grh` is looked at only if `wc` says that there is one.
/// 0, or another value.
int ibv_init_ah_from_wc(struct ibv_context* context, uint8_t port_num, struct ibv_wc* wc,
                        struct ibv_grh* grh, struct ibv_ah_attr* ah_attr);

/// Both in one: the handle that answers who sent `wc`. NULL + errno.
struct ibv_ah* ibv_create_ah_from_wc(struct ibv_pd* pd, struct ibv_wc* wc, struct ibv_grh* grh,
                                     uint8_t port_num);

/// 0 or an errno. Sends that use the handle must have completed.
int ibv_destroy_ah(struct ibv_ah* ah);

/// Lets the UD queue pair receive what is sent to the group; `lid` in host byte order. 0 or an
/// errno.
int ibv_attach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid);

/// The opposite. 0 or an errno.
int ibv_detach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid);

#define ETHERNET_LL_SIZE 6

/// RoCE: the Ethernet address, and VLAN (0xffff: none), that the path's GID leads to. 0 or an
/// errno.
int ibv_resolve_eth_l2_from_gid(struct ibv_context* context, struct ibv_ah_attr* attr,
                                uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t* vid);

// RoCE v2: UDP source ports that carry a flow label (IBTA annex A17).
#define IB_ROCE_UDP_ENCAP_VALID_PORT_MIN (0xC000)
#define IB_ROCE_UDP_ENCAP_VALID_PORT_MAX (0xFFFF)
#define IB_GRH_FLOWLABEL_MASK (0x000FFFFF)

/// The UDP source port for a flow label: its 6 high bits folded into the 14 low ones, in the range
/// above.
static inline uint16_t ibv_flow_label_to_udp_sport(uint32_t fl) {
  const uint32_t low = fl & 0x3fffU;
  const uint32_t high = (fl & 0xfc000U) >> 14;
  return VBT_VALUE_CAST_(uint16_t, IB_ROCE_UDP_ENCAP_VALID_PORT_MIN | (low ^ high));
}

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_AH_H
