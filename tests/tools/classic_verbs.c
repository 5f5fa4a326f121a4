/* SPDX-License-Identifier: BSD-2-Clause */
/* What the distribution's ibv_devinfo asks of libibverbs.so.1 beyond its public functions. Together
 * with the whole archive it makes a shared library under which those programs run over our devices:
 * for tests of the tools only. */
#include <infiniband/verbs.h>

__attribute__((visibility("default"))) int ibv_query_gid_type(struct ibv_context* context,
                                                              uint8_t port, unsigned index,
                                                              int* type);

/* 0: InfiniBand or RoCE v1, 1: RoCE v2, as the kernel's sysfs files tell them apart. */
int ibv_query_gid_type(struct ibv_context* context, uint8_t port, unsigned index, int* type) {
  struct ibv_gid_entry entry;
  const int error = ibv_query_gid_ex(context, port, index, &entry, 0);
  *type = error == 0 && entry.gid_type == IBV_GID_TYPE_ROCE_V2;
  return error;
}
