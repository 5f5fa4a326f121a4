// SPDX-License-Identifier: BSD-2-Clause
//
// What programs call, although rdma-core keeps it among the names for its own drivers. Included by
// the one unit that gives them their versions.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

extern "C" {

/// ibv_devinfo and pyverbs ask it how the GID `index` of `port` travels: 0: InfiniBand or RoCE v1,
/// 1: RoCE v2 (the words of sysfs, which knows no other). 0, or -1 with errno.
int dropin_ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index,
                              unsigned* type);

/// Of Debian 12's successors; the header of Verbatim declares it as a public function.
const char* dropin_ibv_wr_opcode_str(ibv_wr_opcode opcode);

int dropin_ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index,
                              unsigned* type) {
  ibv_gid_entry entry{};
  if (const int error = ibv_query_gid_ex(context, port, index, &entry, 0); error != 0) {
    // A GID that is not set has the type 0, as its file in sysfs would say.
    if (error != ENODATA) {
      errno = error;
      return -1;
    }
    entry.gid_type = IBV_GID_TYPE_IB;
  }
  *type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
  return 0;
}

const char* dropin_ibv_wr_opcode_str(ibv_wr_opcode opcode) { return ibv_wr_opcode_str(opcode); }

}  // extern "C"
