// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/shared_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

namespace verbatim::siw {

int SharedMemory::map(int cmd_fd, std::uint64_t key, std::uint32_t count, std::size_t element,
                      std::size_t more) noexcept {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const bool sound =
      std::has_single_bit(count) && count <= kMostElements && key % page == 0 && key <= INT64_MAX;
  if (!sound) return EPROTO;
  const std::size_t bytes = count * element + more;
  void* const data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, cmd_fd, static_cast<off_t>(key));
  if (data == MAP_FAILED) return errno;
  unmap();
  data_ = data;
  bytes_ = bytes;
  return 0;
}

void SharedMemory::unmap() noexcept {
  if (data_ != nullptr) ::munmap(data_, bytes_);
  data_ = nullptr;
}

}  // namespace verbatim::siw
