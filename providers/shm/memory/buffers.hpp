// SPDX-License-Identifier: BSD-2-Clause
//
// Memory that the device gives (man ibv_alloc_buf): what peers can map, which is the fastest way to
// it. It is registered as any other is.
#pragma once

#include <cstddef>

#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

int alloc_buf(verbatim::Pd& pd, std::size_t size, ibv_buf** out) noexcept;
/// The memory stays while a region covers it, and the log says so.
void free_buf(ibv_buf& buf) noexcept;
/// In a forked child, which has a handle and no such memory.
void free_inherited_buf(ibv_buf& buf) noexcept;

}  // namespace verbatim::shm
