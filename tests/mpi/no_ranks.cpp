// SPDX-License-Identifier: BSD-2-Clause
#include "tests/mpi/no_ranks.hpp"

#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/datatype.hpp"
#include "mpi_shim/core/errors.hpp"
#include "mpi_shim/core/info.hpp"
#include "mpi_shim/core/op.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {

BigLock big_lock;
World world;

namespace {
Comm comms[2];
}

Comm* find_comm(MPI_Comm handle) noexcept {
  if (world.stage != Stage::kRunning) return nullptr;
  if (handle == MPI_COMM_SELF) return &comms[0];
  return handle == MPI_COMM_WORLD ? &comms[1] : nullptr;
}

void bootstrap_abort(int, const char*) noexcept {}
int copy_attributes(const Datatype&, Datatype&) noexcept { return MPI_SUCCESS; }
int delete_attributes(Datatype&) noexcept { return MPI_SUCCESS; }

}  // namespace vmpi

namespace no_ranks {

void begin() {
  vmpi::world.stage = vmpi::Stage::kRunning;
  vmpi::world.rank = 2;
  vmpi::world.size = 4;
  (void)vmpi::make_predefined_types();
  (void)vmpi::make_predefined_ops();
  for (vmpi::Comm& comm : vmpi::comms) comm.error_handler = vmpi::number_of(MPI_ERRORS_RETURN);
  vmpi::comms[0].handle = vmpi::number_of(MPI_COMM_SELF);
  vmpi::comms[1].handle = vmpi::number_of(MPI_COMM_WORLD);
}

void end() {
  vmpi::drop_datatypes();
  vmpi::drop_ops();
  vmpi::drop_error_handlers();
  vmpi::drop_added_errors();
  vmpi::drop_infos();
  vmpi::world.stage = vmpi::Stage::kFinalized;
}

vmpi::Comm& self() { return vmpi::comms[0]; }

}  // namespace no_ranks
