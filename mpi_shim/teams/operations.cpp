// SPDX-License-Identifier: BSD-2-Clause
// The operations of verbatim/coll.h: arguments are checked and become the engine's; then they are
// done, or begun.
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/plan.hpp"
#include "mpi_shim/coll/schedule.hpp"
#include "mpi_shim/coll/shape.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/op.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/teams/entry.hpp"
#include "mpi_shim/teams/requests.hpp"
#include "mpi_shim/teams/team.hpp"
#include "mpi_shim/teams/types.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace vmpi {
namespace {

/// One call: what is wrong with its arguments, the first of it, then what becomes of it. Holds the
/// big lock.
class TeamCall {
 public:
  /// `request`: null of one that blocks.
  TeamCall(const char* function, vbt_coll_team* team, vbt_coll_request** request,
           bool begins) noexcept
      : function_(function),
        team_(team),
        request_(request),
        begins_(begins),
        error_(check_team(team, function)),
        // In a forked child whoever had the lock is gone.
        is_locked_(error_ == 0) {
    if (is_locked_) big_lock.lock();
    if (begins && request == nullptr && error_ == 0)
      error_ = refuse_call(EINVAL, "%s: request is NULL: there is no place for it", function);
    if (begins && request != nullptr) *request = nullptr;
    if (error_ == 0 && team->error != 0) error_ = answer_for(*team, MPI_SUCCESS);
  }
  ~TeamCall() {
    if (is_locked_) big_lock.unlock();
  }
  TeamCall(const TeamCall&) = delete;
  TeamCall& operator=(const TeamCall&) = delete;

  [[nodiscard]] bool is_good() const noexcept { return error_ == 0; }
  [[nodiscard]] int size() const noexcept { return team_->comm->size(); }
  [[nodiscard]] int rank() const noexcept { return team_->comm->rank(); }

  /// Null: it is none, and the call is not good.
  [[nodiscard]] Datatype* type(vbt_coll_type type) noexcept {
    if (!is_good()) return nullptr;
    type_number_ = static_cast<unsigned>(type);
    Datatype* const found = find_datatype(handle_of(type));
    if (found == nullptr) refuse("type is %u, which is none", type_number_);
    return found;
  }
  [[nodiscard]] const Op* operation(vbt_coll_op op, const Datatype* type) noexcept {
    if (!is_good()) return nullptr;
    const Op* const found = find_op(handle_of(op));
    if (found == nullptr)
      refuse("op is %u, which is none", static_cast<unsigned>(op));
    else if (!is_defined_on(*found, *type))
      refuse("op %u is not defined on elements of type %u (vbt_coll_is_op_of)",
             static_cast<unsigned>(op), type_number_);
    return is_good() ? found : nullptr;
  }
  void root(std::uint32_t root) noexcept {
    if (is_good() && root >= static_cast<std::uint32_t>(size()))
      refuse("root is %u of %d members", root, size());
  }
  /// `parts` such counts must fit into memory.
  void count(std::size_t count, const Datatype* type, int parts) noexcept {
    if (!is_good()) return;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(count, type->size, &bytes) ||
        __builtin_mul_overflow(bytes, static_cast<std::int64_t>(parts), &bytes))
      refuse("count is %zu, which is more than memory has", count);
  }
  void buffer(const void* at, std::size_t count, const char* name) noexcept {
    if (!is_good()) return;
    if (at == nullptr && count != 0) refuse("%s is NULL, and count %zu", name, count);
    if (at == VBT_COLL_IN_PLACE) refuse("%s may not be VBT_COLL_IN_PLACE here", name);
  }
  void are_apart(const void* send, std::int64_t send_bytes, const void* receive,
                 std::int64_t receive_bytes) noexcept {
    const auto from = reinterpret_cast<std::uintptr_t>(send);
    const auto to = reinterpret_cast<std::uintptr_t>(receive);
    if (!is_good() || send_bytes == 0 || receive_bytes == 0) return;
    if (from < to + static_cast<std::uintptr_t>(receive_bytes) &&
        to < from + static_cast<std::uintptr_t>(send_bytes))
      refuse("send and receive overlap (VBT_COLL_IN_PLACE may stand for send)");
  }

  [[nodiscard]] int run(Collective which, const Operands& of) noexcept {
    if (!is_good()) return error_;
    return begins_ ? begin(which, of) : do_it(which, of);
  }

 private:
  [[gnu::cold, gnu::format(printf, 2, 3)]] void refuse(const char* format, ...) noexcept {
    char text[160];
    std::va_list arguments;
    va_start(arguments, format);
    (void)std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    error_ = refuse_call(EINVAL, "%s: %s", function_, text);
  }

  [[nodiscard]] int do_it(Collective which, const Operands& of) noexcept {
    const WaitingCall call(*team_, team_->timeout_ns);
    return answer_for(*team_, do_collective(which, *team_->comm, of));
  }

