// SPDX-License-Identifier: BSD-2-Clause
// A system call that fails, as a broken or poorer system would have it, for one thread only.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <thread>

namespace verbatim::unit {

/// Runs `body` on a thread of its own, for which the call `number` (SYS_...) answers `error`.
/// False: no filter can be set here, and it was not run.
template <class Body>
bool with_refused_call(long number, int error, Body body) {
  bool refused = false;
  std::thread([&] {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(number), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<__u32>(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof program / sizeof program[0], program};
    refused = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
              ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
    if (refused) body();
  }).join();
  return refused;
}

}  // namespace verbatim::unit
