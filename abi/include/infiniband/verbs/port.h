// SPDX-License-Identifier: BSD-2-Clause
//
// Ports: their attributes, GID and P_Key tables. Part of <infiniband/verbs.h>; usable alone.
// Any thread may call these. Port numbers start at 1, table indices at 0.
// Source: IBTA 14.2.5.6 (PortInfo); man ibv_query_port, ibv_query_gid_ex, ibv_query_pkey.
#ifndef INFINIBAND_VERBS_PORT_H
#define INFINIBAND_VERBS_PORT_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The largest payload of a packet; the value is a code, the size is 128 << code bytes.
enum ibv_mtu {
  IBV_MTU_256 = 1,
  IBV_MTU_512 = 2,
  IBV_MTU_1024 = 3,
  IBV_MTU_2048 = 4,
  IBV_MTU_4096 = 5,
};

enum ibv_port_state {
  IBV_PORT_NOP = 0,
  IBV_PORT_DOWN = 1,
  IBV_PORT_INIT = 2,
  IBV_PORT_ARMED = 3,
  IBV_PORT_ACTIVE = 4,
  IBV_PORT_ACTIVE_DEFER = 5,
};

/// Values of `ibv_port_attr.link_layer`.
enum {
  IBV_LINK_LAYER_UNSPECIFIED = 0,
  IBV_LINK_LAYER_INFINIBAND = 1,
  IBV_LINK_LAYER_ETHERNET = 2,
};

/// PortInfo:CapabilityMask.
enum ibv_port_cap_flags {
  IBV_PORT_SM = 1 << 1,
  IBV_PORT_NOTICE_SUP = 1 << 2,
  IBV_PORT_TRAP_SUP = 1 << 3,
  IBV_PORT_OPT_IPD_SUP = 1 << 4,
  IBV_PORT_AUTO_MIGR_SUP = 1 << 5,
  IBV_PORT_SL_MAP_SUP = 1 << 6,
  IBV_PORT_MKEY_NVRAM = 1 << 7,
  IBV_PORT_PKEY_NVRAM = 1 << 8,
  IBV_PORT_LED_INFO_SUP = 1 << 9,
  IBV_PORT_SYS_IMAGE_GUID_SUP = 1 << 11,
  IBV_PORT_PKEY_SW_EXT_PORT_TRAP_SUP = 1 << 12,
  IBV_PORT_EXTENDED_SPEEDS_SUP = 1 << 14,
  IBV_PORT_CAP_MASK2_SUP = 1 << 15,
  IBV_PORT_CM_SUP = 1 << 16,
  IBV_PORT_SNMP_TUNNEL_SUP = 1 << 17,
  IBV_PORT_REINIT_SUP = 1 << 18,
  IBV_PORT_DEVICE_MGMT_SUP = 1 << 19,
  IBV_PORT_VENDOR_CLASS_SUP = 1 << 20,
  IBV_PORT_DR_NOTICE_SUP = 1 << 21,
  IBV_PORT_CAP_MASK_NOTICE_SUP = 1 << 22,
  IBV_PORT_BOOT_MGMT_SUP = 1 << 23,
  IBV_PORT_LINK_LATENCY_SUP = 1 << 24,
  IBV_PORT_CLIENT_REG_SUP = 1 << 25,
  IBV_PORT_IP_BASED_GIDS = 1 << 26,
};

/// PortInfo:CapabilityMask2.
enum ibv_port_cap_flags2 {
  IBV_PORT_SET_NODE_DESC_SUP = 1 << 0,
  IBV_PORT_INFO_EXT_SUP = 1 << 1,
  IBV_PORT_VIRT_SUP = 1 << 2,
  IBV_PORT_SWITCH_PORT_STATE_TABLE_SUP = 1 << 3,
  IBV_PORT_LINK_WIDTH_2X_SUP = 1 << 4,
  IBV_PORT_LINK_SPEED_HDR_SUP = 1 << 5,
  IBV_PORT_LINK_SPEED_NDR_SUP = 1 << 10,
  IBV_PORT_LINK_SPEED_XDR_SUP = 1 << 12,
};

