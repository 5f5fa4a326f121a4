// SPDX-License-Identifier: BSD-2-Clause
//
// What an object is, asked of the object: the two queries that libibverbs never had. C and C++; any
// thread may call these, but not while another changes or destroys the object.
//
// Each takes the size of the caller's structure. It is filled as far as it goes, and cleared beyond
// what this library knows, so a program and a library of different ages understand each other;
// structures only ever grow at their end.
#ifndef VERBATIM_QUERY_H
#define VERBATIM_QUERY_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// How a process reaches the memory of another on the same host, fastest first.
enum vbt_tier {
  VBT_TIER_UNKNOWN = 0,        // not tried yet, or a provider that does not know
  VBT_TIER_MAPPED = 1,         // its own loads and stores
  VBT_TIER_KERNEL_COPY = 2,    // process_vm_readv and process_vm_writev
  VBT_TIER_SERVICE_THREAD = 3  // the owner's process copies: that thread, or who polls
};

/// A process that a queue pair of the region's protection domain is connected to.
struct vbt_mr_peer {
  int32_t pid;    // as seen from here; 0: not visible from here
  uint32_t tier;  // enum vbt_tier; what holds between the two of us in our direction
  uint64_t reserved;
};

/// Pages of a region on a NUMA node.
struct vbt_node_pages {
  uint32_t node;  // the kernel's number
  uint32_t reserved;
  uint64_t pages;  // of those looked at
};

enum vbt_placement {
  VBT_PLACEMENT_UNKNOWN = 0,  // the kernel does not tell (no NUMA support, a sandbox that forbids
                              // the question), or the region has no memory of this process
  VBT_PLACEMENT_KNOWN = 1
};

#ifndef VBT_NODE_UNKNOWN
#define VBT_NODE_UNKNOWN 0xffffffffu
#endif

struct vbt_mr_attr {
  // In:
  struct vbt_mr_peer* peers;  // an array of the caller's, or NULL: peers are not asked for
  uint32_t peer_room;         // elements of it
  // Out:
  uint32_t peer_count;  // elements filled; those that found no room are left out
  void* address;        // the first byte; NULL of memory without one (device memory)
  uint64_t length;      // bytes
  uint64_t iova;        // what work requests call the first byte
  struct ibv_pd* pd;    // the owner; still its owner's
  uint32_t access;      // enum ibv_access_flags
  uint32_t lkey;
  uint32_t rkey;          // 0: peers cannot name it
  uint32_t window_count;  // memory windows bound to it now: it is busy while there are any

  // Where its pages lie at this moment, seen from the calling thread. Looked up for callers whose
  // structure has these members: some 10 us for a small region, up to milliseconds for a large one,
  // of which 16384 pages are looked at, spread evenly.
  // In:
  struct vbt_node_pages* nodes;  // an array of the caller's, or NULL: only sums are asked for
  uint32_t node_room;            // elements of it
  // Out:
  uint32_t node_count;       // elements filled, by node; those that found no room are left out
  uint32_t placement;        // enum vbt_placement; with UNKNOWN the next counts are 0
  uint32_t local_node;       // of the calling thread; VBT_NODE_UNKNOWN
  uint64_t page_unit;        // bytes of a page in these counts: the system's
  uint64_t page_count;       // pages that the region touches
  uint64_t pages_looked_at;  // fewer than page_count: a sample
  uint64_t pages_present;    // of them, that have memory: untouched ones have none
                             // (those of shared memory: untouched by this process)
  uint64_t pages_remote;     // of those, that are not on local_node
  // Of the mappings that it lies in; 0 when that is unknown, or would take too long to find out:
  uint64_t least_page_size;  // bytes; differs from the next where mappings do
  uint64_t most_page_size;
  uint64_t huge_bytes;    // in transparent huge pages
  uint64_t pinned_bytes;  // that count against RLIMIT_MEMLOCK: 0 where the provider pins nothing
};

/// Everything about a memory region. `size` is sizeof *attr. 0 or an errno: EINVAL (no structure,
/// or one too short to say anything), EOPNOTSUPP (peers asked of a provider that has none).
int vbt_query_mr(struct ibv_mr* mr, struct vbt_mr_attr* attr, size_t size);

/// The attributes that an address handle was made with. `size` is sizeof *attr. 0 or an errno:
/// EINVAL (no structure, or one shorter than that of libibverbs).
int vbt_query_ah(struct ibv_ah* ah, struct ibv_ah_attr* attr, size_t size);

#ifdef __cplusplus
}
#endif

#endif  // VERBATIM_QUERY_H
