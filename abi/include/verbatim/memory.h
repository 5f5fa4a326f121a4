// SPDX-License-Identifier: BSD-2-Clause
//
// Memory for messages: where it lies, how large its pages are, whether it is locked, whether peers
// can map it. It may be registered in any number of protection domains, whole or in parts. And
// pools of small buffers in such memory, registered once.
// C and C++; any thread may call these, but vbt_free for a block that another thread registers at
// that moment, and vbt_destroy_pool for a pool that another thread uses.
#ifndef VERBATIM_MEMORY_H
#define VERBATIM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_context;
struct ibv_mr;
struct ibv_pd;

/// At least `size` bytes of zeroed memory, aligned to a page, owned by the caller, who returns it
/// with vbt_free_shared. It is ordinary private use until it is registered with remote access: from
/// then on peers that reach it by its rkey on the same host map it and load and store directly.
/// NULL + errno: EINVAL (size 0), ENOMEM.
void* vbt_alloc_shared(size_t size);

/// Gives such memory back. `addr` is what vbt_alloc_shared answered, or NULL: nothing happens.
/// 0 or an errno: EBUSY while it is registered, EINVAL for any other address.
int vbt_free_shared(void* addr);

/// What the allocators of a parent domain (ibv_alloc_parent_domain) are told that the memory is for:
/// their `resource_type`.
enum vbt_resource { VBT_RESOURCE_QP = 1, VBT_RESOURCE_CQ = 2, VBT_RESOURCE_SRQ = 3 };

enum vbt_where {
  VBT_WHERE_LOCAL = 0,    // the node that the calling thread runs on at this moment
  VBT_WHERE_NODE,         // the node with the kernel's number `node`
  VBT_WHERE_DEVICE,       // the node that `device` is attached to; of a device without one: local
  VBT_WHERE_INTERLEAVED,  // page by page over the nodes that this process may use
  VBT_WHERE_SPREAD        // in adjacent parts of like size, one on each of them, the nearest first
};

enum vbt_alloc_flags {
  VBT_ALLOC_SHARED = 1 << 0,  // peers can map it, as that of vbt_alloc_shared
  VBT_ALLOC_LOCKED = 1 << 1,  // never swapped out (mlock); fails where the limit is too low
  VBT_ALLOC_LATER = 1 << 2,   // private memory is not touched here, but by the thread that uses it;
                              // it lies where `where` said all the same. Then it cannot be locked,
                              // and no reserved huge pages are taken
  VBT_ALLOC_EXACT = 1 << 3    // fail (ENOMEM, and the reason in the log) instead of falling back
};

struct vbt_alloc_attr {
  size_t size;                 // bytes
  size_t alignment;            // bytes, a power of two up to 1 GiB; 0 and all below a page: a page
  size_t page_size;            // bytes: 0 (the kernel's choice), the system's page, 2 MiB, 1 GiB
  uint32_t where;              // enum vbt_where
  uint32_t node;               // of VBT_WHERE_NODE
  struct ibv_context* device;  // of VBT_WHERE_DEVICE
  uint32_t flags;              // enum vbt_alloc_flags
};

/// In what the block differs from what was asked for.
enum vbt_alloc_fallback {
  VBT_FALLBACK_PAGES = 1 << 0,  // the pages are smaller: as many huge ones are not there
  VBT_FALLBACK_NODE = 1 << 1,   // (part of) it lies on another node, which had room or was allowed
  VBT_FALLBACK_UNKNOWN = 1 << 2,  // where it lies cannot be chosen, or cannot be seen
};

#define VBT_NODE_UNKNOWN 0xffffffffu
#define VBT_NODE_SEVERAL 0xfffffffeu

struct vbt_alloc_facts {
  size_t size;       // bytes that may be used: what was asked for, up to the end of a page
  size_t page_size;  // bytes; the kernel may put larger pages in their place
  uint32_t node;    // the kernel's number, VBT_NODE_SEVERAL or VBT_NODE_UNKNOWN: up to 256 pages of
                    // the block are looked at. Of untouched memory: where it will lie
  uint32_t locked;  // 1 or 0
  uint32_t shared;  // 1 or 0
  uint32_t fallbacks;  // enum vbt_alloc_fallback
  char reason[192];    // of the fallbacks, for people; "" when there is none
};

