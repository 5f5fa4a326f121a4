// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/base/sysfs.hpp"

#include <pthread.h>

#include <cstddef>
#include <cstring>

#include "runtime/base/environment.hpp"

namespace verbatim {
namespace {

/// IBV_SYSFS_PATH_MAX of the public header, with its end.
constexpr std::size_t kRootMax = 255;

constinit char root[kRootMax + 1] = "/sys";
constinit bool chosen_by_user = false;
constinit pthread_once_t root_once = PTHREAD_ONCE_INIT;

void find_root() {
  const char* const chosen = environment_text("SYSFS_PATH", kRootMax);
  if (chosen == nullptr) return;
  std::size_t length = std::strlen(chosen);
  while (length > 0 && chosen[length - 1] == '/') --length;
  std::memcpy(root, chosen, length);
  root[length] = '\0';
  chosen_by_user = true;
}

}  // namespace

const char* sysfs_root() noexcept {
  ::pthread_once(&root_once, find_root);
  return root;
}

bool sysfs_root_is_chosen() noexcept {
  ::pthread_once(&root_once, find_root);
  return chosen_by_user;
}

}  // namespace verbatim
