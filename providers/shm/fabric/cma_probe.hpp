// SPDX-License-Identifier: BSD-2-Clause
//
// May we copy from and to another process's memory (process_vm_readv/writev)? yama, seccomp, user
// and pid namespaces and dumpability all have a say, so it is really tried, once per pair of
// processes. VERBATIM_SHM_CMA=off answers no without trying.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "providers/shm/fabric/peer.hpp"

namespace verbatim::shm {

/// Reads the header that the peer says it has at `header_address` and looks for `identity` in it:
/// right only when the pid is the process we think it is.
[[nodiscard]] Cma probe_cma(pid_t pid, std::uint64_t header_address,
                            std::uint64_t identity) noexcept;

/// Lets peers copy from and to us where yama restricts that to ancestors (ptrace_scope 1). Nothing
/// elsewhere.
void permit_cma() noexcept;

}  // namespace verbatim::shm
