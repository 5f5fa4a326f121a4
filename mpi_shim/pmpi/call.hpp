// SPDX-License-Identifier: BSD-2-Clause
// What all taken calls begin and end with.
#pragma once

#include "mpi_shim/pmpi/communicator.hpp"
#include "mpi_shim/pmpi/packing.hpp"

namespace vmpi::pmpi {

/// False: the call is passed on, for this reason.
inline bool leave(Communicator& communicator, Collective collective, Reason reason) noexcept {
  communicator.tally.pass_on(collective, reason);
  return false;
}

/// Whether a call that moves so many bytes at each rank is taken; counted if it is not.
[[nodiscard]] inline bool is_taken(Communicator& communicator, Collective collective,
                                   std::uint64_t bytes) noexcept {
  if (bytes > kMostBytes) [[unlikely]]
    return leave(communicator, collective, Reason::kTooLong);
  if (!has_team(communicator)) [[unlikely]]
    return leave(communicator, collective, communicator.why_not);
  return true;
}

/// The call is over, and was taken: what the program gets.
[[nodiscard]] inline bool end(Communicator& communicator, Collective collective,
                              std::uint64_t bytes, int error, int& result) noexcept {
  // Waits that stay short leave the MPI alone, and a program may make nothing but such.
  constexpr std::uint32_t kCallsBetween = 32;
  communicator.tally.take(collective, bytes);
  result = error == 0 ? kSuccess : judge(communicator, collective, error);
  if (++communicator.taken == kCallsBetween) [[unlikely]] {
    communicator.taken = 0;
    do_other_work();
  }
  return true;
}

}  // namespace vmpi::pmpi
