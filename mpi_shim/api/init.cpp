// SPDX-License-Identifier: BSD-2-Clause
// Start and end (MPI 5.0 sections 11.2 to 11.4).
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/api/message_arguments.hpp"
#include "mpi_shim/coll/select.hpp"
#include "mpi_shim/core/buffered.hpp"
#include "mpi_shim/core/comm_nodes.hpp"
#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/host_place.hpp"
#include "mpi_shim/core/op.hpp"
#include "mpi_shim/core/requests.hpp"
#include "mpi_shim/core/teardown.hpp"
#include "mpi_shim/core/world.hpp"

namespace {

using vmpi::BigGuard;
using vmpi::Stage;
using vmpi::world;

pthread_t main_thread;

int begin(const char* function, int required) noexcept {
  if (world.stage != Stage::kBefore) {
    BigGuard guard;
    return vmpi::raise(nullptr, MPI_ERR_OTHER, function,
                       world.is_of_teams ? "the process has a team of verbatim/coll.h"
                       : world.stage == Stage::kRunning
                           ? "MPI_Init was called before"
                           : "MPI_Finalize was called before, and MPI starts only once");
  }
  const char* wrong = vmpi::begin_bootstrap();
  if (wrong[0] != '\0') return vmpi::raise(nullptr, MPI_ERR_OTHER, function, "%s", wrong);
  if (!vmpi::make_predefined_types() || !vmpi::make_predefined_ops() ||
      !vmpi::make_predefined_comms() || !vmpi::make_sent_request())
    return vmpi::raise(nullptr, MPI_ERR_NO_MEM, function, "there is no memory left");
  if (vmpi::read_algorithm_choices != nullptr) {
    wrong = vmpi::read_algorithm_choices();
    if (wrong != nullptr) return vmpi::raise(nullptr, MPI_ERR_OTHER, function, "%s", wrong);
  }
  if (vmpi::read_nodes != nullptr) {
    wrong = vmpi::read_nodes();
    if (wrong != nullptr) return vmpi::raise(nullptr, MPI_ERR_OTHER, function, "%s", wrong);
  }
  if (vmpi::read_groups != nullptr) {
    wrong = vmpi::read_groups();
    if (wrong != nullptr) return vmpi::raise(nullptr, MPI_ERR_OTHER, function, "%s", wrong);
  }
  world.thread_level = required;
  vmpi::big_lock.be_needed(required == MPI_THREAD_MULTIPLE);
  main_thread = ::pthread_self();
  world.stage = Stage::kRunning;
  if (vmpi::publish_costs != nullptr) vmpi::publish_costs();
  wrong = vmpi::start_engine();
  if (wrong != nullptr) return vmpi::raise(nullptr, MPI_ERR_OTHER, function, "%s", wrong);
  return MPI_SUCCESS;
}

/// One of the four levels, or the next lower one for any other number.
int level_of(int required) noexcept {
  if (required >= MPI_THREAD_MULTIPLE) return MPI_THREAD_MULTIPLE;
  if (required >= MPI_THREAD_SERIALIZED) return MPI_THREAD_SERIALIZED;
  if (required >= MPI_THREAD_FUNNELED) return MPI_THREAD_FUNNELED;
  return MPI_THREAD_SINGLE;
}

}  // namespace

VMPI_ENTRY(int, MPI_Init, (int*, char***)) { return begin("MPI_Init", MPI_THREAD_SINGLE); }

VMPI_ENTRY(int, MPI_Init_thread, (int*, char***, int required, int* provided)) {
  if (provided == nullptr) {
    BigGuard guard;
    return vmpi::raise(nullptr, MPI_ERR_ARG, "MPI_Init_thread",
                       "argument `provided` is a null pointer");
  }
  const int error = begin("MPI_Init_thread", level_of(required));
  if (error == MPI_SUCCESS) *provided = world.thread_level;
  return error;
}

VMPI_ENTRY(int, MPI_Initialized, (int* flag)) {
  if (flag == nullptr) return MPI_ERR_ARG;
  *flag = world.stage != Stage::kBefore && !world.is_of_teams ? 1 : 0;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Finalized, (int* flag)) {
  if (flag == nullptr) return MPI_ERR_ARG;
  *flag = world.stage == Stage::kFinalized ? 1 : 0;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Query_thread, (int* provided)) {
  BigGuard guard;
  if (provided == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, "MPI_Query_thread",
                       "argument `provided` is a null pointer");
  *provided = world.thread_level;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Is_thread_main, (int* flag)) {
  BigGuard guard;
  if (flag == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, "MPI_Is_thread_main",
                       "argument `flag` is a null pointer");
  *flag = ::pthread_equal(main_thread, ::pthread_self()) != 0 ? 1 : 0;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Finalize, (void)) {
  BigGuard guard;
  if (world.stage != Stage::kRunning)
    return vmpi::raise(nullptr, MPI_ERR_OTHER, "MPI_Finalize",
                       world.stage == Stage::kBefore ? "MPI_Init was not called"
                                                     : "MPI_Finalize was called before");
  const int error = vmpi::delete_attributes_of_self();
  vmpi::flush_buffer();
  vmpi::stop_engine();
  vmpi::end_bootstrap();
  vmpi::request_table.clear();
  vmpi::drop_objects();
  world.stage = Stage::kFinalized;
  return error;
}

VMPI_ENTRY(int, MPI_Abort, (MPI_Comm, int errorcode)) {
  vmpi::abort_all(errorcode, "MPI_Abort was called with code %d", errorcode);
}

VMPI_ENTRY(int, MPI_Get_processor_name, (char* name, int* resultlen)) {
  BigGuard guard;
  if (name == nullptr || resultlen == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, "MPI_Get_processor_name",
                       "argument `%s` is a null pointer", name == nullptr ? "name" : "resultlen");
  char host[MPI_MAX_PROCESSOR_NAME] = "";
  if (::gethostname(host, sizeof host - 1) != 0) (void)std::snprintf(host, sizeof host, "unknown");
  std::memcpy(name, host, sizeof host);
  *resultlen = static_cast<int>(std::strlen(host));
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Pcontrol, (const int, ...)) { return MPI_SUCCESS; }
