// SPDX-License-Identifier: BSD-2-Clause
// A message and the list of SGEs that its bytes come from or go to: where they lie, and copies of any
// part of them. Any thread; whoever copies sees that no key is taken back meanwhile (KeyTable,
// "await"). Spec: man ibv_post_send, ibv_post_recv.
//
// An SGE is any struct with a `length`: a posted list may be kept in a layout of the provider's. Where
// one of them lies is a place. MemoryPlace is plain memory; a provider whose keys mean more than that
// has places of its own, with the members of MemoryPlace.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace verbatim {

/// The bytes of all SGEs of a list.
template <class Sge>
[[nodiscard]] inline std::uint64_t bytes_of(const Sge* list, std::size_t count) noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += list[i].length;
  return bytes;
}

/// Memory of this process, all of which is there.
struct MemoryPlace {
  unsigned char* at;
  std::uint64_t length;

  /// Its bytes [from, from + bytes).
  [[nodiscard]] MemoryPlace part(std::uint64_t from, std::uint64_t bytes) const noexcept {
    return {at + from, bytes};
  }
  /// Copies all of it. False: its memory is missing.
  bool read(unsigned char* to) const noexcept { return std::memcpy(to, at, length), true; }
  bool write(const unsigned char* from) const noexcept {
    return std::memcpy(at, from, length), true;
  }
};

/// Where the first `bytes` bytes of a list's message lie. find(sge, used, place) judges the key of an
/// SGE for the bytes of it that the message takes, and says where they lie. Of an SGE that the message
/// does not reach the place is empty, and nobody asks for its key. LOC_PROT_ERR: find() said false.
/// LOC_LEN_ERR: the list has fewer bytes.
template <class Sge, class Place, class Find>
[[nodiscard]] inline ibv_wc_status find_places(const Sge* list, std::uint32_t count,
                                               std::uint64_t bytes, Place* out,
                                               const Find& find) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t used = std::min<std::uint64_t>(bytes, list[i].length);
    out[i] = {};
    if (used != 0 && !find(list[i], used, out[i])) return IBV_WC_LOC_PROT_ERR;
    bytes -= used;
  }
  return bytes != 0 ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

/// Walks bytes [from, from + length) of a message, or as many as there are: calls f(part of a place,
/// its distance from `from`) until that says false. False: it has.
template <class Place, class F>
bool walk(const Place* places, std::uint32_t count, std::uint64_t from, std::uint64_t length,
          const F& f) noexcept {
  std::uint64_t distance = 0;
  for (std::uint32_t i = 0; i < count && distance < length; ++i) {
    const Place& place = places[i];
    if (from >= place.length) {
      from -= place.length;
      continue;
    }
    const std::uint64_t bytes = std::min(place.length - from, length - distance);
    if (!f(place.part(from, bytes), distance)) return false;
    distance += bytes;
    from = 0;
  }
  return true;
}

/// Copies bytes [from, from + length) of a message to a flat buffer. False: some memory is missing.
template <class Place>
[[nodiscard]] bool gather(unsigned char* to, const Place* places, std::uint32_t count,
                          std::uint64_t from, std::uint64_t length) noexcept {
  return walk(places, count, from, length,
              [to](const Place& part, std::uint64_t distance) noexcept {
                return part.read(to + distance);
              });
}

/// Copies a flat buffer to bytes [from, from + length) of a message. False: some memory is missing.
template <class Place>
[[nodiscard]] bool scatter(const Place* places, std::uint32_t count, std::uint64_t from,
                           const unsigned char* bytes, std::uint64_t length) noexcept {
  return walk(places, count, from, length,
              [bytes](const Place& part, std::uint64_t distance) noexcept {
                return part.write(bytes + distance);
              });
}

}  // namespace verbatim
