// SPDX-License-Identifier: BSD-2-Clause
// Buffered sends (MPI 5.0 section 3.6): the message is packed into the program's buffer, and goes
// from there as a standard one. What a message needs besides its bytes lies in the buffer too, and
// is less than MPI_BSEND_OVERHEAD.
#pragma once

#include <cstdint>

#include "mpi_shim/core/engine.hpp"

namespace vmpi {

/// MPI_ERR_BUFFER: one is attached already. `buffer` MPI_BUFFER_AUTOMATIC: memory of ours.
[[nodiscard]] int attach_buffer(void* buffer, std::uint64_t bytes) noexcept;
/// Waits until what is in it was sent. MPI_ERR_BUFFER: none is attached.
[[nodiscard]] int detach_buffer(void** buffer, std::uint64_t* bytes) noexcept;
void flush_buffer() noexcept;
/// Copies what `asked` describes and begins to send it. MPI_ERR_BUFFER: it does not fit.
[[nodiscard]] int send_buffered(const Request& asked) noexcept;
[[nodiscard]] std::uint64_t size_of_buffer() noexcept;

}  // namespace vmpi
