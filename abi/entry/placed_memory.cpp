// SPDX-License-Identifier: BSD-2-Clause
// vbt_alloc of verbatim/memory.h. Any thread.
#include "runtime/memory/placed_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "abi/entry/border.hpp"
#include "runtime/base/log.hpp"

VBT_ENTRY void* vbt_alloc(const vbt_alloc_attr* attr, std::size_t attr_size, vbt_alloc_facts* facts,
                          std::size_t facts_size) {
  vbt_alloc_attr all{};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(attr);
  const bool known = attr != nullptr && attr_size >= sizeof all.size &&
                     std::all_of(bytes + std::min(attr_size, sizeof all), bytes + attr_size,
                                 [](unsigned char byte) { return byte == 0; });
  if (!known) {
    verbatim::log_error("vbt_alloc: no attributes, or some that this library does not know");
    errno = EINVAL;
    return nullptr;
  }
  std::memcpy(&all, attr, std::min(attr_size, sizeof all));
  vbt_alloc_facts got;
  int error = 0;
  void* const memory = verbatim::alloc_placed(
      all, all.device == nullptr ? nullptr : ibv_get_device_name(all.device->device), got, error);
  if (memory == nullptr) {
    errno = error;
  } else if (facts != nullptr) {
    std::memset(static_cast<void*>(facts), 0, facts_size);
    std::memcpy(static_cast<void*>(facts), &got, std::min(facts_size, sizeof got));
  }
  return memory;
}
