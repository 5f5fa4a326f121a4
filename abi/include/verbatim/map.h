// SPDX-License-Identifier: BSD-2-Clause
//
// A peer's memory as a pointer: for protocols of flags and slots, whose every step would else be a
// work request. C and C++; any thread may call this, but not while another resets or destroys the
// queue pair.
#ifndef VERBATIM_MAP_H
#define VERBATIM_MAP_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Where the peer's [address, address + length) lies in this process, so that ordinary loads,
/// stores and atomics reach it: what an RDMA request of this queue pair with `rkey` would reach.
/// `access` is what will be done there: IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE or both.
/// The peer's region must be of vbt_alloc_shared (or VBT_ALLOC_SHARED), the queue pair RC or UC.
///
/// The pointer stays good until the queue pair is reset or destroyed, also when the peer has died
/// or deregistered the region. But nothing holds the peer's memory for it: unlike work requests,
/// loads and stores are not waited for by the peer's ibv_dereg_mr, and afterwards reach whatever
/// the peer keeps there. When both sides are done with it is for their protocol to say. Nor are
/// they ordered with work requests but as the machine orders them: what was stored before a request
/// is posted is seen by who has its message, and stores are seen in the order that atomics give
/// them. Nobody who sleeps is woken by them.
///
/// 0, and `*mapped` is written; or an errno: EINVAL (no queue pair, no place for the answer, no
/// bytes, another right; or the queue pair drains or has failed), EAGAIN (it is not connected yet,
/// the two processes are still meeting, or the memory is being mapped: ask again later), EACCES (the
/// key is not for this range, domain or right), EOPNOTSUPP (the device's provider, the queue pair's
/// type, or memory that cannot be mapped: RDMA reaches it).
int vbt_map_remote(struct ibv_qp* qp, uint32_t rkey, uint64_t address, size_t length,
                   unsigned access, void** mapped);

#ifdef __cplusplus
}
#endif

#endif  // VERBATIM_MAP_H
