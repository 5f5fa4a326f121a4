// SPDX-License-Identifier: BSD-2-Clause
// What happens in a function of MPI that this library does not have.
#pragma once

namespace vmpi {

/// Names the function on stderr (unless VERBATIM_LOG is off) and answers MPI_ERR_UNSUPPORTED_OPERATION.
/// Any thread, any time. No error handler is asked: programs probe, and fall back.
[[gnu::cold]] int missing(const char* function) noexcept;

}  // namespace vmpi
