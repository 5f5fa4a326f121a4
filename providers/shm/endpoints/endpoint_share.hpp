// SPDX-License-Identifier: BSD-2-Clause
//
// How many endpoints other processes may have to the queue pairs of ours. Each takes one of the
// numbers that queue pairs have, and memory, and it is the sender who asks for it: so there is an
// end to them, and nobody can take them all.
#pragma once

#include <cstdint>

namespace verbatim::shm {

/// So many a process is assured of, whatever others have: until a thousand have them.
inline constexpr std::uint32_t kAssuredEndpoints = 8;

/// Of the numbers that are not in other use, half are left to what the application creates.
constexpr std::uint32_t most_endpoints(std::uint32_t numbers) noexcept { return numbers / 2; }

/// Whether a process that has `of_process` of the `of_all` endpoints that there are gets another.
/// Of what is not kept for those that are assured, nobody gets more than he leaves to others.
constexpr bool may_have_another_endpoint(std::uint32_t of_process, std::uint32_t of_all,
                                         std::uint32_t numbers) noexcept {
  const std::uint32_t most = most_endpoints(numbers);
  if (of_process < kAssuredEndpoints) return of_all < most;
  const std::uint32_t contested = most - most / 4;
  return of_all < contested && of_process < contested - of_all;
}

}  // namespace verbatim::shm
