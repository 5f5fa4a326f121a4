// SPDX-License-Identifier: BSD-2-Clause
// Messages that a matched probe took (MPI_Message).
#pragma once

#include "mpi_shim/core/handle.hpp"
#include "mpi_shim/core/matching.hpp"

namespace vmpi {

struct Message {
  std::uint32_t handle = 0;
  Comm* comm = nullptr;  ///< of the probe
  Unexpected message = {};
};

extern HandleTable<HandleKind::kMessage, Message> messages;

}  // namespace vmpi
