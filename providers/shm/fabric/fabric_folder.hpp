// SPDX-License-Identifier: BSD-2-Clause
//
// The fabric folder: where processes of one user find each other by queue pair number.
//
//   <folder>/q0a3     listening socket of the process that owns numbers 0x0a3000 ... 0x0a3fff
//   <folder>/w89abcde a socket on its way to have no name (wake_socket.hpp): for a moment only
//   <folder>/x11-2a   held (flock) by all who have the XRC domain of a file open
//   <folder>/lock     held (flock) while a name is made or a dead one is removed; the last to leave
//                     removes it too
//
// VERBATIM_FABRIC names a folder (absolute path) or a fabric; a fabric's folder is
// <XDG_RUNTIME_DIR, or /tmp>/verbatim-<uid>/<fabric>. Ours alone: owner checked, no rights for
// others, never a symbolic link. Containers share one by a bind mount.
//
// A name whose owner died refuses connections. It is removed by whoever wants to reach it, by those
// who knew its owner, and by whoever makes a name: each looks at a number of others too, so that
// what a crash leaves goes away with the next starts. Sockets are bound and reached through
// /proc/self/fd/<dirfd>/<name>, because a socket's path may have 108 bytes only.
//
// It can be removed while we live in it (a logout, a cleaner of /tmp, a hand), as a whole or name
// by name: who is connected stays so, but nobody finds anybody any more. is_left(), lacks() tell
// it; find_place(), move_to() and claim_again() are the way back (own_names.hpp walks it).
//
// Any thread may call, but for those two; nothing waits longer than kLockPatienceNs. Spec: unix(7),
// flock(2).
#pragma once

#include <limits.h>
#include <sys/un.h>

#include <atomic>
#include <cstdint>

#include "providers/shm/wire/layout.hpp"
#include "runtime/base/kept_fd.hpp"
#include "runtime/base/private_folder.hpp"

namespace verbatim::shm {

class FabricFolder {
 public:
  static constexpr std::uint64_t kLockPatienceNs = 2'000'000'000;

  /// Finds, makes and checks the folder. EACCES, ENOTDIR ... with the cause and the fix in the log.
  int open() noexcept;
  void close() noexcept;
  /// Removes the lock file when no name is left, if whoever holds it lets go in time. After the
  /// release of our own names.
  void leave(std::uint64_t patience_ns = 100'000'000) noexcept;
  /// It is still open under its number.
  bool is_open() const noexcept { return folder_.is_ours(); }
  const char* path() const noexcept { return path_.load(std::memory_order_acquire); }
  /// Tells it from the folders of other fabrics.
  std::uint64_t number() const noexcept;

  /// Takes a block that nobody lives in, looking from a pseudo-random one on; `listener` listens
  /// under its name (non-blocking, close-on-exec). EIO with the cause logged; ENOSPC when all
  /// blocks are taken.
  int claim(std::uint32_t& block, UniqueFd& listener) noexcept;
  /// The name of a block that is ours, once more, after lacks(). Never waits. Silent: EADDRINUSE
  /// when somebody lives in the block meanwhile, EBUSY when the folder is locked.
  int claim_again(std::uint32_t block, UniqueFd& listener) noexcept;
  /// What tells our name of a block from one that somebody made after it was gone; 0: it is gone,
  /// or cannot be asked.
  std::uint64_t inode_of(std::uint32_t block) const noexcept;
  /// Whether the name that was this one is known to be gone, or somebody else's.
  bool lacks(std::uint32_t block, std::uint64_t inode) const noexcept;
  /// Removes the name of a block that is ours, if it is still that one.
  void release(std::uint32_t block, std::uint64_t inode) noexcept;

  /// A datagram socket of ours without a name: only `place` (O_PATH) leads to it. 0 or an errno.
  /// Silent.
  int bind_apart(UniqueFd& socket, UniqueFd& place) noexcept;

