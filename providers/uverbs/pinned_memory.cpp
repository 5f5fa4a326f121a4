// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/pinned_memory.hpp"

#include <sys/resource.h>

#include <cinttypes>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"

namespace verbatim::uverbs {
namespace {

/// In KiB, as the kernel counts it against the limit.
std::uint64_t pinned_now() noexcept {
  char status[4096];
  if (!read_proc_text("/proc/self/status", status, sizeof status)) return 0;
  const char* const line = std::strstr(status, "VmPin:");
  return line == nullptr ? 0 : std::strtoull(line + sizeof "VmPin:" - 1, nullptr, 10);
}

}  // namespace

void explain_pinning(std::size_t asked) noexcept {
  constexpr std::uint64_t kKib = 1024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  const std::uint64_t wanted = (asked + kKib - 1) / kKib;
  const std::uint64_t used = pinned_now();
  if (limit.rlim_cur == RLIM_INFINITY || used + wanted <= limit.rlim_cur / kKib) {
    log_error("cannot register %" PRIu64 " KiB (%" PRIu64
              " KiB are pinned already): the kernel has no memory for it, or the device no room",
              wanted, used);
    return;
  }
  log_error("cannot register %" PRIu64 " KiB: memlock limit %" PRIu64 " KiB, %" PRIu64
            " KiB pinned already: raise 'ulimit -l' (systemd: LimitMEMLOCK=, containers: --ulimit "
            "memlock=-1)",
            wanted, static_cast<std::uint64_t>(limit.rlim_cur) / kKib, used);
}

}  // namespace verbatim::uverbs
