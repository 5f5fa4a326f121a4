// SPDX-License-Identifier: BSD-2-Clause
// The extension of verbatim/memory.h. Any thread.
#include <verbatim/memory.h>

#include "abi/entry/border.hpp"
#include "runtime/memory/arena.hpp"

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
  return addr == nullptr ? 0 : verbatim::free_shared(addr);
}