  /// Holds a name beside others who hold it too; it goes with the last of them. ENOENT: nobody
  /// holds it, and `create` is not said; EEXIST: somebody does, and `exclusive` is said; EIO,
  /// logged.
  int hold(const char* name, bool create, bool exclusive, KeptFd& held) noexcept;
  void let_go(const char* name, KeptFd& held) noexcept;
  /// Holds what is held already under its name again, if that has gone. Never waits. Silent.
  int hold_again(const char* name, KeptFd& held) noexcept;
  /// Whether what is held has lost its name.
  bool lacks(const char* name, const KeptFd& held) const noexcept;

  /// Why processes that start now do not come to this folder; nullptr: as far as can be seen, they
  /// do.
  const char* is_left() const noexcept;
  struct Place {
    UniqueFd folder;
    unsigned way = 0;
    char path[PATH_MAX] = "";  ///< of the folder, or of the one above it that is refused
  };
  /// Finds, makes and checks the folder where they come. Silent.
  int find_place(Place& place, FolderRefusal& refusal) const noexcept;
  /// Has this be that folder from now on, also for threads that are using it. One thread at a time.
  int move_to(const Place& place) noexcept;

  /// The blocks that have names, as bits. False: the folder cannot be read.
  bool list_blocks(std::uint64_t (&words)[kQpnBlocks / 64]) const noexcept;
  /// Changes when a name comes or goes.
  std::uint64_t changed_at() const noexcept;

  /// Connects to the owner of a block without waiting. 0; ENOENT when nobody has claimed it,
  /// ECONNREFUSED when its owner is dead, EAGAIN when it is busy.
  int connect(std::uint32_t block, UniqueFd& socket) noexcept;
  /// Removes the name of a block whose owner is dead, if it still is; does nothing when the lock is
  /// taken.
  void remove_stale(std::uint32_t block) noexcept;

 private:
  /// The lock while it is held. Let go in words: a child that was forked meanwhile has the
  /// descriptor too.
  class Lock {
   public:
    Lock() = default;
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    UniqueFd file;
  };
  struct Names {
    std::uint64_t words[kQpnBlocks / 64] = {};
    /// Of sockets that are to have none: each dead one is somebody who was killed just then.
    std::uint32_t apart[8] = {};
    std::uint32_t apart_count = 0;
    bool has(std::uint32_t block) const noexcept {
      return (words[block / 64] >> (block % 64) & 1) != 0;
    }
  };

  /// Where processes that start now look: an index into paths_.
  unsigned way() const noexcept;
  /// Says why not: EIO, or EBUSY, of which nothing is said.
  int lock(std::uint64_t patience_ns, Lock& held) noexcept;
  int lock_silently(std::uint64_t patience_ns, Lock& held) const noexcept;
  int try_claim_locked(std::uint32_t block, UniqueFd& listener) noexcept;
  /// The blocks that have names. False: the folder cannot be read.
  bool list(Names& names) const noexcept;
  /// Nobody has a name of a block.
  bool is_deserted() const noexcept;
  /// Looks at some names from `start` on, and removes those of the dead.
  void remove_some_locked(std::uint32_t start) noexcept;
  /// Removes the held names that nobody holds any more.
  void remove_unheld_locked() noexcept;
  void remove(std::uint32_t block) noexcept;
  bool is_dead(const char* name) const noexcept;
  bool address_of(const char* name, sockaddr_un& address) const noexcept;

  KeptFd folder_;  ///< its number stays the same wherever it leads
  bool through_proc_ = true;
  // What the environment said when the folder was opened: the service thread does not ask it again.
  char fabric_[PATH_MAX] = "";
  char runtime_dir_[PATH_MAX] = "";
  char paths_[2][PATH_MAX] = {};  ///< in runtime_dir_, or what VERBATIM_FABRIC says; in /tmp
  std::atomic<const char*> path_{""};
};

}  // namespace verbatim::shm
