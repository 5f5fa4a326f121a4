// SPDX-License-Identifier: BSD-2-Clause
// One copy by the kernel between two processes' private memory (process_vm_writev,
// process_vm_readv).
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace verbatim::perf {

/// 0, or the errno with which the kernel refuses this peer (yama, seccomp, namespaces).
int cma_refusal(pid_t peer, void* peer_address);

/// All of `size` bytes; throws std::system_error.
void cma_write(pid_t peer, void* to, const void* from, std::size_t size);
void cma_read(pid_t peer, void* to, const void* from, std::size_t size);

}  // namespace verbatim::perf
