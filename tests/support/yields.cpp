// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/yields.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {
thread_local constinit std::uint64_t yields = 0;
}  // namespace

extern "C" int sched_yield() noexcept {
  ++yields;
  return static_cast<int>(::syscall(SYS_sched_yield));
}

std::uint64_t verbatim::harness::yields_of_this_thread() noexcept { return yields; }
