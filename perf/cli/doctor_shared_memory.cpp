// SPDX-License-Identifier: BSD-2-Clause
// `verbatim doctor`: the shared memory of shm, which is memfds whose descriptors processes pass to
// each other: really made, and the limits that can take them away.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "perf/cli/doctor_findings.hpp"
#include "perf/cli/topo_facts.hpp"
#include "runtime/base/unique_fd.hpp"

namespace verbatim::cli {
namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

/// Makes one, fills and maps it. The call that failed, or nothing.
const char* failing_call() {
  constexpr std::size_t kBytes = 2 * kMib;
  const UniqueFd fd(memfd_create("verbatim-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return "memfd_create";
  if (ftruncate(fd.get(), kBytes) != 0) return "ftruncate";
  if (fallocate(fd.get(), 0, 0, kBytes) != 0) return "fallocate";
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return "mmap";
  std::memset(memory, 1, kBytes);
  munmap(memory, kBytes);
  return nullptr;
}

void examine_memfd(Findings& findings) {
  rlimit size{};
  // Beyond it the kernel sends a signal; the doctor shall live to tell.
  if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur < 2 * kMib) {
    findings.fail("memfd", "files may have " + bytes_text(size.rlim_cur) + " only (ulimit -f)",
                  "'ulimit -f unlimited'");
    return;
  }
  const char* const call = failing_call();
  if (call == nullptr) {
    findings.ok("memfd", "memfd_create works: shared memory is made, filled and mapped");
    return;
  }
  const int error = errno;
  findings.fail("memfd",
                std::string(call) + ": " + std::strerror(error) + ": shm has no memory to share",
                error == EMFILE || error == ENFILE ? "raise 'ulimit -n'"
                : error == ENOMEM || error == ENOSPC
                    ? "raise the memory limit of the control group, or 'ulimit -v'"
                    : "the seccomp profile of the container refuses it: allow memfd_create, "
                      "ftruncate and mmap, as the default profiles of docker and podman do");
}

void examine_dev_shm(const HostFiles& files, Findings& findings) {
  struct statvfs space {};
  if (statvfs(files.path("/dev/shm").c_str(), &space) != 0) {
    findings.ok("/dev/shm", "it is not there; this library does not need it (memfd)");
    return;
  }
  const std::uint64_t total = std::uint64_t{space.f_blocks} * space.f_frsize;
  const std::uint64_t left = std::uint64_t{space.f_bavail} * space.f_frsize;
  findings.ok("/dev/shm",
              bytes_text(left) + " of " + bytes_text(total) +
                  " free; this library does not use it (memfd), others do (--shm-size)",
              {{"total_bytes", total}, {"free_bytes", left}});
}

void examine_limit(decltype(RLIMIT_AS) resource, rlim_t enough, const char* topic, const char* what,
                   const char* effect, const char* fix, Findings& findings) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  const bool bytes = resource != RLIMIT_NOFILE;
  const std::string value = limit.rlim_cur == RLIM_INFINITY ? "unlimited"
                            : bytes                         ? bytes_text(limit.rlim_cur)
                                                            : std::to_string(limit.rlim_cur);
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= enough) {
    findings.ok(topic, what + (": " + value));
  } else {
    findings.warn(topic, what + (": " + value) + ": " + effect, fix);
  }
}

}  // namespace

void examine_shared_memory(const HostFiles& files, Findings& findings) {
  examine_memfd(findings);
  examine_dev_shm(files, findings);
  examine_limit(RLIMIT_NOFILE, 1024, "open files", "open files (ulimit -n)",
                "each peer takes some descriptors; beyond it opening and connecting answer EMFILE "
                "(Too many open files)",
                "'ulimit -n 65536', LimitNOFILE= of systemd, --ulimit nofile=65536 of containers",
                findings);
  examine_limit(RLIMIT_AS, 64 * 1024 * kMib, "address space", "address space (ulimit -v)",
                "the memory of every peer is mapped, so peers are refused where it ends",
                "'ulimit -v unlimited'; Slurm and PBS: ask for memory without a vmem limit",
                findings);
  examine_limit(RLIMIT_FSIZE, 2 * 1024 * kMib, "file size", "file size (ulimit -f)",
                "it also holds for shared memory, which is then made smaller",
                "'ulimit -f unlimited'", findings);
}

}  // namespace verbatim::cli
