// SPDX-License-Identifier: BSD-2-Clause
// The functions of verbatim/memory.h that need no topology. Any thread.
#include <verbatim/memory.h>

#include <cstddef>

#include "abi/entry/border.hpp"
#include "runtime/base/log.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/memory/placed_release.hpp"

VBT_ENTRY void* vbt_alloc_shared(std::size_t size) {
  if (size == 0) {
    errno = EINVAL;
    return nullptr;
  }
  int error = 0;
  void* const memory = verbatim::alloc_shared(size, error);
  if (memory == nullptr) errno = error;
  return memory;
}

VBT_ENTRY int vbt_free_shared(void* addr) {
  return addr == nullptr ? 0 : verbatim::free_placed(addr);
}

VBT_ENTRY int vbt_free(void* addr) {
  const int error = addr == nullptr ? 0 : verbatim::free_placed(addr);
  if (error == EINVAL)
    verbatim::log_error("vbt_free: %p is not what vbt_alloc gave, or was given back before", addr);
  return error;
}
