// SPDX-License-Identifier: BSD-2-Clause
// fork() and registered memory. The hazard that these verbs guard against is a device that writes
// to pages by their physical address, while copy-on-write has given the process other ones. Peers
// on this host reach memory through the owner's page tables, and since Linux 5.12 the kernel copies
// pinned pages for the child at once. So nothing has to be kept from a child, and the answers say
// that, until a device of an older kernel is opened: then pages that it registers are kept from
// children where the program has asked for it, here or by RDMAV_FORK_SAFE.
#include "abi/entry/border.hpp"
#include "runtime/memory/fork_guard.hpp"

VBT_ENTRY int ibv_fork_init() { return verbatim::fork_safety::ask(); }

VBT_ENTRY ibv_fork_status ibv_is_fork_initialized() {
  if (!verbatim::fork_safety::is_needed()) return IBV_FORK_UNNEEDED;
  return verbatim::fork_safety::is_on() ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

// What they would be asked for here is nobody's: the queues of our kernel devices are mappings of
// the driver's, which no copy-on-write moves. Not in verbs.h; libraries built beside rdma-core call
// them around their own queue memory.
VBT_ENTRY int ibv_dontfork_range(void*, std::size_t) { return 0; }

VBT_ENTRY int ibv_dofork_range(void*, std::size_t) { return 0; }
