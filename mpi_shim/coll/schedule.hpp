// SPDX-License-Identifier: BSD-2-Clause
// Plans that the engine's progress goes through: what nonblocking collectives are, and those whose
// speed nobody counts on.
//
// A schedule holds what its plan names (types, the operation, communicators) until it ends. The big
// lock is held by every caller; while a program's operation is called it is given up, and no other
// thread advances any schedule meanwhile.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/coll/plan.hpp"
#include "mpi_shim/coll/run.hpp"
#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/engine.hpp"

namespace vmpi {

class Schedule {
 public:
  /// Messages go over `comm`, with a tag that its collectives have, or one of the program's.
  Schedule(Comm& comm, Plane plane, int tag) noexcept;
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  [[nodiscard]] Comm& comm() const noexcept { return *comm_; }
  /// To build it.
  [[nodiscard]] Plan& plan() noexcept { return plan_; }
  /// Steps from here on go over the local communicator of an intercommunicator, by a new tag of it,
  /// and over the schedule's own again.
  void use_local() noexcept;
  void use_own() noexcept;
  void use_tag(int tag) noexcept;

  /// Called with what the schedule ended with, before the request completes, or when it is abandoned;
  /// returns the error.
  using AtEnd = int(void* context, int error) noexcept;
  void at_end(AtEnd* function, void* context) noexcept {
    at_end_ = function;
    context_ = context;
  }
  /// The request tells of the last receive: source, tag and bytes.
  void tell_of_receive() noexcept { tells_of_receive_ = true; }

 private:
  friend int start(Schedule* schedule, Request& request) noexcept;
  friend void abandon(Schedule* schedule) noexcept;
  friend void drop_schedules() noexcept;
  friend bool advance_all() noexcept;

  void enter(const Route& route) noexcept;
  [[nodiscard]] bool prepare() noexcept;
  void end() noexcept;

  Comm* comm_;
  Plane plane_;
  int own_tag_;
  bool tells_of_receive_ = false;
  bool holds_types_ = false;
  Array<Route> routes_;
  Plan plan_;
  Run run_;
  Op* op_ = nullptr;
  AtEnd* at_end_ = nullptr;
  void* context_ = nullptr;
  Request* request_ = nullptr;
  Schedule* next_ = nullptr;
};

/// Of one collective. Null: no memory.
[[nodiscard]] Schedule* make_schedule(Comm& comm) noexcept;
/// Of messages of the program. Null: no memory.
[[nodiscard]] Schedule* make_program_schedule(Comm& comm) noexcept;
void destroy(Schedule* schedule) noexcept;
/// One that was not started, for want of memory.
void abandon(Schedule* schedule) noexcept;

/// Begins a schedule, whose end is that of `request` (its communicator is the caller's). The schedule
/// is destroyed at its end, or here when there is no memory for it (MPI_ERR_NO_MEM).
[[nodiscard]] int start(Schedule* schedule, Request& request) noexcept;

}  // namespace vmpi
