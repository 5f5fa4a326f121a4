// SPDX-License-Identifier: BSD-2-Clause
// Info objects: keys and values of text, in the order in which they were set.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/handle.hpp"

namespace vmpi {

struct InfoEntry {
  char* key;
  char* value;
};

struct Info {
  std::uint32_t handle = 0;
  Array<InfoEntry> entries;

  Info() noexcept = default;
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;
  ~Info() { clear(); }

  /// Null: no such key.
  [[nodiscard]] const char* get(const char* key) const noexcept;
  /// False: no memory.
  [[nodiscard]] bool set(const char* key, const char* value) noexcept;
  /// False: no such key.
  bool remove(const char* key) noexcept;
  void clear() noexcept;
};

/// Null: no memory.
[[nodiscard]] Info* make_info() noexcept;
/// Null: none, or a freed one, or MPI_INFO_NULL. MPI_INFO_ENV is made when it is first asked for.
[[nodiscard]] Info* find_info(MPI_Info handle) noexcept;
void release(Info& info) noexcept;
/// The program's command, arguments and place, as MPI_INFO_ENV has them (MPI 5.0 section 11.2.1).
/// False: no memory.
[[nodiscard]] bool describe_program(Info& info, int count, char** arguments) noexcept;
void drop_infos() noexcept;

}  // namespace vmpi
