// SPDX-License-Identifier: BSD-2-Clause
// `verbatim doctor`: may processes here copy from and to each other's memory (CMA)? Yama, seccomp,
// user namespaces and security modules each have a say, so it is tried: this program runs itself
// once more, and that process reads a number of ours and writes it back. It is our child, and we
// its ancestor: what yama allows the other way round says nothing about peers.
#include "perf/cli/doctor_copy_check.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "perf/cli/doctor_findings.hpp"
#include "runtime/base/unique_fd.hpp"

extern char** environ;

namespace verbatim::cli {
namespace {

struct Numbers {
  std::uint64_t asked;
  std::uint64_t answered;
};

// Exit statuses of the peer: the errno (all are below 128 but for some that these calls have not),
// with this bit for the second call. No exit status is kCannotTell's.
constexpr int kWriting = 0x80;
constexpr int kCannotTell = 0x7f;
constexpr int kPatienceMs = 10'000;

/// Its exit status; below 0: it could not be started, or did not end by itself.
int run_peer(const std::string& whom) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -errno;
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  std::string words[] = {"verbatim", "doctor", "--copy-as-peer=" + whom};
  char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  posix_spawn_file_actions_t actions;
  if (const int error = posix_spawn_file_actions_init(&actions)) return -error;
  // The pipe is closed when the peer is gone. What it has to say is its exit status.
  posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -error;
  writing.reset();
  pollfd gone{reading.get(), POLLIN, 0};
  int ready;
  do {
    ready = poll(&gone, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -errno;  // somebody has told the kernel to collect our children
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -ETIMEDOUT;
}

}  // namespace

int copy_as_peer(const char* whom) {
  int pid = 0;
  std::uintptr_t address = 0;
  char rest = 0;
  if (std::sscanf(whom, "%d:%" SCNxPTR "%c", &pid, &address, &rest) != 2) return kCannotTell;
  Numbers seen{};
  iovec here{&seen.asked, sizeof seen.asked};
  iovec there{reinterpret_cast<void*>(address), sizeof seen.asked};
  if (process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof seen.asked)
    return errno < kCannotTell ? errno : kCannotTell;
  there.iov_base = reinterpret_cast<void*>(address + offsetof(Numbers, answered));
  if (process_vm_writev(pid, &here, 1, &there, 1, 0) != sizeof seen.asked)
    return kWriting | (errno < kCannotTell ? errno : kCannotTell);
  return 0;
}

CopyCheck check_copies(bool permit) {
  if (permit) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // as the library does
  Numbers numbers{};
  if (getrandom(&numbers.asked, sizeof numbers.asked, GRND_NONBLOCK) != sizeof numbers.asked)
    numbers.asked = 0x9e3779b97f4a7c15;
  char whom[64];
  std::snprintf(whom, sizeof whom, "%d:%" PRIxPTR, static_cast<int>(getpid()),
                reinterpret_cast<std::uintptr_t>(&numbers));
  const int status = run_peer(whom);
  const volatile std::uint64_t& answered = numbers.answered;  // written by another process
  if (status == 0 && answered == numbers.asked) return {CopyCheck::kWorks, 0, ""};
  if (status < 0) return {CopyCheck::kNotTried, -status, "posix_spawn"};
  const int error = status & kCannotTell;
  return {CopyCheck::kRefused, error == kCannotTell ? 0 : error,
          (status & kWriting) != 0 ? "process_vm_writev" : "process_vm_readv"};
}

}  // namespace verbatim::cli
