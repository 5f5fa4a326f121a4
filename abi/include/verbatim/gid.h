// SPDX-License-Identifier: BSD-2-Clause
//
// Which of a port's addresses to use. RoCE ports have many (link-local and routable, of two
// versions of the protocol), and the first is often not the one that works. C and C++; any thread.
#ifndef VERBATIM_GID_H
#define VERBATIM_GID_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The GID of `port_num` to connect with: RoCE v2 before v1, routable before link-local, then the
/// first. With `remote` (else NULL) only one that can lead there: of the same family (IPv4 within
/// IPv6, or IPv6) and of the same scope, first of the network that is nearest to it.
///
/// A pair without agreeing on anything: one side picks with NULL and tells its GID, the other picks
/// with that GID as `remote` and answers with what it got.
///
/// `size` is sizeof *entry: filled as far as it goes, cleared beyond what this library knows. 0 or
/// an errno: ENODATA (the port has none, or none that leads there), EINVAL (no such port, no entry,
/// or one too short for a GID and its index).
int vbt_pick_gid(struct ibv_context* context, uint8_t port_num, const union ibv_gid* remote,
                 struct ibv_gid_entry* entry, size_t size);

#ifdef __cplusplus
}
#endif

#endif  // VERBATIM_GID_H
