// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/process.hpp"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "perf/support/affinity.hpp"

extern char** environ;

namespace verbatim::perf {
namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

// Ours, with the names in `replaced` given their new values.
std::vector<std::string> child_environment(const std::vector<std::string>& replaced) {
  std::vector<std::string> result = replaced;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool known = false;
    for (const std::string& other : replaced) known |= other.starts_with(name);
    if (!known) result.emplace_back(text);
  }
  return result;
}

std::vector<char*> c_strings(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct FileActions {
  posix_spawn_file_actions_t actions;
  FileActions() { posix_spawn_file_actions_init(&actions); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
};

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::pair<Fd, Fd> socket_pair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) fail(errno, "socketpair");
  return {Fd(fds[0]), Fd(fds[1])};
}

std::pair<Fd, Fd> pipe_pair() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) fail(errno, "pipe2");
  return {Fd(fds[0]), Fd(fds[1])};
}

Child::Child(const std::vector<std::string>& argv, const SpawnOptions& options) {
  std::vector<std::string> arguments = argv;
  std::vector<std::string> environment = child_environment(options.environment);
  FileActions files;
  // First to numbers that no source has, then to the wanted ones: a direct dup2 could overwrite a
  // source still needed.
  int first_aside = 200;
  for (const auto& [ours, theirs] : options.fds) {
    first_aside = std::max({first_aside, ours + 1, theirs + 1});
  }
  int aside = first_aside;
  for (const auto& [ours, theirs] : options.fds) {
    posix_spawn_file_actions_adddup2(&files.actions, ours, aside++);
  }
  aside = first_aside;
  for (const auto& [ours, theirs] : options.fds) {
    posix_spawn_file_actions_adddup2(&files.actions, aside, theirs);
    posix_spawn_file_actions_addclose(&files.actions, aside++);
  }
  if (options.stdout_fd >= 0) {
    posix_spawn_file_actions_adddup2(&files.actions, options.stdout_fd, STDOUT_FILENO);
  }
  if (options.stderr_fd >= 0) {
    posix_spawn_file_actions_adddup2(&files.actions, options.stderr_fd, STDERR_FILENO);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (options.hold_interrupts) {
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    posix_spawnattr_setsigmask(&attributes, &held);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }
  const int error = posix_spawnp(&pid_, arguments.front().c_str(), &files.actions, &attributes,
                                 c_strings(arguments).data(), c_strings(environment).data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    pid_ = -1;
    fail(error, "start " + arguments.front());
  }
}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
  }
  return *this;
}

int Child::wait(double* waited_ns) {
  int status = 0;
  if (waited_ns != nullptr && pid_ > 0) {
    siginfo_t info;
    // Ended, but still there to be asked.
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    *waited_ns = waited_for_core_ns(pid_);
  }
  while (pid_ > 0 && waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) fail(errno, "waitpid");
  }
  pid_ = -1;
  return status;
}

void Child::end() noexcept {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void end_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have ended before the request took hold.
  if (getppid() != parent) _exit(1);
}

std::string own_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) fail(errno, "/proc/self/exe");
  return {path, static_cast<std::size_t>(length)};
}

std::string path_beside_own(const std::string& name) {
  const std::string self = own_path();
  return self.substr(0, self.rfind('/') + 1) + name;
}

bool is_installed(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
  }
  return false;
}

}  // namespace verbatim::perf
