// SPDX-License-Identifier: BSD-2-Clause
// A checksum against accidents and a name for what files were made of; no defence against whoever
// wants two texts to meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace verbatim::topo {

[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

/// The hash of bytes, on top of what came before; the length counts too.
[[nodiscard]] inline std::uint64_t hash_bytes(const void* bytes, std::size_t size,
                                              std::uint64_t hash = 0x51ed270b9f6c2a31u) noexcept {
  const auto* at = static_cast<const unsigned char*>(bytes);
  hash = mix(hash, size);
  for (; size >= 8; size -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mix(hash, word);
  }
  std::uint64_t last = 0;
  if (size != 0) std::memcpy(&last, at, size);
  return mix(hash, last);
}

}  // namespace verbatim::topo
