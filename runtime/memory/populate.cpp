// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/populate.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/proc_text.hpp"

namespace verbatim {
namespace {

// Headers of older systems lack it.
constexpr int kPopulateWrite = 23;
constexpr std::uint64_t kStep = 64u << 20;

}  // namespace

int populate(unsigned char* base, std::uint64_t bytes) noexcept {
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t step = bytes - at < kStep ? bytes - at : kStep;
    if (::madvise(base + at, step, kPopulateWrite) == 0) {
      at += step;
    } else if (errno != EINTR && errno != EAGAIN) {
      return errno;
    }
  }
  return 0;
}

bool memory_files_take_advice() noexcept {
  constexpr const char* kOfTheSize =
      "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/shmem_enabled";
  constexpr const char* kOfAll = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  // The choice in force is in brackets.
  char text[128];
  if (read_proc_text(kOfTheSize, text, sizeof text) && std::strstr(text, "[inherit]") == nullptr)
    return std::strstr(text, "[advise]") != nullptr;
  return read_proc_text(kOfAll, text, sizeof text) && std::strstr(text, "[advise]") != nullptr;
}

}  // namespace verbatim
