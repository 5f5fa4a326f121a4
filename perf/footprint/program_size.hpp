// SPDX-License-Identifier: BSD-2-Clause
// How large a program's file is once it is stripped: what is copied to a node. Any thread; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace verbatim::perf {

/// The file but its symbols and debugging sections; nothing when it is no ELF file of 64 bits that
/// this machine's byte order can be read in.
std::optional<std::uint64_t> stripped_size(const std::string& path);

}  // namespace verbatim::perf
