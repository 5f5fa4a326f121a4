// SPDX-License-Identifier: BSD-2-Clause
// fork() and registered memory. The hazard that these verbs guard against is a device that writes
// to pages by their physical address, while copy-on-write has given the process other ones. Peers
// on this host reach memory through the owner's page tables, and since Linux 5.12 the kernel copies
// pinned pages for the child at once. So nothing has to be kept from a child, and the answers say
// that instead of pretending to do it; an older kernel is warned of when its device is opened.
#include "abi/entry/border.hpp"

VBT_ENTRY int ibv_fork_init() { return 0; }

VBT_ENTRY ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

// Not in verbs.h; libraries built beside rdma-core call them around their own queue memory.
VBT_ENTRY int ibv_dontfork_range(void*, std::size_t) { return 0; }

VBT_ENTRY int ibv_dofork_range(void*, std::size_t) { return 0; }
