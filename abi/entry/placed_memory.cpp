// SPDX-License-Identifier: BSD-2-Clause
// vbt_alloc of verbatim/memory.h. Any thread.
#include "runtime/memory/placed_memory.hpp"

#include <cstddef>

#include "abi/entry/border.hpp"
#include "abi/entry/growing.hpp"
#include "runtime/base/log.hpp"

VBT_ENTRY void* vbt_alloc(const vbt_alloc_attr* attr, std::size_t attr_size, vbt_alloc_facts* facts,
                          std::size_t facts_size) {
  vbt_alloc_attr all;
  if (!verbatim::take_in(attr, attr_size, sizeof all.size, all)) {
    verbatim::log_refusal("vbt_alloc: no attributes, or some that this library does not know");
    errno = EINVAL;
    return nullptr;
  }
  vbt_alloc_facts got;
  int error = 0;
  void* const memory = verbatim::alloc_placed(
      all, all.device == nullptr ? nullptr : ibv_get_device_name(all.device->device), got, error);
  if (memory == nullptr) {
    errno = error;
  } else {
    verbatim::give_out(facts, facts_size, got);
  }
  return memory;
}
