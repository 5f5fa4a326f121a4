// SPDX-License-Identifier: BSD-2-Clause
//
// Finding, opening and asking devices; how devices live with fork().
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these.
// Source: IBTA 11.2.1 (HCA verbs); man ibv_get_device_list, ibv_query_device, ibv_query_device_ex.
#ifndef INFINIBAND_VERBS_DEVICE_H
#define INFINIBAND_VERBS_DEVICE_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/device_attr.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ibv_node_type {
  IBV_NODE_UNKNOWN = -1,
  IBV_NODE_CA = 1,
  IBV_NODE_SWITCH = 2,
  IBV_NODE_ROUTER = 3,
  IBV_NODE_RNIC = 4,
  IBV_NODE_USNIC = 5,
  IBV_NODE_USNIC_UDP = 6,
  IBV_NODE_UNSPECIFIED = 7,
};

enum ibv_transport_type {
  IBV_TRANSPORT_UNKNOWN = -1,
  IBV_TRANSPORT_IB = 0,
  IBV_TRANSPORT_IWARP = 1,
  IBV_TRANSPORT_USNIC = 2,
  IBV_TRANSPORT_USNIC_UDP = 3,
  IBV_TRANSPORT_UNSPECIFIED = 4,
};

/// Two pointers that nobody calls any more; they keep the offsets behind them.
struct _ibv_device_ops {
  struct ibv_context* (*_dummy1)(struct ibv_device* device, int cmd_fd);
  void (*_dummy2)(struct ibv_context* context);
};

enum {
  IBV_SYSFS_NAME_MAX = 64,
  IBV_SYSFS_PATH_MAX = 256,
};

/// A device that may be opened. Owned by the list it came from and by the contexts opened on it.
struct ibv_device {
  struct _ibv_device_ops _ops;
  enum ibv_node_type node_type;
  enum ibv_transport_type transport_type;
  char name[IBV_SYSFS_NAME_MAX];        // "shm0"
  char dev_name[IBV_SYSFS_NAME_MAX];    // of the kernel's character device, if any
  char dev_path[IBV_SYSFS_PATH_MAX];    // its folder under /sys/class/infiniband_verbs, if any
  char ibdev_path[IBV_SYSFS_PATH_MAX];  // its folder under /sys/class/infiniband, if any
};

/// The devices of the providers that are linked in, as an array that ends with NULL. Stores their
/// number in `num_devices` unless that is NULL. The caller returns it with ibv_free_device_list.
/// NULL + errno: EPERM, ENOSYS, ENOMEM.
struct ibv_device** ibv_get_device_list(int* num_devices);

/// Gives back a list. A device of it that has not been opened must not be used afterwards.
void ibv_free_device_list(struct ibv_device** list);

/// The name, e.g. "shm0"; lives as long as the device. NULL for NULL.
const char* ibv_get_device_name(struct ibv_device* device);

/// The kernel's index of the device, or -1 for a device that the kernel does not know.
int ibv_get_device_index(struct ibv_device* device);

/// The node GUID, in network byte order.
__be64 ibv_get_device_guid(struct ibv_device* device);

/// Opens `device`; every call gives another context. The caller closes it. NULL + errno.
struct ibv_context* ibv_open_device(struct ibv_device* device);

/// Closes a context, and ends what is left of the objects made from it; nobody need acknowledge
/// their events. The verbs that destroy such an object may still be called, once: 0. 0 or an errno:
/// EBUSY while a stopped process is in the middle of a copy to memory of ours.
int ibv_close_device(struct ibv_context* context);

/// A context on a command channel that another process opened (man ibv_import_device).
/// NULL + errno: EOPNOTSUPP when the device has no such channel.
struct ibv_context* ibv_import_device(int cmd_fd);

/// Fills all of `device_attr`. 0 or an errno.
int ibv_query_device(struct ibv_context* context, struct ibv_device_attr* device_attr);

/// Fills all of `attr`; what the library does not know is 0. `input` may be NULL. 0 or an errno:
/// EINVAL for an input mask that is not 0.
static inline int ibv_query_device_ex(struct ibv_context* context,
                                      const struct ibv_query_device_ex_input* input,
                                      struct ibv_device_attr_ex* attr) {
  struct verbs_context* extended;
  if (input && input->comp_mask != 0) return EINVAL;
  extended = verbs_get_ctx_op(context, query_device_ex);
  if (extended) {
    const int status = extended->query_device_ex(context, input, attr, sizeof(*attr));
    if (status != EOPNOTSUPP && status != ENOSYS) return status;
  }
  // A library or device without the newer query: the old attributes, and zeros behind them.
  memset(attr, 0, sizeof(*attr));
  return ibv_query_device(context, &attr->orig_attr);
}

/// Which of the two clocks of ibv_query_rt_values_ex is asked for, or was answered.
enum ibv_values_mask {
  IBV_VALUES_MASK_RAW_CLOCK = 1 << 0,
  IBV_VALUES_MASK_RESERVED = 1 << 1,
};

struct ibv_values_ex {
  uint32_t comp_mask;         // enum ibv_values_mask
  struct timespec raw_clock;  // the device's free-running clock, in cycles, in tv_nsec
};

/// Reads the device's clock now. 0 or an errno; EOPNOTSUPP where there is none.
static inline int ibv_query_rt_values_ex(struct ibv_context* context,
                                         struct ibv_values_ex* values) {
  struct verbs_context* extended = verbs_get_ctx_op(context, query_rt_values);
  return extended ? extended->query_rt_values(context, values) : EOPNOTSUPP;
}

/// How safe fork() is for registered memory (man ibv_is_fork_initialized).
enum ibv_fork_status {
  IBV_FORK_DISABLED = 0,
  IBV_FORK_ENABLED = 1,
  IBV_FORK_UNNEEDED = 2,
};

/// Asks that fork() leave registered memory in the parent's hands. Call it before the first
/// registration. 0 or an errno: EINVAL when called too late.
int ibv_fork_init(void);

/// The state that ibv_fork_init asked for, or that needs no asking.
enum ibv_fork_status ibv_is_fork_initialized(void);

/// A readable name; never NULL; static storage.
const char* ibv_node_type_str(enum ibv_node_type node_type);

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_DEVICE_H
