// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/schedule.hpp"

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/core/comm_nodes.hpp"
#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/output.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/teardown.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace vmpi {
namespace {

// All that are under way, in the order of their starts.
constinit Schedule* first = nullptr;
constinit Schedule* last = nullptr;
constinit bool is_advancing = false;

}  // namespace

Schedule::Schedule(Comm& comm, Plane plane, int tag) noexcept
    : comm_(&comm),
      plane_(plane),
      own_tag_(tag),
      plan_(comm.rank(), comm.size()),
      run_(plan_, nullptr, plane) {
  retain(comm);
  if (plane == Plane::kCollective) plan_.lie_on(nodes_of(comm));
  plan_.go_by(costs_of(comm), comm.node_state == NodeState::kApart);
  if (!routes_.push_back({&comm, tag})) plan_.fail();
}

Schedule::~Schedule() {
  for (const Step& step : plan_) {
    if (!holds_types_) break;
    if (step.has_from()) release(*step.from.type);
    if (step.has_to()) release(*step.to.type);
  }
  if (op_ != nullptr) release(*op_);
  release(*comm_);
}

void Schedule::enter(const Route& route) noexcept {
  plan_.take_route(route.comm->rank(), route.comm->size());
  if (!routes_.push_back(route)) plan_.fail();
}

void Schedule::use_local() noexcept { enter({comm_->local, next_tag(*comm_->local)}); }
void Schedule::use_own() noexcept { enter({comm_, own_tag_}); }
void Schedule::use_tag(int tag) noexcept { enter({comm_, tag}); }

bool Schedule::prepare() noexcept {
  run_.use(routes_.data());
  if (!plan_.is_good() || !run_.prepare()) return false;
  holds_types_ = true;
  for (const Step& step : plan_) {
    if (step.has_from()) retain(*step.from.type);
    if (step.has_to()) retain(*step.to.type);
  }
  if (plan_.op() != nullptr) {
    op_ = const_cast<Op*>(plan_.op());
    retain(*op_);
  }
  return true;
}

void Schedule::end() noexcept {
  int error = run_.error();
  if (at_end_ != nullptr) error = at_end_(context_, error);
  complete(*request_, error);
}

/// Called by the engine's progress while there are any.
bool advance_all() noexcept {
  // Another thread is at it, and has given up the lock for the program's operation.
  if (is_advancing) return false;
  is_advancing = true;
  bool has_moved = false;
  Schedule* before = nullptr;
  // Others may be added behind the last meanwhile, but none is taken out.
  for (Schedule* each = first; each != nullptr;) {
    has_moved = each->run_.advance() || has_moved;
    Schedule* const following = each->next_;
    if (!each->run_.is_over()) {
      before = each;
      each = following;
      continue;
    }
    (before != nullptr ? before->next_ : first) = following;
    if (last == each) last = before;
    each->end();
    destroy(each);
    each = following;
  }
  if (first == nullptr) advance_schedules = nullptr;
  is_advancing = false;
  return has_moved;
}

Schedule* make_schedule(Comm& comm) noexcept {
  return verbatim::make_nothrow<Schedule>(comm, Plane::kCollective, next_tag(comm));
}
Schedule* make_program_schedule(Comm& comm) noexcept {
  return verbatim::make_nothrow<Schedule>(comm, Plane::kProgram, 0);
}
void destroy(Schedule* schedule) noexcept { verbatim::destroy_nothrow(schedule); }

void abandon(Schedule* schedule) noexcept {
  if (schedule->at_end_ != nullptr) (void)schedule->at_end_(schedule->context_, MPI_ERR_NO_MEM);
  destroy(schedule);
}

int start(Schedule* schedule, Request& request) noexcept {
  if (!schedule->prepare()) {
    abandon(schedule);
    return MPI_ERR_NO_MEM;
  }
  request.kind = Request::Kind::kSchedule;
  request.is_active = true;
  request.is_complete = false;
  request.error = MPI_SUCCESS;
  request.source = MPI_ANY_SOURCE;
  schedule->request_ = &request;
  if (schedule->tells_of_receive_) schedule->run_.tell_of_receives(request);
  if (schedule->plane_ == Plane::kCollective && has_dead_member(*schedule->comm_))
    schedule->run_.refuse(MPI_ERR_PROC_ABORTED);
  // What can begin begins now, in the program's order, and before another thread sees the schedule.
  (void)schedule->run_.advance();
  if (schedule->run_.is_over()) {
    schedule->end();
    destroy(schedule);
    return MPI_SUCCESS;
  }
  (last != nullptr ? last->next_ : first) = schedule;
  last = schedule;
  advance_schedules = advance_all;
  return MPI_SUCCESS;
}

/// What a program has left behind at MPI_Finalize: nothing moves any more.
void drop_schedules() noexcept {
  while (first != nullptr) {
    Schedule* const gone = first;
    first = gone->next_;
    destroy(gone);
  }
  last = nullptr;
  advance_schedules = nullptr;
}

}  // namespace vmpi
