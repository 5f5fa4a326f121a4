// SPDX-License-Identifier: BSD-2-Clause
#include "perf/ends/shared_page.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace verbatim::perf {

Fd create_shared_page() {
  Fd fd(memfd_create("verbatim-perf", MFD_CLOEXEC));
  if (fd.get() < 0 || ftruncate(fd.get(), sizeof(SharedPage)) != 0) {
    throw std::system_error(errno, std::generic_category(), "memfd of the measurement");
  }
  return fd;
}

namespace {

void* map_page(int fd, int access) {
  void* at = mmap(nullptr, sizeof(SharedPage), access, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "map the measurement's memfd");
  }
  return at;
}

}  // namespace

SharedPage* map_shared_page(int fd) {
  // A fresh memfd is all zero, which is every member's initial value but the histogram's, cleared
  // before use.
  return static_cast<SharedPage*>(map_page(fd, PROT_READ | PROT_WRITE));
}

const SharedPage* view_shared_page(int fd) {
  return static_cast<const SharedPage*>(map_page(fd, PROT_READ));
}

}  // namespace verbatim::perf
