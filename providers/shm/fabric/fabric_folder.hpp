// SPDX-License-Identifier: BSD-2-Clause
//
// The rendezvous folder: where processes of one user find each other by queue pair number.
//
//   <folder>/q0a3     listening socket of the process that owns numbers 0x0a3000 ... 0x0a3fff
//   <folder>/lock     held (flock) while a name is made or a dead one is removed
//
// VERBATIM_FABRIC names a folder (absolute path) or a fabric; a fabric's folder is
// <XDG_RUNTIME_DIR, or /tmp>/verbatim-<uid>/<fabric>. Ours alone: owner checked, no rights for
// others, never a symbolic link. Containers share one by a bind mount.
//
// A name whose owner died refuses connections; whoever meets it removes it. Sockets are bound and
// reached through /proc/self/fd/<dirfd>/<name>, because a socket's path may have 108 bytes only.
//
// Any thread may call; nothing waits longer than kLockPatienceNs. Spec: unix(7), flock(2).
#pragma once

#include <limits.h>
#include <sys/un.h>

#include <cstdint>

#include "providers/shm/fabric/layout.hpp"
#include "runtime/base/unique_fd.hpp"

namespace verbatim::shm {

class FabricFolder {
 public:
  static constexpr std::uint64_t kLockPatienceNs = 2'000'000'000;

  /// Finds, makes and checks the folder. EACCES, ENOTDIR ... with the cause and the fix in the log.
  int open() noexcept;
  void close() noexcept;
  const char* path() const noexcept { return path_; }

  /// Takes a block that nobody lives in, looking from a pseudo-random one on; `listener` listens
  /// under its name (non-blocking, close-on-exec). EIO with the cause logged; ENOSPC when all
  /// blocks are taken.
  int claim(std::uint32_t& block, UniqueFd& listener) noexcept;
  /// Removes the name of a block that is ours.
  void release(std::uint32_t block) noexcept;

  /// Connects to the owner of a block without waiting. 0; ENOENT when nobody has claimed it,
  /// ECONNREFUSED when its owner is dead, EAGAIN when it is busy.
  int connect(std::uint32_t block, UniqueFd& socket) noexcept;
  /// Removes the name of a block whose owner is dead, if it still is; does nothing when the lock is
  /// taken.
  void remove_stale(std::uint32_t block) noexcept;

 private:
  int open_under(const char* base, const char* fabric) noexcept;
  int lock(std::uint64_t patience_ns, UniqueFd& held) noexcept;
  int try_claim_locked(std::uint32_t block, UniqueFd& listener) noexcept;
  bool address_of(std::uint32_t block, sockaddr_un& address) const noexcept;

  UniqueFd folder_;
  bool through_proc_ = true;
  char path_[PATH_MAX] = "";
};

}  // namespace verbatim::shm
