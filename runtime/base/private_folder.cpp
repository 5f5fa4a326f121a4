// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/base/private_folder.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"

namespace verbatim {
namespace {

[[gnu::format(printf, 3, 4)]] int refuse(FolderRefusal& refusal, int error, const char* format,
                                         ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(refusal.why, sizeof refusal.why, format, arguments);
  va_end(arguments);
  refusal.error = error;
  return error;
}

int refuse_owner(FolderRefusal& refusal, const struct stat& status) noexcept {
  return refuse(refusal, EACCES, "it belongs to user %u, not to us (%u): remove it",
                static_cast<unsigned>(status.st_uid), static_cast<unsigned>(::geteuid()));
}

bool can_hold_folders(const char* path) noexcept {
  struct stat status {};
  return path[0] == '/' && ::stat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
         ::faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
}

}  // namespace

int open_private_folder(int parent, const char* name, UniqueFd& folder,
                        FolderRefusal& refusal) noexcept {
  if (::mkdirat(parent, name, 0700) != 0 && errno != EEXIST) {
    const int error = errno;
    return refuse(refusal, error, "it cannot be made: %s", std::strerror(error));
  }
  struct stat status {};
  UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    const int error = errno;
    // The folder's owner may be visible although the folder is not, and is then the reason.
    if (error == EACCES && ::fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_uid != ::geteuid())
      return refuse_owner(refusal, status);
    return refuse(refusal, error, "%s%s", std::strerror(error),
                  error == ELOOP || error == ENOTDIR ? " (a symbolic link will not do)" : "");
  }
  if (::fstat(fd.get(), &status) != 0) return refuse(refusal, errno, "its owner cannot be asked");
  if (status.st_uid != ::geteuid()) return refuse_owner(refusal, status);
  if ((status.st_mode & 077) != 0) {
    return refuse(refusal, EACCES, "it is open to others (mode %03o): 'chmod 700' it",
                  static_cast<unsigned>(status.st_mode & 0777));
  }
  // A strict umask may have taken our own rights from what we made.
  if ((status.st_mode & 0700) != 0700 && ::fchmod(fd.get(), 0700) != 0)
    return refuse(refusal, errno, "its mode denies us our own rights");
  folder = static_cast<UniqueFd&&>(fd);
  return 0;
}

const char* base_of_user_folder(const char* runtime_dir) noexcept {
  const bool is_usable =
      runtime_dir != nullptr && runtime_dir[0] != '\0' && can_hold_folders(runtime_dir);
  return is_usable ? runtime_dir : "/tmp";
}

int open_user_folder(UniqueFd& folder, char* path, std::size_t capacity,
                     FolderRefusal& refusal) noexcept {
  const char* const runtime_dir = environment_text("XDG_RUNTIME_DIR", PATH_MAX - 512);
  const char* const base = base_of_user_folder(runtime_dir);
  if (runtime_dir != nullptr && base != runtime_dir)
    log_info("XDG_RUNTIME_DIR=%s cannot be written: what we share is under /tmp", runtime_dir);
  return open_user_folder(base, folder, path, capacity, refusal);
}

int open_user_folder(const char* base, UniqueFd& folder, char* path, std::size_t capacity,
                     FolderRefusal& refusal) noexcept {
  char user[32];
  std::snprintf(user, sizeof user, "verbatim-%u", static_cast<unsigned>(::geteuid()));
  const int length = std::snprintf(path, capacity, "%s/%s", base, user);
  if (length < 0 || static_cast<std::size_t>(length) >= capacity)
    return refuse(refusal, ENAMETOOLONG, "the path is too long");
  const UniqueFd above(::open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!above.valid()) {
    const int error = errno;
    return refuse(refusal, error, "%s cannot be opened: %s", base, std::strerror(error));
  }
  return open_private_folder(above.get(), user, folder, refusal);
}

}  // namespace verbatim
