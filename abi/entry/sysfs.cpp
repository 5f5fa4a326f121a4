// SPDX-License-Identifier: BSD-2-Clause
// The historical sysfs entries, which are in no public header but which connection managers and
// tools call. SYSFS_PATH moves the root, except in setuid programs.
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <cstdio>

#include "abi/entry/border.hpp"
#include "runtime/base/sysfs.hpp"
#include "runtime/base/unique_fd.hpp"

VBT_ENTRY const char* ibv_get_sysfs_path() { return verbatim::sysfs_root(); }

/// The length read, without a final newline, or -1 + errno. Ends the text when there is room.
VBT_ENTRY int ibv_read_sysfs_file(const char* folder, const char* file, char* text,
                                  std::size_t size) {
  char path[PATH_MAX];
  const int length = std::snprintf(path, sizeof path, "%s/%s", folder, file);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const verbatim::UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return -1;
  ssize_t got = ::read(fd.get(), text, size);
  if (got < 0) return -1;
  if (got > 0 && text[got - 1] == '\n') text[--got] = '\0';
  if (static_cast<std::size_t>(got) < size) text[got] = '\0';
  return static_cast<int>(got);
}
