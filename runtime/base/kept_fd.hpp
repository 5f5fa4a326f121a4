// SPDX-License-Identifier: BSD-2-Clause
// A descriptor that is kept for long. The application may close it behind our back, as daemons do
// that close all they do not know, and its number is another file's then. So it remembers which
// file it was, and closes only that one.
//
// Files without an inode of their own (eventfd, epoll; pidfds before Linux 6.9) cannot be told from
// each other. Once others of ours are known to have gone, doubt() leaves such a number alone. And
// between a look and what follows it the application may close the file: no look can help that.
//
// Not thread-safe itself: an owner is one object's member. A look costs a system call.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/unique_fd.hpp"

namespace verbatim {

class KeptFd {
 public:
  constexpr KeptFd() noexcept = default;
  explicit KeptFd(UniqueFd&& fd) noexcept : fd_(fd.release()) { remember(); }
  KeptFd(const KeptFd&) = delete;
  KeptFd& operator=(const KeptFd&) = delete;
  KeptFd(KeptFd&& other) noexcept { take(other); }
  KeptFd& operator=(KeptFd&& other) noexcept {
    if (this == &other) return *this;
    reset();
    take(other);
    return *this;
  }
  KeptFd& operator=(UniqueFd&& fd) noexcept { return *this = KeptFd(static_cast<UniqueFd&&>(fd)); }
  ~KeptFd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  /// The number still is the file that it was, as far as the kernel tells.
  [[nodiscard]] bool is_ours() const noexcept {
    if (fd_ < 0) return false;
    struct stat now {};
    if (!look(fd_, now)) return errno != EBADF;
    return inode_ == 0 || (now.st_ino == inode_ && now.st_dev == device_);
  }
  /// The owner has put another file under the number.
  void remember() noexcept {
    struct stat now {};
    inode_ = 0;
    if (fd_ < 0 || !look(fd_, now)) return;
    inode_ = now.st_ino;
    device_ = now.st_dev;
  }
  void reset() noexcept {
    if (!is_doubted_ && is_ours()) ::close(fd_);
    fd_ = -1;
    is_doubted_ = false;
  }
  /// Others of ours are gone: the number is used while it may be ours, and not closed any more.
  void doubt() noexcept {
    if (!is_ours()) fd_ = -1;
    is_doubted_ = true;
  }

 private:
  /// fstat(2), past what ThreadSanitizer puts before it: the number may be another's by now, which
  /// is what is asked, and would be told as a race with whoever opened that file.
  static bool look(int fd, struct stat& out) noexcept {
    return ::syscall(SYS_fstat, fd, &out) == 0;
  }
  void take(KeptFd& other) noexcept {
    fd_ = other.fd_;
    inode_ = other.inode_;
    device_ = other.device_;
    is_doubted_ = other.is_doubted_;
    other.fd_ = -1;
  }

  int fd_ = -1;
  bool is_doubted_ = false;
  ino_t inode_ = 0;  ///< 0: not known
  dev_t device_ = 0;
};

}  // namespace verbatim