  [[nodiscard]] int begin(Collective which, const Operands& of) noexcept {
    auto* const made = verbatim::make_nothrow<vbt_coll_request>();
    Schedule* const schedule = made != nullptr ? make_schedule(*team_->comm) : nullptr;
    if (schedule == nullptr) {
      verbatim::destroy_nothrow(made);
      return answer_for(*team_, MPI_ERR_NO_MEM);
    }
    made->team = team_;
    if (team_->timeout_ns != 0) made->since = now_ns();
    made->of_engine.comm = team_->comm;
    make_plan(schedule->plan(), which, of);
    if (const int error = start(schedule, made->of_engine); error != MPI_SUCCESS) {
      verbatim::destroy_nothrow(made);
      return answer_for(*team_, error);
    }
    ++team_->requests;
    *request_ = made;
    return 0;
  }

  const char* function_;
  vbt_coll_team* team_;
  vbt_coll_request** request_;
  bool begins_;
  int error_;
  const bool is_locked_;
  unsigned type_number_ = 0;
};

/// What an operation is begun with; of one that blocks nothing.
struct Begun {
  const char* function;
  bool begins;
  vbt_coll_request** request;
};

int barrier_of(const Begun& how, vbt_coll_team* team) noexcept {
  TeamCall call(how.function, team, how.request, how.begins);
  return call.run(Collective::kBarrier, {});
}

int bcast_of(const Begun& how, vbt_coll_team* team, void* buffer, std::size_t count,
             vbt_coll_type type, std::uint32_t root) noexcept {
  TeamCall call(how.function, team, how.request, how.begins);
  Datatype* const of_type = call.type(type);
  call.root(root);
  call.count(count, of_type, 1);
  call.buffer(buffer, count, "buffer");
  const Typed data = {buffer, static_cast<std::int64_t>(count), of_type};
  Operands of;
  of.root = static_cast<int>(root);
  of.own = &data;
  return call.run(Collective::kBcast, of);
}

/// Of both reductions; `has_result`: here.
Reduced reduced(TeamCall& call, const void* send, void* receive, std::size_t count,
                vbt_coll_type type, vbt_coll_op op, bool has_result) noexcept {
  Datatype* const of_type = call.type(type);
  const Op* const operation = call.operation(op, of_type);
  call.count(count, of_type, 1);
  const bool is_in_place = send == VBT_COLL_IN_PLACE;
  if (!is_in_place || !has_result) call.buffer(send, count, "send");
  if (has_result) call.buffer(receive, count, "receive");
  const Reduced what = {is_in_place ? MPI_IN_PLACE : send, receive,
                        static_cast<std::int64_t>(count), of_type, operation};
  if (call.is_good() && has_result && !is_in_place) {
    const std::int64_t bytes = what.count * of_type->size;
    call.are_apart(send, bytes, receive, bytes);
  }
  return what;
}

int reduce_of(const Begun& how, vbt_coll_team* team, const void* send, void* receive,
              std::size_t count, vbt_coll_type type, vbt_coll_op op, std::uint32_t root) noexcept {
  TeamCall call(how.function, team, how.request, how.begins);
  call.root(root);
  const bool is_root = call.is_good() && static_cast<std::uint32_t>(call.rank()) == root;
  const Reduced what = reduced(call, send, receive, count, type, op, is_root);
  Operands of;
  of.root = static_cast<int>(root);
  of.what = &what;
  return call.run(Collective::kReduce, of);
}

int allreduce_of(const Begun& how, vbt_coll_team* team, const void* send, void* receive,
                 std::size_t count, vbt_coll_type type, vbt_coll_op op) noexcept {
  TeamCall call(how.function, team, how.request, how.begins);
  const Reduced what = reduced(call, send, receive, count, type, op, true);
  Operands of;
  of.what = &what;
  return call.run(Collective::kAllreduce, of);
}

/// A slice for each member.
Slices slices(TeamCall& call, const void* at, std::size_t count, Datatype* type,
              const char* name) noexcept {
  call.count(count, type, call.is_good() ? call.size() : 1);
  call.buffer(at, count, name);
  Slices slices;
  slices.buffer = const_cast<void*>(at);
  slices.count = static_cast<std::int64_t>(count);
  slices.one_type = type;
  return slices;
}

int allgather_of(const Begun& how, vbt_coll_team* team, const void* send, void* receive,
                 std::size_t count, vbt_coll_type type) noexcept {
  TeamCall call(how.function, team, how.request, how.begins);
  Datatype* const of_type = call.type(type);
  const Slices out = slices(call, receive, count, of_type, "receive");
  const bool is_in_place = send == VBT_COLL_IN_PLACE;
  if (!is_in_place) call.buffer(send, count, "send");
  const Typed in = {is_in_place ? MPI_IN_PLACE : const_cast<void*>(send),
                    static_cast<std::int64_t>(count), of_type};
  if (call.is_good() && !is_in_place)
    call.are_apart(send, in.bytes(), receive, in.bytes() * call.size());
  Operands of;
  of.own = &in;
  of.out = &out;
  return call.run(Collective::kAllgather, of);
}

