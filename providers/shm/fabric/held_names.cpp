// SPDX-License-Identifier: BSD-2-Clause
// The folder's names that several processes hold at once: files whose locks they share.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "providers/shm/fabric/fabric_folder.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {

int FabricFolder::hold(const char* name, bool create, bool exclusive, KeptFd& held) noexcept {
  Lock folder;
  if (const int error = lock(kLockPatienceNs, folder); error != 0) return EIO;
  UniqueFd file(::openat(folder_.get(), name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) {
    log_error("making %s/%s: %s", path(), name, std::strerror(errno));
    return EIO;
  }
  const bool is_held = ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;
  if (is_held && errno != EWOULDBLOCK) {
    log_error("locking %s/%s: %s", path(), name, std::strerror(errno));
    return EIO;
  }
  if (is_held && exclusive) return EEXIST;
  if (!is_held && !create) {
    (void)::unlinkat(folder_.get(), name, 0);
    return ENOENT;
  }
  // The folder's lock keeps others from taking it between the two.
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) {
    log_error("locking %s/%s: %s", path(), name, std::strerror(errno));
    return EIO;
  }
  held = static_cast<UniqueFd&&>(file);
  return 0;
}

void FabricFolder::let_go(const char* name, KeptFd& held) noexcept {
  if (!is_open() || !held.is_ours()) return held.reset();
  Lock folder;
  if (lock(kLockPatienceNs, folder) == 0 && ::flock(held.get(), LOCK_EX | LOCK_NB) == 0 &&
      !lacks(name, held))
    (void)::unlinkat(folder_.get(), name, 0);
  (void)::flock(held.get(), LOCK_UN);
  held.reset();
}

bool FabricFolder::lacks(const char* name, const KeptFd& held) const noexcept {
  struct stat ours {};
  struct stat named {};
  if (::fstat(held.get(), &ours) != 0) return false;
  if (::fstatat(folder_.get(), name, &named, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
  return named.st_ino != ours.st_ino || named.st_dev != ours.st_dev;
}

int FabricFolder::hold_again(const char* name, KeptFd& held) noexcept {
  Lock folder;
  if (const int error = lock_silently(0, folder); error != 0) return error;
  UniqueFd file(::openat(folder_.get(), name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  // Others who came back, or are new, may hold it already: beside them.
  if (!file.valid() || ::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return errno;
  held = static_cast<UniqueFd&&>(file);
  return 0;
}

void FabricFolder::remove_unheld_locked() noexcept {
  UniqueFd again(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const entries = again.valid() ? ::fdopendir(again.get()) : nullptr;
  if (entries == nullptr) return;
  (void)again.release();
  while (const dirent* entry = ::readdir(entries)) {
    if (entry->d_name[0] != 'x') continue;
    const UniqueFd file(::openat(folder_.get(), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
      (void)::unlinkat(folder_.get(), entry->d_name, 0);
  }
  ::closedir(entries);
}

}  // namespace verbatim::shm
