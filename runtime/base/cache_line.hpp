// SPDX-License-Identifier: BSD-2-Clause
// The unit in which cores hand memory to each other. Ours, not
// std::hardware_destructive_interference_size: a shared segment is ABI between processes built by
// different compilers.
#pragma once

#include <cstddef>

namespace verbatim {

inline constexpr std::size_t kCacheLine = 64;

}  // namespace verbatim
