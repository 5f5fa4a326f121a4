// SPDX-License-Identifier: BSD-2-Clause
// The clock (MPI 5.0 section 9.6): the kernel's monotonic one, which it reads from the processor's
// calibrated counter without a system call. At any time, from any thread.
#include <time.h>

#include "mpi_shim/api/entry.hpp"

namespace {

double seconds(const timespec& time) noexcept {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

VMPI_ENTRY(double, MPI_Wtime, (void)) {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return seconds(now);
}

VMPI_ENTRY(double, MPI_Wtick, (void)) {
  timespec step;
  ::clock_getres(CLOCK_MONOTONIC, &step);
  return seconds(step);
}
