// SPDX-License-Identifier: BSD-2-Clause
// Child processes that never outlive their owner: a Child is ended and waited for by its
// destructor, and our own roles ask the kernel to be ended should the parent be killed before it
// can (end_with_parent). posix_spawn only, never a bare fork.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace verbatim::perf {

/// A file descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }
  int get() const { return fd_; }
  void reset();

 private:
  int fd_ = -1;
};

/// Two connected AF_UNIX SEQPACKET ends, closed on exec; throws std::system_error.
std::pair<Fd, Fd> socket_pair();
/// A read end and a write end, closed on exec.
std::pair<Fd, Fd> pipe_pair();

struct SpawnOptions {
  std::vector<std::pair<int, int>>
      fds;  // (ours, number in the child); all others above 2 are closed on exec
  std::vector<std::string> environment;  // "NAME=value", in place of our own value of NAME
  int stdout_fd = -1;                    // -1: inherited
  int stderr_fd = -1;
  bool hold_interrupts =
      false;  // starts with SIGINT blocked: a Ctrl-C on the terminal is the parent's business
};

class Child {
 public:
  Child() = default;
  /// Starts argv[0] (searched in PATH when it has no slash); throws std::system_error.
  Child(const std::vector<std::string>& argv, const SpawnOptions& options);
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept;
  ~Child() { end(); }

  pid_t pid() const { return pid_; }
  bool started() const { return pid_ > 0; }
  /// Waits for it to end by itself; the status as waitpid gives it. `waited_ns`: how long its main
  /// thread was kept from its core.
  int wait(double* waited_ns = nullptr);
  /// Kills it if it still runs, and waits.
  void end() noexcept;

 private:
  pid_t pid_ = -1;
};

/// For a child's first lines: SIGKILL when `parent`, which started us, ends, however that happens.
void end_with_parent(pid_t parent);

/// Path of the running program, and of a program beside it.
std::string own_path();
std::string path_beside_own(const std::string& name);
/// Whether PATH has an executable of this name.
bool is_installed(const std::string& name);

}  // namespace verbatim::perf
