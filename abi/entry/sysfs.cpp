// SPDX-License-Identifier: BSD-2-Clause
// The historical sysfs entries, which are in no public header but which connection managers and
// tools call. SYSFS_PATH moves the root, except in setuid programs.
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "abi/entry/border.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/unique_fd.hpp"

namespace {

constexpr std::size_t kRootMax = IBV_SYSFS_PATH_MAX - 1;

constinit char root[kRootMax + 1] = "/sys";
constinit pthread_once_t root_once = PTHREAD_ONCE_INIT;

void find_root() {
  const char* const chosen = verbatim::environment_text("SYSFS_PATH", kRootMax);
  if (chosen == nullptr) return;
  std::size_t length = std::strlen(chosen);
  while (length > 0 && chosen[length - 1] == '/') --length;
  std::memcpy(root, chosen, length);
  root[length] = '\0';
}

}  // namespace

VBT_ENTRY const char* ibv_get_sysfs_path() {
  ::pthread_once(&root_once, find_root);
  return root;
}

/// The length read, without a final newline, or -1 + errno. Ends the text when there is room.
VBT_ENTRY int ibv_read_sysfs_file(const char* folder, const char* file, char* text,
                                  std::size_t size) {
  char path[PATH_MAX];
  const int length = std::snprintf(path, sizeof path, "%s/%s", folder, file);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const verbatim::UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return -1;
  ssize_t got = ::read(fd.get(), text, size);
  if (got < 0) return -1;
  if (got > 0 && text[got - 1] == '\n') text[--got] = '\0';
  if (static_cast<std::size_t>(got) < size) text[got] = '\0';
  return static_cast<int>(got);
}
