// SPDX-License-Identifier: BSD-2-Clause
// Who may use a key, as one word of its record. Of a plain region it is the number of its protection
// domain, so the look-up that a message pays is one comparison; whatever is no plain region has a
// word that no domain's number equals, and is asked for only when that comparison has failed.
#pragma once

#include <cstdint>

namespace verbatim::holder {

inline constexpr std::uint32_t kKindMask = 0xc0000000u;
inline constexpr std::uint32_t kWindowOfPd = 0x40000000u;  ///< | domain: a window of type 1
inline constexpr std::uint32_t kWindowOfQp = 0x80000000u;  ///< | QP number: a window of type 2
inline constexpr std::uint32_t kNullMemory = 0xc0000000u;  ///< | domain: zeros, and nowhere
inline constexpr std::uint32_t kOnDemand = 0x20000000u;    ///< | domain: pages may be missing
/// Domains have numbers below it.
inline constexpr std::uint32_t kMaxPd = kOnDemand - 1;

/// Is it memory of this domain, whether or not its pages may be missing?
constexpr bool is_of_domain(std::uint32_t holder, std::uint32_t pd) noexcept {
  return holder == pd || holder == (kOnDemand | pd);
}
constexpr bool is_null_memory(std::uint32_t holder, std::uint32_t pd) noexcept {
  return holder == (kNullMemory | pd);
}
/// A window of either type, or null memory: nothing that a domain alone opens.
constexpr bool is_of_other_kind(std::uint32_t holder) noexcept { return (holder & kKindMask) != 0; }

/// May a queue pair of domain `pd` with the number `qpn`, at the side of the memory, let its peer
/// use what has this holder? (IBTA 10.6.7: type 1 every queue pair of the domain, type 2 the one on
/// which the window was bound.)
constexpr bool is_open_to(std::uint32_t holder, std::uint32_t pd, std::uint32_t qpn) noexcept {
  return is_of_domain(holder, pd) || holder == (kWindowOfPd | pd) || holder == (kWindowOfQp | qpn);
}

}  // namespace verbatim::holder
