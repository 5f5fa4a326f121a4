// SPDX-License-Identifier: BSD-2-Clause
// What happens in a function of MPI that this library does not have.
#pragma once

namespace verbatim::mpi {

/// Names the function on stderr, always, and answers MPI_ERR_UNSUPPORTED_OPERATION. Any thread, any
/// time: such a function has no object whose error handler could be asked.
[[gnu::cold]] int missing(const char* function) noexcept;

}  // namespace verbatim::mpi