/// Zeroed memory as `attr` describes it, owned by the caller, who returns it with vbt_free. It has
/// its pages when this returns (but for VBT_ALLOC_LATER). `facts`, if not NULL, tells what was got.
/// The sizes are sizeof *attr and sizeof *facts, so that the structures may grow at their ends:
/// what a shorter `attr` does not say is 0, and `facts` is cleared beyond what is known.
///
/// NULL + errno, with one line in the log: EINVAL (0 bytes, flags, alignment, pages or places that
/// cannot be, a node that is not there or not ours), ENOMEM (memory, huge pages with
/// VBT_ALLOC_EXACT, the limit of locked memory), EPERM (locking is not permitted at all).
void* vbt_alloc(const struct vbt_alloc_attr* attr, size_t attr_size, struct vbt_alloc_facts* facts,
                size_t facts_size);

/// Gives it back. `addr` is what vbt_alloc answered, or NULL: nothing happens. 0 or an errno: EBUSY
/// while any of it is registered, EINVAL with a line in the log for any other address, also for one
/// that was given back before.
int vbt_free(void* addr);

/// Buffers of one size in one block of memory: as many as were asked for, never more. What is free
/// and what is not is kept beside them, so a late write of a peer into a buffer that was given back
/// harms nothing but its contents.
struct vbt_pool;

struct vbt_pool_attr {
  size_t buffer_size;  // bytes of each, up to 1 GiB; with `alignment`, the distance between two
  size_t alignment;    // bytes of each, a power of two from 8 up to 1 GiB; 0: 64
  size_t count;        // buffers, below 2^31
  const struct vbt_alloc_attr* memory;  // as for vbt_alloc, its size 0: the pool knows; or NULL
  size_t memory_size;                   // sizeof *memory
  struct ibv_pd* pd;                    // all buffers are registered there, as one region; or NULL
  uint32_t access;                      // of that region: enum ibv_access_flags
  uint32_t flags;                       // 0: there are none yet
};

struct vbt_pool_facts {
  void* memory;       // of the first buffer: [memory, memory + size) may be registered once more in
  size_t size;        // each further protection domain
  size_t stride;      // bytes from the beginning of a buffer to that of the next
  size_t count;       // buffers
  size_t out;         // buffers that are allocated; exact when no thread allocates or frees
  struct ibv_mr* mr;  // of `pd`, with the keys of all buffers; the pool's. NULL: of none
};

/// `facts`, if not NULL, tells what memory was got, as of vbt_alloc; sizes as there. NULL + errno,
/// with one line in the log: EINVAL (0 buffers or bytes, what cannot be, what vbt_alloc refuses),
/// ENOMEM, and what ibv_reg_mr answers.
struct vbt_pool* vbt_create_pool(const struct vbt_pool_attr* attr, size_t attr_size,
                                 struct vbt_alloc_facts* facts, size_t facts_size);

/// With its memory and its region. 0 (also of NULL) or an errno, and then nothing has changed:
/// EBUSY while a buffer is out, while another region covers any, or a memory window is bound to the
/// pool's; EINVAL for what is no pool; EPERM in a forked child, where the pool is the parent's.
int vbt_destroy_pool(struct vbt_pool* pool);

/// A buffer, with whatever contents. It comes from the few that the calling thread keeps, else from
/// those that nobody keeps, else from what other threads keep: NULL means that all are out (ENOMEM,
/// nothing in the log), or a forked child (EPERM). Of memory that is spread over nodes
/// (VBT_WHERE_SPREAD) a thread gets those on its own node while nobody has them, but for the few
/// that it kept before it moved, or that one kept which has ended; then those of the nearest node.
/// Neither this nor vbt_pool_free enters the kernel unless threads contend, or the last buffers are
/// taken from what others keep.
void* vbt_pool_alloc(struct vbt_pool* pool);

/// Gives one back, by any thread. 0 (also of NULL), EPERM in a forked child, or EINVAL with a line
/// in the log: not the address of a buffer of this pool, or of one that is not out.
int vbt_pool_free(struct vbt_pool* pool, void* buffer);

/// `size` is sizeof *facts, as of vbt_query_mr. 0, or EINVAL: no pool, or no structure.
int vbt_query_pool(struct vbt_pool* pool, struct vbt_pool_facts* facts, size_t size);

#ifdef __cplusplus
}
#endif

#endif  // VERBATIM_MEMORY_H