int alltoall_of(const Begun& how, vbt_coll_team* team, const void* send, void* receive,
                std::size_t count, vbt_coll_type type) noexcept {
  TeamCall call(how.function, team, how.request, how.begins);
  Datatype* const of_type = call.type(type);
  const Slices out = slices(call, receive, count, of_type, "receive");
  Slices in;
  in.buffer = MPI_IN_PLACE;
  if (send != VBT_COLL_IN_PLACE) {
    in = slices(call, send, count, of_type, "send");
    if (call.is_good()) {
      const std::int64_t bytes = out.count * of_type->size * call.size();
      call.are_apart(send, bytes, receive, bytes);
    }
  }
  Operands of;
  of.in = &in;
  of.out = &out;
  return call.run(Collective::kAlltoall, of);
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VBT_COLL_ENTRY int vbt_coll_barrier(vbt_coll_team* team) {
  return barrier_of({"vbt_coll_barrier", false, nullptr}, team);
}
VBT_COLL_ENTRY int vbt_coll_ibarrier(vbt_coll_team* team, vbt_coll_request** request) {
  return barrier_of({"vbt_coll_ibarrier", true, request}, team);
}

VBT_COLL_ENTRY int vbt_coll_bcast(vbt_coll_team* team, void* buffer, std::size_t count,
                                  vbt_coll_type type, std::uint32_t root) {
  return bcast_of({"vbt_coll_bcast", false, nullptr}, team, buffer, count, type, root);
}
VBT_COLL_ENTRY int vbt_coll_ibcast(vbt_coll_team* team, void* buffer, std::size_t count,
                                   vbt_coll_type type, std::uint32_t root,
                                   vbt_coll_request** request) {
  return bcast_of({"vbt_coll_ibcast", true, request}, team, buffer, count, type, root);
}

VBT_COLL_ENTRY int vbt_coll_reduce(vbt_coll_team* team, const void* send, void* receive,
                                   std::size_t count, vbt_coll_type type, vbt_coll_op op,
                                   std::uint32_t root) {
  return reduce_of({"vbt_coll_reduce", false, nullptr}, team, send, receive, count, type, op, root);
}
VBT_COLL_ENTRY int vbt_coll_ireduce(vbt_coll_team* team, const void* send, void* receive,
                                    std::size_t count, vbt_coll_type type, vbt_coll_op op,
                                    std::uint32_t root, vbt_coll_request** request) {
  return reduce_of({"vbt_coll_ireduce", true, request}, team, send, receive, count, type, op, root);
}

VBT_COLL_ENTRY int vbt_coll_allreduce(vbt_coll_team* team, const void* send, void* receive,
                                      std::size_t count, vbt_coll_type type, vbt_coll_op op) {
  return allreduce_of({"vbt_coll_allreduce", false, nullptr}, team, send, receive, count, type, op);
}
VBT_COLL_ENTRY int vbt_coll_iallreduce(vbt_coll_team* team, const void* send, void* receive,
                                       std::size_t count, vbt_coll_type type, vbt_coll_op op,
                                       vbt_coll_request** request) {
  return allreduce_of({"vbt_coll_iallreduce", true, request}, team, send, receive, count, type, op);
}

VBT_COLL_ENTRY int vbt_coll_allgather(vbt_coll_team* team, const void* send, void* receive,
                                      std::size_t count, vbt_coll_type type) {
  return allgather_of({"vbt_coll_allgather", false, nullptr}, team, send, receive, count, type);
}
VBT_COLL_ENTRY int vbt_coll_iallgather(vbt_coll_team* team, const void* send, void* receive,
                                       std::size_t count, vbt_coll_type type,
                                       vbt_coll_request** request) {
  return allgather_of({"vbt_coll_iallgather", true, request}, team, send, receive, count, type);
}

VBT_COLL_ENTRY int vbt_coll_alltoall(vbt_coll_team* team, const void* send, void* receive,
                                     std::size_t count, vbt_coll_type type) {
  return alltoall_of({"vbt_coll_alltoall", false, nullptr}, team, send, receive, count, type);
}
VBT_COLL_ENTRY int vbt_coll_ialltoall(vbt_coll_team* team, const void* send, void* receive,
                                      std::size_t count, vbt_coll_type type,
                                      vbt_coll_request** request) {
  return alltoall_of({"vbt_coll_ialltoall", true, request}, team, send, receive, count, type);
}