/// A port's attributes. Programs built with an older header have a shorter one: the library writes
/// no further than the size that the caller passes.
struct ibv_port_attr {
  enum ibv_port_state state;
  enum ibv_mtu max_mtu;
  enum ibv_mtu active_mtu;
  int gid_tbl_len;
  uint32_t port_cap_flags;  // enum ibv_port_cap_flags
  uint32_t max_msg_sz;      // bytes
  uint32_t bad_pkey_cntr;
  uint32_t qkey_viol_cntr;
  uint16_t pkey_tbl_len;
  uint16_t lid;     // host byte order; 0 on Ethernet
  uint16_t sm_lid;  // host byte order
  uint8_t lmc;      // 2^lmc LIDs lead here
  uint8_t max_vl_num;
  uint8_t sm_sl;
  uint8_t subnet_timeout;  // n: 4.096 us * 2^n
  uint8_t init_type_reply;
  uint8_t active_width;      // 1: 1x, 2: 4x, 4: 8x, 8: 12x, 16: 2x
  uint8_t active_speed;      // per lane; 1: 2.5 Gbit/s, 2: 5, 4 and 8: 10, 16: 14, 32: 25, ...
  uint8_t phys_state;        // 5: link up
  uint8_t link_layer;        // IBV_LINK_LAYER_*
  uint8_t flags;             // IBV_QPF_GRH_REQUIRED
  uint16_t port_cap_flags2;  // enum ibv_port_cap_flags2
  uint32_t active_speed_ex;  // 0, or the speed code when it needs more than 8 bits
};

/// The exported verb of 2005: writes the first 48 bytes of ibv_port_attr. Programs reach it through
/// the macro of the same name below, and then all of their ibv_port_attr is filled.
int ibv_query_port(struct ibv_context* context, uint8_t port_num,
                   struct _compat_ibv_port_attr* port_attr);

/// ibv_query_port for callers of this header: fills all of `port_attr`. 0 or an errno (EINVAL: no
/// such port).
static inline int ___ibv_query_port(struct ibv_context* context, uint8_t port_num,
                                    struct ibv_port_attr* port_attr) {
  struct verbs_context* extended = verbs_get_ctx_op(context, query_port);
  if (extended) return extended->query_port(context, port_num, port_attr, sizeof(*port_attr));
  memset(port_attr, 0, sizeof(*port_attr));
  return ibv_query_port(context, port_num,
                        VBT_POINTER_CAST_(struct _compat_ibv_port_attr*, port_attr));
}

#define ibv_query_port(context, port_num, port_attr) \
  ___ibv_query_port((context), (port_num), (port_attr))

/// The port's speed in units of 100 Mbit/s, lanes and line code accounted for. 0 or an errno; the
/// result is written on success only (man ibv_query_port_speed).
int ibv_query_port_speed(struct ibv_context* context, uint32_t port_num, uint64_t* port_speed);

/// Row `index` of the port's GID table. 0, or -1 with errno; an empty row reads as all zeros.
int ibv_query_gid(struct ibv_context* context, uint8_t port_num, int index, union ibv_gid* gid);

/// ibv_query_gid_ex with the size of the caller's entry: not a byte beyond it is written.
int _ibv_query_gid_ex(struct ibv_context* context, uint32_t port_num, uint32_t gid_index,
                      struct ibv_gid_entry* entry, uint32_t flags, size_t entry_size);

/// ibv_query_gid_table with the size of one caller's entry, which is also their distance.
ssize_t _ibv_query_gid_table(struct ibv_context* context, struct ibv_gid_entry* entries,
                             size_t max_entries, uint32_t flags, size_t entry_size);

/// One row of the GID table with its type and interface. `flags` must be 0. 0 or an errno: ENODATA
/// for an empty row, EINVAL for one outside the table.
static inline int ibv_query_gid_ex(struct ibv_context* context, uint32_t port_num,
                                   uint32_t gid_index, struct ibv_gid_entry* entry,
                                   uint32_t flags) {
  return _ibv_query_gid_ex(context, port_num, gid_index, entry, flags, sizeof(*entry));
}

/// The filled rows of all ports. `flags` must be 0. Their number, or a negative errno: -EINVAL when
/// `max_entries` are not enough.
static inline ssize_t ibv_query_gid_table(struct ibv_context* context,
                                          struct ibv_gid_entry* entries, size_t max_entries,
                                          uint32_t flags) {
  return _ibv_query_gid_table(context, entries, max_entries, flags, sizeof(*entries));
}

/// Row `index` of the P_Key table, in network byte order. 0, or -1.
int ibv_query_pkey(struct ibv_context* context, uint8_t port_num, int index, __be16* pkey);

/// The row that holds `pkey`, or -1.
int ibv_get_pkey_index(struct ibv_context* context, uint8_t port_num, __be16 pkey);

/// A readable name; never NULL; static storage.
const char* ibv_port_state_str(enum ibv_port_state port_state);

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_PORT_H
