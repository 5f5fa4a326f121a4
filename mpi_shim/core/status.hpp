// SPDX-License-Identifier: BSD-2-Clause
// What MPI_Status keeps in its five private integers: the bytes received (two of them), and whether
// the operation was cancelled (the third).
#pragma once

#include <mpi.h>

#include <cstdint>

namespace vmpi {

inline void set_bytes(MPI_Status& status, std::uint64_t bytes) noexcept {
  status.MPI_internal[0] = static_cast<int>(static_cast<std::uint32_t>(bytes));
  status.MPI_internal[1] = static_cast<int>(static_cast<std::uint32_t>(bytes >> 32));
}
[[nodiscard]] inline std::uint64_t bytes_of(const MPI_Status& status) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(status.MPI_internal[1])} << 32 |
         static_cast<std::uint32_t>(status.MPI_internal[0]);
}
inline void set_cancelled(MPI_Status& status, bool is_cancelled) noexcept {
  status.MPI_internal[2] = is_cancelled ? 1 : 0;
}
[[nodiscard]] inline bool is_cancelled(const MPI_Status& status) noexcept {
  return status.MPI_internal[2] != 0;
}

}  // namespace vmpi
