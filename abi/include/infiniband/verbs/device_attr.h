// SPDX-License-Identifier: BSD-2-Clause
//
// What a device can do and how much of it: ibv_device_attr, and what was added since.
// Part of <infiniband/verbs.h>; usable alone. Source: IBTA 11.2.1.2 (Query HCA); man
// ibv_query_device, ibv_query_device_ex.
#ifndef INFINIBAND_VERBS_DEVICE_ATTR_H
#define INFINIBAND_VERBS_DEVICE_ATTR_H

#include <infiniband/verbs/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Bits of `ibv_device_attr.device_cap_flags`.
enum ibv_device_cap_flags {
  IBV_DEVICE_RESIZE_MAX_WR = 1 << 0,
  IBV_DEVICE_BAD_PKEY_CNTR = 1 << 1,
  IBV_DEVICE_BAD_QKEY_CNTR = 1 << 2,
  IBV_DEVICE_RAW_MULTI = 1 << 3,
  IBV_DEVICE_AUTO_PATH_MIG = 1 << 4,
  IBV_DEVICE_CHANGE_PHY_PORT = 1 << 5,
  IBV_DEVICE_UD_AV_PORT_ENFORCE = 1 << 6,
  IBV_DEVICE_CURR_QP_STATE_MOD = 1 << 7,
  IBV_DEVICE_SHUTDOWN_PORT = 1 << 8,
  IBV_DEVICE_INIT_TYPE = 1 << 9,
  IBV_DEVICE_PORT_ACTIVE_EVENT = 1 << 10,
  IBV_DEVICE_SYS_IMAGE_GUID = 1 << 11,
  IBV_DEVICE_RC_RNR_NAK_GEN = 1 << 12,
  IBV_DEVICE_SRQ_RESIZE = 1 << 13,
  IBV_DEVICE_N_NOTIFY_CQ = 1 << 14,
  IBV_DEVICE_MEM_WINDOW = 1 << 17,
  IBV_DEVICE_UD_IP_CSUM = 1 << 18,
  IBV_DEVICE_XRC = 1 << 20,
  IBV_DEVICE_MEM_MGT_EXTENSIONS = 1 << 21,
  IBV_DEVICE_MEM_WINDOW_TYPE_2A = 1 << 23,
  IBV_DEVICE_MEM_WINDOW_TYPE_2B = 1 << 24,
  IBV_DEVICE_RC_IP_CSUM = 1 << 25,
  IBV_DEVICE_RAW_IP_CSUM = 1 << 26,
  IBV_DEVICE_MANAGED_FLOW_STEERING = 1 << 29,
};

/// Further bits, of `ibv_device_attr_ex.device_cap_flags_ex` only: an enum is 32 bits wide.
#define IBV_DEVICE_RAW_SCATTER_FCS (1ULL << 34)
#define IBV_DEVICE_PCI_WRITE_END_PADDING (1ULL << 36)
/// In a confidential guest: what the device reaches is copied through memory that the host can see.
#define IBV_DEVICE_CC_DMA_BOUNCE (1ULL << 41)

/// What an atomic is atomic against: nothing, this device's others, or also the processors.
enum ibv_atomic_cap {
  IBV_ATOMIC_NONE = 0,
  IBV_ATOMIC_HCA = 1,
  IBV_ATOMIC_GLOB = 2,
};

/// Limits of a device (IBTA 11.2.1.2). A limit is not a promise: memory may run out before.
struct ibv_device_attr {
  char fw_ver[64];
  __be64 node_guid;
  __be64 sys_image_guid;
  uint64_t max_mr_size;    // bytes
  uint64_t page_size_cap;  // a set bit n: pages of 2^n bytes
  uint32_t vendor_id;
  uint32_t vendor_part_id;
  uint32_t hw_ver;
  int max_qp;
  int max_qp_wr;
  unsigned int device_cap_flags;
  int max_sge;
  int max_sge_rd;
  int max_cq;
  int max_cqe;
  int max_mr;
  int max_pd;
  int max_qp_rd_atom;
  int max_ee_rd_atom;
  int max_res_rd_atom;
  int max_qp_init_rd_atom;
  int max_ee_init_rd_atom;
  enum ibv_atomic_cap atomic_cap;
  int max_ee;
  int max_rdd;
  int max_mw;
  int max_raw_ipv6_qp;
  int max_raw_ethy_qp;
  int max_mcast_grp;
  int max_mcast_qp_attach;
  int max_total_mcast_qp_attach;
  int max_ah;
  int max_fmr;
  int max_map_per_fmr;
  int max_srq;
  int max_srq_wr;
  int max_srq_sge;
  uint16_t max_pkeys;
  uint8_t local_ca_ack_delay;  // n: 4.096 us * 2^n
  uint8_t phys_port_cnt;
};

/// Input of ibv_query_device_ex; `comp_mask` must be 0.
struct ibv_query_device_ex_input {
  uint32_t comp_mask;
};

