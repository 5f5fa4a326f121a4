// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/placed_release.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "runtime/memory/arena.hpp"

namespace verbatim {

int release_pages(const PlacedBlock& block) noexcept {
  if (!block.shared) return ::munmap(block.base, block.bytes) == 0 ? 0 : errno;
  // Pages of a packed arena are the next one's afterwards.
  if (block.locked) ::munlock(block.base, block.bytes);
  const int error = free_shared(block.base);
  // It stays as it was.
  if (error != 0 && block.locked) (void)::mlock(block.base, block.bytes);
  return error;
}

int free_placed(void* address) noexcept {
  PlacedBlock block;
  int error = ledger_take(address, block);
  if (error == EINVAL) return free_shared(address);
  if (error != 0) return error;
  error = release_pages(block);
  if (error != 0) ledger_return(block);
  return error;
}

}  // namespace verbatim
