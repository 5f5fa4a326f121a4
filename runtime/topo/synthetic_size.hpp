// SPDX-License-Identifier: BSD-2-Clause
//
// How large the machine is that a text like "pack:2 node:2 core:8 pu:2" describes: hwloc makes all
// of it before anybody can look, so one that nobody has would take all memory and never end. Any
// thread; no allocation; reads the text only. Spec: hwloc's "Synthetic topologies".
#pragma once

#include <cstdint>

namespace verbatim::topo {

/// Objects of all levels; ~0 for what does not fit. What the text says otherwise is hwloc's to
/// judge.
[[nodiscard]] std::uint64_t synthetic_objects(const char* text) noexcept;

/// Above what a machine of kMaxPus processors has in all its levels.
inline constexpr std::uint64_t kMaxSyntheticObjects = 1u << 18;

}  // namespace verbatim::topo
