// SPDX-License-Identifier: BSD-2-Clause
// The MPI underneath: found at the first call, in whatever way the program has loaded it, and told
// from others by what it says of itself. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "mpi_shim/pmpi/functions.hpp"

namespace vmpi::pmpi {

enum class Family : std::uint8_t {
  kOther,  ///< everything is passed on
  kOpenMpi,
  kMpich,
};

struct Library {
  Functions call;
  Family family = Family::kOther;
  char version[64] = "";  ///< the first line of what it says of itself
  // Of the two that are known:
  Handle handle_bits = 0;  ///< of a register that holds a handle
  Handle comm_world = 0;
  Handle comm_self = 0;
  Handle comm_null = 0;
  Handle type_null = 0;
  const void* in_place = nullptr;
  int error_truncate = 0;
  int error_other = 0;
};

/// MPI_SUCCESS of all MPIs, and classes of errors on which the two agree.
inline constexpr int kSuccess = 0;
inline constexpr int kErrorBuffer = 1;
inline constexpr int kErrorCount = 2;

extern std::atomic<const Library*> known_library;
[[gnu::cold, gnu::noinline]] const Library& find_library() noexcept;

[[nodiscard]] inline const Library& library() noexcept {
  // Pairs with the store in find_library().
  const Library* const known = known_library.load(std::memory_order_acquire);
  return known != nullptr ? *known : find_library();
}

/// A function or an object of the MPI, or null.
[[nodiscard, gnu::cold]] void* find_symbol(const char* name) noexcept;

/// The handle in a register whose upper half says nothing in an MPI where handles are ints.
[[nodiscard]] inline Handle handle_of(Handle passed) noexcept {
  return passed & library().handle_bits;
}

/// For a function that the MPI underneath does not have: a line, and the answer.
[[nodiscard, gnu::cold]] int is_missing(const char* name) noexcept;

/// Calls it as the program has called us.
template <auto kFunction, class... Arguments>
[[nodiscard]] int pass_on(const char* name, Arguments... arguments) noexcept {
  const auto function = library().call.*kFunction;
  return function != nullptr ? function(arguments...) : is_missing(name);
}

}  // namespace vmpi::pmpi
