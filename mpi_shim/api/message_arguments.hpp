// SPDX-License-Identifier: BSD-2-Clause
// What the functions of point-to-point communication ask of their arguments.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/errors.hpp"

namespace vmpi {

/// What its function calls them, for what is said of wrong ones.
struct MessageNames {
  const char* buffer;
  const char* count;
  const char* datatype;
  const char* tag;
};
inline constexpr MessageNames kPlainNames = {"buf", "count", "datatype", "tag"};
// Of functions that send and receive.
inline constexpr MessageNames kSentNames = {"sendbuf", "sendcount", "sendtype", "sendtag"};
inline constexpr MessageNames kReceivedNames = {"recvbuf", "recvcount", "recvtype", "recvtag"};
inline constexpr MessageNames kReplacedNames = {"buf", "count", "datatype", "sendtag"};
inline constexpr MessageNames kReplacementNames = {"buf", "count", "datatype", "recvtag"};

struct MessageArguments {
  const char* function;
  const void* buffer;
  std::int64_t count;
  MPI_Datatype datatype;
  int peer;
  int tag;
  MPI_Comm comm;
  const MessageNames* names = &kPlainNames;
};

/// Fills the "what was asked" fields. MPI_SUCCESS, or the error that was raised. Holds nothing.
[[nodiscard]] int resolve_send(const MessageArguments& arguments, SendMode mode,
                               Request& out) noexcept;
[[nodiscard]] int resolve_receive(const MessageArguments& arguments, Request& out) noexcept;
/// The two messages of a function that sends and receives.
[[nodiscard]] int resolve_both(const MessageArguments& sent, const MessageArguments& received,
                               Request& outgoing, Request& incoming) noexcept;
/// Buffer, count and datatype alone; `comm` is who is told of errors, and may be null.
[[nodiscard]] int resolve_data(const MessageArguments& arguments, Comm* comm,
                               Request& out) noexcept;
[[nodiscard]] Comm* resolve_comm(const char* function, MPI_Comm handle, int& error) noexcept;
/// A source and a tag with wildcards, of a receive or probe.
[[nodiscard]] int check_source(const char* function, Comm& comm, int source, int tag,
                               const char* name_of_tag = kPlainNames.tag) noexcept;

/// Raises what a request ended with; MPI_SUCCESS: nothing.
[[nodiscard]] int raise_for(const Request& request, int error, const char* function) noexcept;

}  // namespace vmpi