/// Operations that may touch on-demand memory, per transport.
enum ibv_odp_transport_cap_bits {
  IBV_ODP_SUPPORT_SEND = 1 << 0,
  IBV_ODP_SUPPORT_RECV = 1 << 1,
  IBV_ODP_SUPPORT_WRITE = 1 << 2,
  IBV_ODP_SUPPORT_READ = 1 << 3,
  IBV_ODP_SUPPORT_ATOMIC = 1 << 4,
  IBV_ODP_SUPPORT_SRQ_RECV = 1 << 5,
  IBV_ODP_SUPPORT_FLUSH = 1 << 6,
  IBV_ODP_SUPPORT_ATOMIC_WRITE = 1 << 7,
};

enum ibv_odp_general_caps {
  IBV_ODP_SUPPORT = 1 << 0,
  IBV_ODP_SUPPORT_IMPLICIT = 1 << 1,
};

struct ibv_odp_caps {
  uint64_t general_caps;  // enum ibv_odp_general_caps
  struct {
    uint32_t rc_odp_caps;  // each of enum ibv_odp_transport_cap_bits
    uint32_t uc_odp_caps;
    uint32_t ud_odp_caps;
  } per_transport_caps;
};

struct ibv_tso_caps {
  uint32_t max_tso;         // bytes of the largest segmented message, 0: none
  uint32_t supported_qpts;  // a set bit n: QP type n; see ibv_is_qpt_supported
};

enum ibv_rx_hash_function_flags {
  IBV_RX_HASH_FUNC_TOEPLITZ = 1 << 0,
};

/// Packet fields that may feed the receive hash. Not both IP versions, nor both TCP and UDP, at
/// once.
__extension__ enum ibv_rx_hash_fields {
  IBV_RX_HASH_SRC_IPV4 = 1 << 0,
  IBV_RX_HASH_DST_IPV4 = 1 << 1,
  IBV_RX_HASH_SRC_IPV6 = 1 << 2,
  IBV_RX_HASH_DST_IPV6 = 1 << 3,
  IBV_RX_HASH_SRC_PORT_TCP = 1 << 4,
  IBV_RX_HASH_DST_PORT_TCP = 1 << 5,
  IBV_RX_HASH_SRC_PORT_UDP = 1 << 6,
  IBV_RX_HASH_DST_PORT_UDP = 1 << 7,
  IBV_RX_HASH_IPSEC_SPI = 1 << 8,
  IBV_RX_HASH_INNER = 1U << 31,
};

struct ibv_rss_caps {
  uint32_t supported_qpts;
  uint32_t max_rwq_indirection_tables;
  uint32_t max_rwq_indirection_table_size;
  uint64_t rx_hash_fields_mask;  // enum ibv_rx_hash_fields
  uint8_t rx_hash_function;      // enum ibv_rx_hash_function_flags
};

struct ibv_packet_pacing_caps {
  uint32_t qp_rate_limit_min;  // kbit/s
  uint32_t qp_rate_limit_max;  // kbit/s
  uint32_t supported_qpts;
};

enum ibv_raw_packet_caps {
  IBV_RAW_PACKET_CAP_CVLAN_STRIPPING = 1 << 0,
  IBV_RAW_PACKET_CAP_SCATTER_FCS = 1 << 1,
  IBV_RAW_PACKET_CAP_IP_CSUM = 1 << 2,
  IBV_RAW_PACKET_CAP_DELAY_DROP = 1 << 3,
};

enum ibv_tm_cap_flags {
  IBV_TM_CAP_RC = 1 << 0,
};

/// Limits of tag matching on a shared receive queue; all zero: none.
struct ibv_tm_caps {
  uint32_t max_rndv_hdr_size;  // bytes
  uint32_t max_num_tags;
  uint32_t flags;  // enum ibv_tm_cap_flags
  uint32_t max_ops;
  uint32_t max_sge;
};

struct ibv_cq_moderation_caps {
  uint16_t max_cq_count;
  uint16_t max_cq_period;  // us
};

enum ibv_pci_atomic_op_size {
  IBV_PCI_ATOMIC_OPERATION_4_BYTE_SIZE_SUP = 1 << 0,
  IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP = 1 << 1,
  IBV_PCI_ATOMIC_OPERATION_16_BYTE_SIZE_SUP = 1 << 2,
};

/// Operand sizes of atomics over PCI, each of enum ibv_pci_atomic_op_size.
struct ibv_pci_atomic_caps {
  uint16_t fetch_add;
  uint16_t swap;
  uint16_t compare_swap;
};

/// ibv_device_attr and what was added since. A field the library does not know reads as 0.
struct ibv_device_attr_ex {
  struct ibv_device_attr orig_attr;
  uint32_t comp_mask;
  struct ibv_odp_caps odp_caps;
  uint64_t completion_timestamp_mask;
  uint64_t hca_core_clock;  // kHz
  uint64_t device_cap_flags_ex;
  struct ibv_tso_caps tso_caps;
  struct ibv_rss_caps rss_caps;
  uint32_t max_wq_type_rq;
  struct ibv_packet_pacing_caps packet_pacing_caps;
  uint32_t raw_packet_caps;  // enum ibv_raw_packet_caps
  struct ibv_tm_caps tm_caps;
  struct ibv_cq_moderation_caps cq_mod_caps;
  uint64_t max_dm_size;  // bytes
  struct ibv_pci_atomic_caps pci_atomic_caps;
  uint32_t xrc_odp_caps;
  uint32_t phys_port_cnt_ex;
};

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_DEVICE_ATTR_H
