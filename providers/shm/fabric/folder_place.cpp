// SPDX-License-Identifier: BSD-2-Clause
// Where the fabric folder is: whether newcomers still come to ours, and the way to theirs.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "providers/shm/fabric/fabric_folder.hpp"

namespace verbatim::shm {

unsigned FabricFolder::way() const noexcept {
  return fabric_[0] == '/' || base_of_user_folder(runtime_dir_) == runtime_dir_ ? 0 : 1;
}

int FabricFolder::find_place(Place& place, FolderRefusal& refusal) const noexcept {
  place.way = way();
  UniqueFd user;
  int above = AT_FDCWD;
  if (fabric_[0] != '/') {
    const int error = open_user_folder(place.way == 0 ? runtime_dir_ : "/tmp", user, place.path,
                                       sizeof place.path, refusal);
    if (error != 0) return error;
    above = user.get();
  }
  std::memcpy(place.path, paths_[place.way], sizeof place.path);
  return open_private_folder(above, fabric_, place.folder, refusal);
}

const char* FabricFolder::is_left() const noexcept {
  struct stat ours {};
  if (::fstat(folder_.get(), &ours) != 0) return nullptr;
  if (ours.st_nlink == 0) return "it was removed (at a logout, by a cleaner of /tmp, by hand)";
  // A path that leads nowhere tells nothing: a process that changed its root sees it so, and lives
  // on in a folder that the others see. Nor does a folder that newcomers refuse.
  struct stat theirs {};
  const bool is_theirs = ::fstatat(AT_FDCWD, paths_[way()], &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
                         S_ISDIR(theirs.st_mode) && theirs.st_uid == ::geteuid() &&
                         (theirs.st_mode & 077) == 0;
  const bool is_another = theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev;
  return is_theirs && is_another ? "processes that start now meet in another one" : nullptr;
}

int FabricFolder::move_to(const Place& place) noexcept {
  if (!is_open()) return EBADF;
  // In one step: other threads may be on their way through it.
  if (::dup3(place.folder.get(), folder_.get(), O_CLOEXEC) < 0) return errno;
  folder_.remember();
  path_.store(paths_[place.way], std::memory_order_release);
  (void)::flock(folder_.get(), LOCK_SH | LOCK_NB);  // as in open()
  return 0;
}

}  // namespace verbatim::shm
