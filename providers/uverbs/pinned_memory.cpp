// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/pinned_memory.hpp"

#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/cgroup.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"
#include "runtime/memory/address_space.hpp"
#include "runtime/memory/memory_headroom.hpp"

#ifndef MADV_POPULATE_READ  // Linux 5.14
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace verbatim::uverbs {
namespace {

constexpr std::uint64_t kKib = 1024;
constexpr unsigned kIpcLock = 14;  // CAP_IPC_LOCK

/// The number after "\nName:" of /proc/self/status.
std::uint64_t status_number(const char* status, const char* name, int base) noexcept {
  const char* const line = std::strstr(status, name);
  return line == nullptr ? 0 : std::strtoull(line + std::strlen(name), nullptr, base);
}

/// The kernel asks for the capability in the first user namespace, which has a fixed number.
bool is_first_user_namespace() noexcept {
  char name[64];
  const ssize_t length = ::readlink("/proc/self/ns/user", name, sizeof name - 1);
  if (length < 0) return true;  // a kernel without them has one
  name[length] = '\0';
  return std::strcmp(name, "user:[4026531837]") == 0;
}

bool read_limits(PinAccount& account) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
  if (limit.rlim_cur != RLIM_INFINITY) account.limit = limit.rlim_cur;
  if (limit.rlim_max != RLIM_INFINITY) account.most = limit.rlim_max;
  return true;
}

/// How much the tightest control group that we are in can still take.
std::uint64_t group_room() noexcept {
  std::uint64_t least = PinAccount::kNone;
  for (const bool version_2 : {true, false}) {
    CgroupWalk walk;
    if (!walk.begin(version_2 ? nullptr : "memory", version_2)) continue;
    do {
      least = std::min(least, cgroup_headroom(walk.directory(), version_2));
    } while (walk.up());
  }
  return least;
}

[[gnu::cold]] void explain_limit(const PinAccount& account, std::uint64_t asked) noexcept {
  const std::uint64_t need = (account.used + asked + kKib - 1) / kKib;
  char own[64] = "";
  if (account.most == PinAccount::kNone || account.most / kKib >= need) {
    std::snprintf(own, sizeof own, "'ulimit -l %" PRIu64 "' is allowed; for good: ", need);
  }
  log_error("cannot register %" PRIu64 " KiB (Cannot allocate memory): memlock limit %" PRIu64
            " KiB (RLIMIT_MEMLOCK%s), %" PRIu64 " KiB pinned already, %" PRIu64
            " KiB needed: raise 'ulimit -l': %s'* - memlock unlimited' in "
            "/etc/security/limits.conf and a new login, systemd: LimitMEMLOCK=infinity, "
            "containers: --ulimit memlock=-1",
            asked / kKib, account.limit / kKib,
            account.lifted ? "; this driver counts with CAP_IPC_LOCK too" : "", account.used / kKib,
            need, own);
}

}  // namespace

PinAccount read_pin_account() noexcept {
  PinAccount account;
  if (!read_limits(account)) {
    static constinit LogOnce once;
    if (once.first()) {
      log_warn("getrlimit(RLIMIT_MEMLOCK) failed: %s; what may be registered is unknown",
               std::strerror(errno));
    }
  }
  char status[4096];
  if (!read_proc_text("/proc/self/status", status, sizeof status)) return account;
  account.used = status_number(status, "\nVmPin:", 10) * kKib;
  account.lifted =
      (status_number(status, "\nCapEff:", 16) >> kIpcLock & 1) != 0 && is_first_user_namespace();
  return account;
}

Pinning::Pinning(const void* addr, std::size_t length, unsigned access) noexcept
    : writes_((access & IBV_ACCESS_LOCAL_WRITE) != 0) {
  if ((access & IBV_ACCESS_ON_DEMAND) != 0 || length == 0) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(addr);
  if (length > UINTPTR_MAX - first || first + length > UINTPTR_MAX - page) return;
  asked_ = first;
  begin_ = first / page * page;
  end_ = (first + length + page - 1) / page * page;
  // A few pages are made by the kernel sooner than we have asked for them.
  if (bytes() < kWorthMaking) return;
  // What will be refused need not take memory from others first. (Reading the whole account takes
  // longer than the registration.)
  PinAccount limits;
  (void)read_limits(limits);
  if (bytes() > limits.limit) {
    const PinAccount account = read_pin_account();
    if (!account.lifted) return;
  }
  (void)make_pages();
}

int Pinning::make_pages() const noexcept {
  return ::madvise(reinterpret_cast<void*>(begin_), bytes(),
                   writes_ ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0
             ? 0
             : errno;
}

void Pinning::explain(int error, bool lifts) const noexcept {
  if (bytes() == 0) return;
  if (error == EFAULT) {
    const MissingByte missing = find_missing(asked_, end_ - asked_, writes_);
    log_error("cannot register [%#" PRIxPTR ", %#" PRIxPTR ") (Bad address): %#" PRIxPTR " %s",
              begin_, end_, missing.lack == Lack::kNothing ? begin_ : missing.at,
              missing.lack == Lack::kNothing
                  ? "is there, but the kernel pins no such memory (a device's, or a file's on disk)"
                  : words_of(missing.lack));
    return;
  }
  if (error != ENOMEM) return;
  const PinAccount account = read_pin_account();
  const bool lifted = account.lifted && lifts;
  if (!lifted && account.limit != PinAccount::kNone && account.used + bytes() > account.limit) {
    explain_limit(account, bytes());
    return;
  }
  const std::uint64_t room = group_room();
  if (room < bytes()) {
    log_error("cannot register %" PRIu64
              " KiB (Cannot allocate memory): the memory cgroup has %" PRIu64
              " KiB left: raise it ('docker run --memory', systemd MemoryMax=, Slurm --mem)",
              bytes() / kKib, room / kKib);
    return;
  }
  const int fault = make_pages();
  log_error("cannot register %" PRIu64 " KiB (Cannot allocate memory; %" PRIu64
            " KiB are pinned already, the limit allows it): %s",
            bytes() / kKib, account.used / kKib,
            fault == ENOMEM || fault == EFAULT
                ? "part of it is not mapped, or there is no memory for it"
                : "the kernel has no memory for it, or the device no room");
}

void warn_of_low_memlock(const char* device) noexcept {
  constexpr std::uint64_t kLow = 1024 * kKib;  // less than the buffers of one busy queue
  static constinit LogOnce once;
  PinAccount limits;
  if (read_limits(limits) && limits.limit >= kLow) return;
  const PinAccount account = read_pin_account();
  if (account.limit >= kLow || account.lifted || !once.first()) return;
  log_warn("RLIMIT_MEMLOCK is %" PRIu64
           " bytes: this will severely limit memory registrations on %s: raise 'ulimit -l' "
           "('* - memlock unlimited' in /etc/security/limits.conf, systemd: "
           "LimitMEMLOCK=infinity, containers: --ulimit memlock=-1)",
           account.limit, device);
}

}  // namespace verbatim::uverbs
