// SPDX-License-Identifier: BSD-2-Clause
//
// Ground of the verbs headers: fixed-width and big-endian types, the GID, and the spelling helpers
// that let one text be clean C11 and clean C++. Part of <infiniband/verbs.h>; usable alone.
// Layout source: rdma-core 44 (libibverbs-dev), InfiniBand Architecture Specification (IBTA)
// vol. 1.
#ifndef INFINIBAND_VERBS_BASE_H
#define INFINIBAND_VERBS_BASE_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

// The kernel's names for big-endian integers. Without kernel headers (another libc, another
// system) the same types are spelled here, so that a verbs program still compiles.
#if defined(__has_include)
#if __has_include(<linux/types.h>)
#include <linux/types.h>
#define VBT_HAVE_LINUX_TYPES_ 1
#endif
#endif
#ifndef VBT_HAVE_LINUX_TYPES_
__extension__ typedef unsigned long long __u64;
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef int32_t __s32;
typedef uint32_t __u32;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef __u64 __be64;
#define __aligned_u64 __u64 __attribute__((aligned(8)))
#endif

// Casts: C++ callers that build with -Wold-style-cast see none of ours.
#ifdef __cplusplus
#define VBT_POINTER_CAST_(type, value) (reinterpret_cast<type>(value))
#define VBT_VALUE_CAST_(type, value) (static_cast<type>(value))
#else
#define VBT_POINTER_CAST_(type, value) ((type)(value))
#define VBT_VALUE_CAST_(type, value) ((type)(value))
#endif

/// A function whose result depends on its arguments alone.
#define VBT_CONST_FUNCTION_ __attribute__((__const__))

#ifdef __cplusplus
extern "C" {
#endif

/// A 128-bit port address in network byte order (IBTA 4.1.1); the same shape as an IPv6 address.
union ibv_gid {
  uint8_t raw[16];
  struct {
    __be64 subnet_prefix;
    __be64 interface_id;
  } global;
};

/// How a GID travels: InfiniBand, RoCE over Ethernet (v1), RoCE over UDP (v2).
enum ibv_gid_type {
  IBV_GID_TYPE_IB = 0,
  IBV_GID_TYPE_ROCE_V1 = 1,
  IBV_GID_TYPE_ROCE_V2 = 2,
};

/// One row of a port's GID table. `ndev_ifindex` is 0 when no network interface stands behind it.
struct ibv_gid_entry {
  union ibv_gid gid;
  uint32_t gid_index;
  uint32_t port_num;
  uint32_t gid_type;  // enum ibv_gid_type
  uint32_t ndev_ifindex;
};

/// Whether a structure of `sz` bytes, as its writer declared it, reaches the member `fld` of
/// `type`.
#define vext_field_avail(type, fld, sz) (offsetof(type, fld) < (sz))

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_BASE_H
