// SPDX-License-Identifier: BSD-2-Clause
//
// Device memory, emulated: shm has no memory of its own, so it is host memory that peers can map
// and that the application reaches by copies only, as on a device. Addresses count from the start
// of the region. Any thread.
#pragma once

#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

/// Of all allocations of a process together.
inline constexpr std::uint64_t kMaxDeviceMemory = std::uint64_t{256} << 20;

struct Dm : verbatim::Dm {
  void* allocation = nullptr;
  unsigned char* base = nullptr;  ///< aligned as asked
  std::uint64_t length = 0;
  std::int32_t maker = 0;  ///< the process, of what was allocated on a context of its parent's
};

int alloc_dm(verbatim::Context& context, const ibv_alloc_dm_attr& attr,
             verbatim::Dm** out) noexcept;
/// In a forked child, on a context that its parent opened: nothing of the parent's is touched. The
/// memory may be copied to and from; a region needs a domain, which is the parent's.
int alloc_dm_of_child(verbatim::Context& context, const ibv_alloc_dm_attr& attr,
                      verbatim::Dm** out) noexcept;
int free_dm(verbatim::Dm& dm) noexcept;

}  // namespace verbatim::shm
