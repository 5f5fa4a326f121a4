// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/run.hpp"

#include <cstdlib>
#include <new>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/host_leaders.hpp"
#include "mpi_shim/coll/host_team.hpp"
#include "mpi_shim/coll/select.hpp"
#include "mpi_shim/coll/shape.hpp"
#include "mpi_shim/core/at_once.hpp"
#include "mpi_shim/core/comm_nodes.hpp"
#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/peers.hpp"

namespace vmpi {

Run::~Run() {
  if (requests_ != reinterpret_cast<Request*>(requests_here_))
    std::free(static_cast<void*>(requests_));
}

bool Run::prepare() noexcept {
  const std::size_t most = plan_->most_messages();
  requests_ = most <= kRequestsHere ? reinterpret_cast<Request*>(requests_here_)
                                    : static_cast<Request*>(std::malloc(most * sizeof(Request)));
  return requests_ != nullptr;
}

void Run::set_up(Request& request, const Step& step) const noexcept {
  const Typed& data = step.kind == Step::Kind::kSend ? step.from : step.to;
  request.plane = plane_;
  request.peer = step.peer;
  request.tag = route_of(step).tag;
  request.buffer = data.buffer;
  request.count = data.count;
  request.type = data.type;
  request.comm = route_of(step).comm;
}

void Run::begin(const Step& step, bool is_waited_for) noexcept {
  Request& request = *::new (static_cast<void*>(requests_ + begun_)) Request();
  set_up(request, step);
  request.is_waited_for = is_waited_for;
  const bool is_send = step.kind == Step::Kind::kSend;
  if (is_send && send_at_once(request)) return;
  ++begun_;
  // A send that cannot begin is complete, with its error.
  if (is_send)
    (void)begin_send(request);
  else
    begin_receive(request);
}

int Run::send_alone(const Step& step) const noexcept {
  const Route& to = route_of(step);
  return send_to(*to.comm, plane_, step.peer, to.tag, step.from.buffer, step.from.count,
                 *step.from.type);
}

int Run::receive_alone(const Step& step) const noexcept {
  const Route& from = route_of(step);
  return receive_from(*from.comm, plane_, step.peer, from.tag, step.to.buffer, step.to.count,
                      *step.to.type);
}

int Run::exchange_alone(const Step& incoming, const Step& outgoing) const noexcept {
  Request send;
  set_up(send, outgoing);
  send.is_waited_for = true;
  // A short one has gone before the receive is posted, which then need not be.
  if (send_at_once(send)) return receive_alone(incoming);
  Request receive;
  set_up(receive, incoming);
  receive.is_waited_for = true;
  exchange(send, receive);
  return send.error != MPI_SUCCESS ? send.error : receive.error;
}

void Run::compute(const Step& step) const noexcept {
  if (step.kind == Step::Kind::kCopy)
    copy(step.from, step.to);
  else
    reduce(*plan_->op(), *step.from.type, step.from.count, step.from.buffer, step.to.buffer);
}

void Run::do_steps() noexcept {
  while (next_ != plan_->end() && !is_ended_) {
    const Step& step = *next_++;
    switch (step.kind) {
      case Step::Kind::kSend:
      case Step::Kind::kReceive:
        begin(step, false);
        break;
      case Step::Kind::kCopy:
      case Step::Kind::kCombine:
        compute(step);
        break;
      case Step::Kind::kFence:
        if (begun_ != 0) return;
        break;
    }
  }
}

/// An error that lies behind a message which may never come: looked for now and then.
void Run::look_for_error() noexcept {
  for (std::size_t i = complete_; i < begun_; ++i)
    if (const Request& each = requests_[i]; each.is_complete)
      is_ended_ = is_ended_by(each.error, *each.comm, each.peer) || is_ended_;
}

/// After an error what is under way is given up, as far as nobody has matched it.
bool Run::are_messages_complete() noexcept {
  constexpr std::uint32_t kBetweenLooks = 64;
  for (; complete_ < begun_; ++complete_) {
    Request& request = requests_[complete_];
    if (!request.is_complete && !is_ended_ && ++looks_in_vain_ % kBetweenLooks == 0)
      look_for_error();
    if (!request.is_complete && is_ended_) (void)cancel(request);
    if (!request.is_complete) return false;
    is_ended_ = is_ended_by(request.error, *request.comm, request.peer) || is_ended_;
    if (told_ != nullptr && request.kind == Request::Kind::kReceive) {
      told_->source = request.source;
      told_->received_tag = request.received_tag;
      told_->bytes = request.bytes;
    }
  }
  begun_ = complete_ = 0;
  return true;
}

bool Run::advance() noexcept {
  bool has_moved = false;
  while (are_messages_complete()) {
    has_moved = true;
    if (is_ended_ || next_ == plan_->end()) {
      is_over_ = true;
      break;
    }
    do_steps();
  }
  return has_moved;
}

void Run::wait_for_messages() noexcept {
  if (begun_ == 0) return;
  wait_until([](void* self) { return static_cast<Run*>(self)->are_messages_complete(); }, this);
}

int Run::to_the_end() noexcept {
  const Step* const end = plan_->end();
  while (next_ != end && !is_ended_) {
    const Step& step = *next_++;
    switch (step.kind) {
      case Step::Kind::kSend:
        if (begun_ == 0 && is_fence(next_)) {
          is_ended_ = outcome_.is_ended_by(send_alone(step));
          break;
        }
        if (requests_ == nullptr && !prepare()) return MPI_ERR_NO_MEM;
        begin(step, true);
        break;
      case Step::Kind::kReceive:
        if (begun_ == 0 && is_fence(next_)) {
          is_ended_ = is_ended_by(receive_alone(step), *route_of(step).comm, step.peer);
          break;
        }
        if (begun_ == 0 && next_->kind == Step::Kind::kSend && is_fence(next_ + 1)) {
          is_ended_ = is_ended_by(exchange_alone(step, *next_++), *route_of(step).comm, step.peer);
          break;
        }
        if (requests_ == nullptr && !prepare()) return MPI_ERR_NO_MEM;
        begin(step, true);
        break;
      case Step::Kind::kCopy:
      case Step::Kind::kCombine:
        compute(step);
        break;
      case Step::Kind::kFence:
        wait_for_messages();
        break;
    }
  }
  wait_for_messages();
  return outcome_.error;
}

namespace {

/// A broadcast between two ranks is one message whatever its algorithm: a plan of it would take a
/// tenth of what it takes.
[[nodiscard]] int bcast_between_two(Comm& comm, int tag, const Typed& data, int root) noexcept {
  if (comm.rank() == root)
    return send_to(comm, Plane::kCollective, 1 - root, tag, data.buffer, data.count, *data.type);
  const int error =
      receive_from(comm, Plane::kCollective, root, tag, data.buffer, data.count, *data.type);
  if (error == MPI_ERR_TRUNCATE) comm.odd_rank = root;
  return error;
}

/// By the memory that the ranks of one host share; kNotOfHost: not by it.
[[nodiscard]] int do_on_host(Collective which, Comm& comm, const Operands& of) noexcept {
  switch (which) {
    case Collective::kBarrier:
      return host_barrier(comm);
    case Collective::kBcast:
      return host_bcast(comm, *of.own, of.root);
    case Collective::kAllgather:
      return of.out->form == Slices::Form::kAlike ? host_allgather(comm, *of.own, *of.out)
                                                  : kNotOfHost;
    case Collective::kAlltoall:
      return of.out->form == Slices::Form::kAlike ? host_alltoall(comm, *of.in, *of.out)
                                                  : kNotOfHost;
    case Collective::kReduce:
      return host_reduce(comm, of.what->send, of.what->receive, of.what->count, *of.what->type,
                         *of.what->op, of.root);
    case Collective::kAllreduce:
      return host_allreduce(comm, of.what->send, of.what->receive, of.what->count, *of.what->type,
                            *of.what->op);
    default:
      return kNotOfHost;
  }
}

/// On which nodes a communicator's ranks are, and what their messages cost. REQUIRES: nodes_of() was asked.
void lie_where(Plan& plan, Comm& comm, const Nodes* nodes) noexcept {
  plan.lie_on(nodes);
  plan.go_by(costs_of(comm), comm.node_state == NodeState::kApart);
}

[[gnu::noinline]] bool is_by_leaders(Collective which, Comm& comm, const Nodes& nodes,
                                     const Operands& of) noexcept {
  Algorithm* const leaders = leaders_of(which);
  if (leaders == nullptr) return false;
  Plan plan(comm.rank(), comm.size());
  lie_where(plan, comm, &nodes);
  return algorithm_for(plan, which, of) == leaders;
}

}  // namespace

int do_collective(Collective which, Comm& comm, const Operands& of) noexcept {
  if (chosen_by_user(which) == nullptr)
    if (const int ended = do_on_host(which, comm, of); ended != kNotOfHost) return ended;
  // Who only sends would not see it.
  if (has_dead_member(comm)) [[unlikely]]
    return MPI_ERR_PROC_ABORTED;
  const Nodes* const nodes = nodes_of(comm);
  if (nodes != nullptr && is_by_leaders(which, comm, *nodes, of))
    return do_by_leaders(which, comm, of);
  const Route route = {&comm, next_tag(comm)};
  if (which == Collective::kBcast && comm.size() == 2 && chosen_by_user(which) == nullptr)
    return bcast_between_two(comm, route.tag, *of.own, of.root);
  Plan plan(comm.rank(), comm.size());
  lie_where(plan, comm, nodes);
  make_plan(plan, which, of);
  if (!plan.is_good()) return MPI_ERR_NO_MEM;
  return Run(plan, &route, Plane::kCollective).to_the_end();
}

}  // namespace vmpi
