// SPDX-License-Identifier: BSD-2-Clause
// Data of a call as plain bytes. Ranks may describe one message by different types, of which one is
// predefined and another is not (MPI 5.0 section 3.3.1): whether a call is taken cannot depend on a
// rank's own type, so data of any other type go by a copy that the MPI packs and unpacks.
#pragma once

#include <cstdint>

#include "mpi_shim/pmpi/communicator.hpp"

namespace vmpi::pmpi {

/// Bytes that a call receives or sends at a rank, up to which it is taken.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

struct Elements {
  std::uint64_t bytes;  ///< in all; more than kMostBytes: too many
  bool is_plain;        ///< of a predefined type: they lie one behind the other
  bool is_good;         ///< false: the MPI has to say what is wrong
};

[[nodiscard, gnu::cold, gnu::noinline]] Elements derived_elements(Count count,
                                                                  Handle type) noexcept;

/// More elements than an int can say are none of a type whose size is known to be 0.
[[nodiscard]] constexpr std::uint64_t bytes_of(Count count, std::uint64_t each) noexcept {
  if (each == 0) return 0;
  return static_cast<std::uint64_t>(count) > kMostBytes / each
             ? kMostBytes + 1
             : static_cast<std::uint64_t>(count) * each;
}

/// `type` with just the bits of a handle.
[[nodiscard]] Elements elements_of(Count count, Handle type) noexcept;

/// A copy in plain bytes, made when it is needed. Nothing of it is on the way of predefined types.
class Packed {
 public:
  Packed() noexcept = default;
  ~Packed();
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  /// Memory for so many bytes. False: there is none.
  [[nodiscard]] bool reserve(std::uint64_t bytes) noexcept;
  [[nodiscard]] void* memory() const noexcept { return memory_; }
  /// kSuccess, or the error of the MPI.
  [[nodiscard]] int pack(const Communicator& communicator, const void* from, Count count,
                         Handle type) noexcept;
  [[nodiscard]] int unpack(const Communicator& communicator, void* to, Count count,
                           Handle type) noexcept;

 private:
  void* memory_ = nullptr;
  int bytes_ = 0;
};

}  // namespace vmpi::pmpi
