// SPDX-License-Identifier: BSD-2-Clause
//
// Memory that other processes can map: the fastest kind to send from and to be written into.
// C and C++; any thread may call these.
#ifndef VERBATIM_MEMORY_H
#define VERBATIM_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// At least `size` bytes of zeroed memory, aligned to a page, owned by the caller, who returns it
/// with vbt_free_shared. It is ordinary private use until it is registered with remote access: from
/// then on peers that reach it by its rkey on the same host map it and load and store directly.
/// NULL + errno: EINVAL (size 0), ENOMEM.
void* vbt_alloc_shared(size_t size);

/// Gives such memory back. `addr` is what vbt_alloc_shared answered, or NULL: nothing happens.
/// 0 or an errno: EBUSY while it is registered, EINVAL for any other address.
int vbt_free_shared(void* addr);

#ifdef __cplusplus
}
#endif

#endif  // VERBATIM_MEMORY_H
