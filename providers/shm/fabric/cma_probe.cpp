// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/cma_probe.hpp"

#include <sys/prctl.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <string_view>

#include "providers/shm/wire/layout.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"
#include "runtime/memory/address_space.hpp"

namespace verbatim::shm {
namespace {

bool switched_off() noexcept {
  static constexpr std::string_view kChoices[] = {"auto", "off"};
  return environment_choice("VERBATIM_SHM_CMA", kChoices, 0) == 1;
}

}  // namespace

Cma probe_cma(pid_t pid, std::uint64_t header_address, std::uint64_t identity) noexcept {
  if (header_address == 0 || switched_off()) return Cma::kRefused;
  if (pid <= 0) {
    static constinit LogOnce once;
    if (once.first())
      log_warn(
          "shm: a process of another pid namespace was met: nothing is copied directly from or to "
          "memory "
          "of its that is not mapped (malloc), which makes large messages several times slower; "
          "fix: let "
          "the containers share a pid namespace, or the program register memory of vbt_alloc");
    return Cma::kRefused;
  }
  struct {
    std::uint64_t magic;
    std::uint64_t identity;
  } seen{};
  iovec local[2] = {{&seen.magic, sizeof seen.magic}, {&seen.identity, sizeof seen.identity}};
  const auto at = [header_address](std::size_t offset) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(header_address + offset));
  };
  iovec remote[2] = {{at(offsetof(SegmentHeader, magic)), sizeof seen.magic},
                     {at(offsetof(SegmentHeader, identity)), sizeof seen.identity}};
  const ssize_t got = ::process_vm_readv(pid, local, 2, remote, 2, 0);
  if (got == sizeof seen && seen.magic == kSegmentMagic && seen.identity == identity)
    return Cma::kWorks;
  log_info(
      "no direct copies with process %d (%s): its unmapped memory is reached through its service "
      "thread",
      static_cast<int>(pid), got < 0 ? std::strerror(errno) : "it is not who it says");
  return Cma::kRefused;
}

void permit_cma() noexcept {
  if (switched_off()) {
    copy_doubtful_without_cma();
    return;
  }
  char text[16];
  if (!read_proc_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text) || text[0] != '1')
    return;
  if (::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) != 0) {
    log_info("yama does not let peers copy from and to this process: %s", std::strerror(errno));
  }
}

}  // namespace verbatim::shm
