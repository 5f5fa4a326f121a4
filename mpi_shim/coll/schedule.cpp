// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/schedule.hpp"

#include <new>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/core/output.hpp"
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
    : comm_(&comm), used_(&comm), plane_(plane), own_tag_(tag), tag_(tag) {
  retain(comm);
}

Schedule::~Schedule() {
  for (const Step& step : steps_) {
    if (step.from.type != nullptr) release(*step.from.type);
    if (step.to.type != nullptr) release(*step.to.type);
  }
  for (void* const memory : memory_) std::free(memory);
  std::free(static_cast<void*>(requests_));
  if (op_ != nullptr) release(*op_);
  release(*comm_);
}

void Schedule::add(const Step& step) noexcept {
  if (!is_good_) return;
  is_good_ = steps_.push_back(step);
  if (!is_good_) return;
  if (step.from.type != nullptr) retain(*step.from.type);
  if (step.to.type != nullptr) retain(*step.to.type);
}

void Schedule::use_local() noexcept {
  used_ = comm_->local;
  tag_ = next_tag(*used_);
}
void Schedule::use_own() noexcept {
  used_ = comm_;
  tag_ = own_tag_;
}

void Schedule::send(int dest, const Typed& from) noexcept {
  add({Kind::kSend, plane_, dest, tag_, used_, from, {}});
}
void Schedule::receive(int source, const Typed& to) noexcept {
  add({Kind::kReceive, plane_, source, tag_, used_, {}, to});
}
void Schedule::fence() noexcept { add({Kind::kFence, plane_, 0, 0, nullptr, {}, {}}); }
void Schedule::copy(const Typed& from, const Typed& to) noexcept {
  add({Kind::kCopy, plane_, 0, 0, nullptr, from, to});
}
void Schedule::combine(const Op& op, const Typed& in, void* inout) noexcept {
  if (op_ == nullptr) {
    op_ = const_cast<Op*>(&op);
    retain(*op_);
  }
  add({Kind::kCombine, plane_, 0, 0, nullptr, in, {inout, in.count, in.type}});
}

void* Schedule::keep(void* memory) noexcept {
  if (memory != nullptr && memory_.push_back(memory)) return memory;
  std::free(memory);
  is_good_ = false;
  return nullptr;
}

unsigned char* Schedule::bytes(std::int64_t count) noexcept {
  if (!is_good_ || count < 0) {
    is_good_ = false;
    return nullptr;
  }
  return static_cast<unsigned char*>(
      keep(std::malloc(count > 0 ? static_cast<std::size_t>(count) : 1)));
}

void* Schedule::elements(const Datatype& type, std::int64_t count) noexcept {
  const ElementsSpan span = span_of(type, count);
  void* const memory = bytes(span.bytes);
  return memory != nullptr ? span.origin(memory) : nullptr;
}

/// Memory for as many messages as are ever under way together.
bool Schedule::prepare() noexcept {
  if (!is_good_) return false;
  std::size_t most = 1;
  std::size_t now = 0;
  for (const Step& step : steps_) {
    if (step.kind == Kind::kFence) now = 0;
    if (step.kind == Kind::kSend || step.kind == Kind::kReceive) ++now;
    most = now > most ? now : most;
  }
  requests_ = static_cast<Request*>(std::malloc(most * sizeof(Request)));
  return requests_ != nullptr;
}

void Schedule::begin(const Step& step) noexcept {
  const bool is_send = step.kind == Kind::kSend;
  const Typed& data = is_send ? step.from : step.to;
  Request& request = *::new (static_cast<void*>(requests_ + begun_)) Request();
  request.plane = step.plane;
  request.peer = step.peer;
  request.tag = step.tag;
  request.buffer = data.buffer;
  request.count = data.count;
  request.type = data.type;
  request.comm = step.comm;
  ++begun_;
  // A send that cannot begin is complete, with its error.
  if (is_send)
    (void)begin_send(request);
  else
    begin_receive(request);
}

void Schedule::do_steps() noexcept {
  while (next_step_ < steps_.size() && !is_ended_) {
    // By value: nothing here depends on where the array is while the program's operation runs.
    const Step step = steps_[next_step_++];
    switch (step.kind) {
      case Kind::kSend:
      case Kind::kReceive:
        begin(step);
        break;
      case Kind::kCopy:
        vmpi::copy(step.from, step.to);
        break;
      case Kind::kCombine:
        reduce(*op_, *step.from.type, step.from.count, step.from.buffer, step.to.buffer);
        break;
      case Kind::kFence:
        if (begun_ != 0) return;
        break;
    }
  }
}

/// An error that lies behind a message which may never come: looked for now and then.
void Schedule::look_for_error() noexcept {
  for (std::size_t i = complete_; i < begun_; ++i)
    if (requests_[i].is_complete) is_ended_ = outcome_.is_ended_by(requests_[i].error) || is_ended_;
}

/// After an error what is under way is given up, as far as nobody has matched it.
bool Schedule::are_messages_complete() noexcept {
  constexpr std::uint32_t kBetweenLooks = 64;
  for (; complete_ < begun_; ++complete_) {
    Request& request = requests_[complete_];
    if (!request.is_complete && !is_ended_ && ++looks_in_vain_ % kBetweenLooks == 0)
      look_for_error();
    if (!request.is_complete && is_ended_) (void)cancel(request);
    if (!request.is_complete) return false;
    is_ended_ = outcome_.is_ended_by(request.error) || is_ended_;
    if (tells_of_receive_ && request.kind == Request::Kind::kReceive) {
      request_->source = request.source;
      request_->received_tag = request.received_tag;
      request_->bytes = request.bytes;
    }
  }
  begun_ = complete_ = 0;
  return true;
}

bool Schedule::advance() noexcept {
  bool has_moved = false;
  while (are_messages_complete()) {
    has_moved = true;
    if (is_ended_ || next_step_ == steps_.size()) {
      is_over_ = true;
      break;
    }
    do_steps();
  }
  return has_moved;
}

void Schedule::end() noexcept {
  int error = outcome_.error;
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
    has_moved = each->advance() || has_moved;
    Schedule* const following = each->next_;
    if (!each->is_over_) {
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
  // What can begin begins now, in the program's order, and before another thread sees the schedule.
  (void)schedule->advance();
  if (schedule->is_over_) {
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
