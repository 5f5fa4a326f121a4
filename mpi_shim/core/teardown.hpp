// SPDX-License-Identifier: BSD-2-Clause
// What MPI_Finalize ends besides the engine. Weak: a program that never makes such objects does not
// have the files that could end them.
#pragma once

#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/datatype.hpp"

namespace vmpi {

[[gnu::weak]] int delete_attributes(Comm& comm) noexcept;
[[gnu::weak]] void drop_schedules() noexcept;
[[gnu::weak]] void drop_all_comms() noexcept;
[[gnu::weak]] void drop_datatypes() noexcept;
[[gnu::weak]] void drop_error_handlers() noexcept;
[[gnu::weak]] void drop_ops() noexcept;
[[gnu::weak]] void drop_infos() noexcept;
[[gnu::weak]] void drop_added_errors() noexcept;

/// MPI_Finalize's first act (MPI 5.0 section 11.2.4).
[[nodiscard]] inline int delete_attributes_of_self() noexcept {
  int (*const end)(Comm&) noexcept = delete_attributes;
  Comm* const self = find_comm(MPI_COMM_SELF);
  return self != nullptr && end != nullptr ? end(*self) : MPI_SUCCESS;
}

inline void drop_objects() noexcept {
  if (drop_schedules != nullptr) drop_schedules();
  if (drop_all_comms != nullptr) drop_all_comms();
  if (forget_costs != nullptr) forget_costs();
  if (drop_datatypes != nullptr) drop_datatypes();
  if (drop_ops != nullptr) drop_ops();
  if (drop_infos != nullptr) drop_infos();
  if (drop_added_errors != nullptr) drop_added_errors();
  if (drop_error_handlers != nullptr) drop_error_handlers();
}

}  // namespace vmpi
