// SPDX-License-Identifier: BSD-2-Clause
// Bytes become a machine here, whoever wrote them. Any thread; reads only what it is given, which
// must not change meanwhile.
#pragma once

#include <cstddef>

#include "runtime/topo/machine_layout.hpp"

namespace verbatim::topo {

/// The sum that belongs into the head of these bytes.
[[nodiscard]] std::uint64_t machine_checksum(const unsigned char* bytes, std::size_t size) noexcept;

/// Null when every index is in range and the tables agree; else what is wrong with the bytes.
/// REQUIRES: `bytes` is aligned to 8.
[[nodiscard]] const char* check_machine(const unsigned char* bytes, std::size_t size) noexcept;

}  // namespace verbatim::topo
