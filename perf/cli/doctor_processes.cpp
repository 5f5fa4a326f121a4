// SPDX-License-Identifier: BSD-2-Clause
// `verbatim doctor`: what the kernel lets processes do with each other. Spec: process_vm_readv(2),
// ptrace(2) under "Ptrace access mode checking", namespaces(7), membarrier(2), pidfd_open(2).
#include <linux/membarrier.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "perf/cli/doctor_copy_check.hpp"
#include "perf/cli/doctor_findings.hpp"
#include "runtime/base/unique_fd.hpp"

namespace verbatim::cli {
namespace {

constexpr const char* kWithoutCma =
    ": large messages from memory that is not shared take the way over service threads, which is "
    "slower";

const char* yama_text(std::uint64_t scope) {
  switch (scope) {
    case 0:
      return "0 (any process of the user)";
    case 1:
      return "1 (descendants, and whom a process permits: the library permits its peers)";
    case 2:
      return "2 (CAP_SYS_PTRACE only)";
    case 3:
      return "3 (nobody, until the next boot)";
    default:
      return "unknown";
  }
}

void examine_copies(const HostFiles& files, Findings& findings) {
  const char* const choice = std::getenv("VERBATIM_SHM_CMA");
  if (choice != nullptr && std::string_view(choice) == "off") {
    findings.warn("CMA", std::string("VERBATIM_SHM_CMA=off") + kWithoutCma, "unset it");
    return;
  }
  const std::optional<std::uint64_t> yama =
      HostFiles::number(files.path("/proc/sys/kernel/yama/ptrace_scope"));
  const std::string scope =
      yama ? std::string("; yama ptrace_scope ") + yama_text(*yama) : "; no yama";
  const CopyCheck check = check_copies(yama == 1u);
  const Findings::Facts facts = {
      {"works", check.answer == CopyCheck::kWorks},
      {"errno", check.error},
      {"ptrace_scope", yama ? Findings::Facts(*yama) : Findings::Facts()}};
  if (check.answer == CopyCheck::kWorks) {
    findings.ok("CMA", "process_vm_readv and process_vm_writev work between processes" + scope,
                facts);
    return;
  }
  const std::string cause = std::string(check.call) + ": " +
                            (check.error != 0 ? std::strerror(check.error) : "failed") + scope;
  if (check.answer == CopyCheck::kNotTried) {
    findings.warn("CMA", "could not be tried: " + cause, "mount /proc, and let this program run",
                  facts);
  } else if (yama && *yama >= 2) {
    findings.warn("CMA", cause + kWithoutCma,
                  "'sysctl kernel.yama.ptrace_scope=1' (3 needs a reboot), or --cap-add=SYS_PTRACE",
                  facts);
  } else if (check.error == ENOSYS) {
    findings.warn("CMA", cause + kWithoutCma,
                  "the kernel, or what stands for it (gVisor), does not have it", facts);
  } else if (check.error == ESRCH) {
    findings.warn("CMA", cause + ": a process in another pid namespace is not found" + kWithoutCma,
                  "let them share one: --pid=host, --pid=container:<name>, Kubernetes "
                  "shareProcessNamespace, 'unshare --fork --pid'",
                  facts);
  } else {
    findings.warn(
        "CMA", cause + kWithoutCma,
        "a seccomp profile or a security module refuses it: --cap-add=SYS_PTRACE (docker, "
        "podman), '--security-opt seccomp=<profile that allows process_vm_readv>', "
        "Kubernetes securityContext.capabilities.add: [SYS_PTRACE]; or register memory of "
        "vbt_alloc_shared, which needs no copy by the kernel",
        facts);
  }
}

/// Whether what this process starts goes to another pid namespace than its own: after 'unshare
/// --pid' without '--fork'.
bool children_go_elsewhere(const HostFiles& files) {
  const std::string folder = files.path("/proc/self/ns/");
  const std::optional<std::string> ours = HostFiles::link(folder + "pid");
  const std::optional<std::string> theirs = HostFiles::link(folder + "pid_for_children");
  if (theirs) return ours && *theirs != *ours;
  // Of a namespace in which nobody lives yet, the kernel has the link and does not tell its target.
  struct stat status {};
  return ours && lstat((folder + "pid_for_children").c_str(), &status) == 0 &&
         S_ISLNK(status.st_mode);
}

void examine_namespaces(const HostFiles& files, Findings& findings) {
  struct Space {
    const char* file;
    const char* topic;
    const char* first;  // the kernel's fixed number of the one that it boots with
    const char* effect;
  };
  static constexpr Space kSpaces[] = {
      {"user", "user namespace", "user:[4026531837]",
       "root here is not root to the kernel: CAP_IPC_LOCK does not lift memlock, and peers of "
       "another user namespace are not reached by CMA"},
      {"pid", "pid namespace", "pid:[4026531836]",
       "processes of other containers are not seen: to talk with them by CMA share it "
       "('--pid=host', "
       "'--pid=container:<name>', Kubernetes shareProcessNamespace), and share the fabric "
       "folder"}};
  for (const Space& space : kSpaces) {
    const std::optional<std::string> here =
        HostFiles::link(files.path(std::string("/proc/self/ns/") + space.file));
    if (!here) {
      findings.warn(space.topic, "unknown: /proc/self/ns cannot be read",
                    "mount /proc: 'mount -t proc proc /proc'");
    } else if (*here == space.first) {
      findings.ok(space.topic, "the host's");
    } else {
      findings.ok(space.topic, *here + ", one of its own: " + space.effect);
    }
  }
  if (children_go_elsewhere(files)) {
    findings.fail("pid namespace",
                  "what this process starts goes to another one: it gets no thread (Invalid "
                  "argument), so no device of shm is opened, and its children do not find it",
                  "'unshare --fork --pid': the program starts within the namespace");
  }
}

void examine_calls(Findings& findings) {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
      syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) {
    findings.ok("membarrier", "works: a queue that one thread uses takes no atomic operation");
  } else {
    const int error = errno;
    findings.warn("membarrier",
                  std::string("membarrier: ") + std::strerror(error) +
                      ": each post and poll takes a lock by an atomic operation",
                  error == ENOSYS ? "run Linux 4.14 or later"
                                  : "let the seccomp profile of the container allow membarrier");
  }
  const UniqueFd self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (self.valid()) {
    findings.ok("pidfd", "pidfd_open works: the death of a peer is seen at once");
  } else {
    const int error = errno;
    findings.warn("pidfd",
                  std::string("pidfd_open: ") + std::strerror(error) +
                      ": the death of a peer is seen later, by looking for it",
                  error == ENOSYS ? "run Linux 5.3 or later"
                                  : "let the seccomp profile of the container allow pidfd_open");
  }
}

}  // namespace

void examine_processes(const HostFiles& files, Findings& findings) {
  examine_copies(files, findings);
  examine_namespaces(files, findings);
  examine_calls(findings);
}

}  // namespace verbatim::cli
