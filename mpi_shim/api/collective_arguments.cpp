// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/api/collective_arguments.hpp"

#include "mpi_shim/core/context_ids.hpp"
#include "mpi_shim/core/requests.hpp"

namespace vmpi {

CollectiveCall::CollectiveCall(const char* function, MPI_Comm comm, Start start) noexcept
    : function_(function), comm_(find_comm(comm)), start_(start) {
  if (comm_ == nullptr) {
    fail(bad_comm(function, "comm", comm));
    return;
  }
  retain(*comm_);
  // Messages by the number that stands for a context to come would meet nobody.
  if (comm_->context == kContextToCome)
    fail(raise(comm_, MPI_ERR_COMM, function,
               "argument `comm` is a duplicate whose request (MPI_Comm_idup) has not completed"));
  if (start.is_all) pointer(static_cast<const void*>(start.request), "request");
}

CollectiveCall::~CollectiveCall() {
  if (comm_ != nullptr) release(*comm_);
}

void CollectiveCall::not_between_groups() noexcept {
  if (is_good_ && comm_->remote != nullptr)
    fail(raise(comm_, MPI_ERR_COMM, function_,
               "argument `comm` is an intercommunicator, an intracommunicator is wanted"));
}

void CollectiveCall::neighbours(Neighbours& out) noexcept {
  not_between_groups();
  if (is_good_ && comm_->topology == TopologyKind::kNone)
    fail(raise(comm_, MPI_ERR_TOPOLOGY, function_,
               "argument `comm` has no topology (MPI_Cart_create and MPI_Graph_create make one)"));
  if (is_good_ && !out.find(*comm_)) fail(no_memory(comm_, function_));
}

void CollectiveCall::root(int rank) noexcept {
  if (!is_good_ || (rank >= 0 && rank < peers())) return;
  if (comm_->remote == nullptr)
    fail(raise(comm_, MPI_ERR_ROOT, function_,
               "argument `root` is %d, the communicator has %d ranks", rank, comm_->size()));
  else if (rank != MPI_ROOT && rank != MPI_PROC_NULL)
    fail(
        raise(comm_, MPI_ERR_ROOT, function_,
              "argument `root` is %d: MPI_ROOT or MPI_PROC_NULL in its own group, and in the other "
              "one of %d ranks",
              rank, peers()));
}

int CollectiveCall::run(Collective which, const Operands& of) noexcept {
  if (!is_good_) return error_;
  if (!start_.is_all && comm_->remote == nullptr) return end(do_collective(which, *comm_, of));
  return run([&](Schedule& schedule) noexcept { plan_collective(schedule, which, of); });
}

int CollectiveCall::begin(Schedule* schedule) noexcept {
  Request own;
  Request* const request = start_.is_all ? make_request() : &own;
  if (request == nullptr) {
    abandon(schedule);
    return end(MPI_ERR_NO_MEM);
  }
  if (!start_.is_all) {
    const int error = vmpi::start(schedule, own);
    return end(error != MPI_SUCCESS ? error : wait_for(own));
  }
  request->comm = comm_;
  retain(*comm_);
  if (const int error = vmpi::start(schedule, *request); error != MPI_SUCCESS) {
    release_request(*request);
    return end(error);
  }
  *start_.request = handle_of(*request);
  return MPI_SUCCESS;
}

Datatype* CollectiveCall::type(MPI_Datatype handle, const char* argument) noexcept {
  if (!is_good_) return nullptr;
  Datatype* const found = find_datatype(handle);
  if (found == nullptr)
    fail(raise(comm_, MPI_ERR_TYPE, function_, "argument `%s` is no datatype (0x%llx)", argument,
               told(handle)));
  else if (!found->is_committed)
    fail(raise(comm_, MPI_ERR_TYPE, function_,
               "argument `%s` is a datatype that was not committed (MPI_Type_commit)", argument));
  return is_good_ ? found : nullptr;
}

void CollectiveCall::count(std::int64_t value, const char* argument) noexcept {
  if (is_good_ && value < 0)
    fail(raise(comm_, MPI_ERR_COUNT, function_, "argument `%s` is %lld", argument,
               static_cast<long long>(value)));
}

void CollectiveCall::counts(const int* values, const char* argument, int ranks) noexcept {
  if (ranks > 0) pointer(values, argument);
  for (int i = 0; is_good_ && i < ranks; ++i)
    if (values[i] < 0)
      fail(raise(comm_, MPI_ERR_COUNT, function_, "%s[%d] is %d", argument, i, values[i]));
}

void CollectiveCall::pointer(const void* value, const char* argument) noexcept {
  if (is_good_ && value == nullptr) fail(null_pointer(comm_, function_, argument));
}

void CollectiveCall::not_in_place(const void* buffer, const char* argument) noexcept {
  if (is_good_ && buffer == MPI_IN_PLACE)
    fail(raise(comm_, MPI_ERR_BUFFER, function_, "argument `%s` may not be MPI_IN_PLACE here",
               argument));
}

void CollectiveCall::buffer(const void* at, std::int64_t count, const Datatype* type,
                            const char* argument) noexcept {
  if (!is_good_ || at != nullptr || count == 0 || type->size == 0 || peers() == 0) return;
  if (type->is_predefined)
    fail(raise(comm_, MPI_ERR_BUFFER, function_, "argument `%s` is a null pointer", argument));
}

void CollectiveCall::fits(std::int64_t count, const Datatype* type, const char* argument) noexcept {
  if (!is_good_) return;
  const std::int64_t extent = type->extent < 0 ? -type->extent : type->extent;
  std::int64_t largest = type->size > extent ? type->size : extent;
  if (type->true_extent > largest) largest = type->true_extent;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(largest, count, &bytes) ||
      __builtin_mul_overflow(
          bytes,
          std::int64_t{comm_->size()} + (comm_->remote != nullptr || slices_ > 0 ? peers() : 0),
          &bytes))
    fail(raise(comm_, MPI_ERR_COUNT, function_,
               "argument `%s` is %lld, of a datatype of %lld bytes, which is more than an address "
               "space has",
               argument, static_cast<long long>(count), static_cast<long long>(largest)));
}

void CollectiveCall::are_apart(const void* send, const void* receive, std::int64_t bytes) noexcept {
  if (is_good_ && bytes > 0 && send == receive && send != MPI_BOTTOM)
    fail(raise(comm_, MPI_ERR_BUFFER, function_,
               "arguments `sendbuf` and `recvbuf` are one buffer (MPI_IN_PLACE says so)"));
}

void CollectiveCall::are_apart(const Slices& send, const Slices& receive) noexcept {
  if (!is_good_ || send.buffer == MPI_IN_PLACE) return;
  for (int i = 0; is_good_ && i < peers(); ++i) {
    const Typed out = send[i];
    const Typed in = receive[i];
    if (out.bytes() != 0 && in.bytes() != 0 &&
        first_byte(*out.type, out.buffer) == first_byte(*in.type, in.buffer))
      fail(raise(comm_, MPI_ERR_BUFFER, function_,
                 "what arguments `sendbuf` and `recvbuf` have for rank %d is in one place "
                 "(MPI_IN_PLACE says so)",
                 i));
  }
}

Op* CollectiveCall::operation(MPI_Op handle, const Datatype* type) noexcept {
  if (!is_good_) return nullptr;
  Op* const found = find_op(handle);
  if (found == nullptr)
    fail(raise(comm_, MPI_ERR_OP, function_, "argument `op` is no operation (0x%llx)",
               told(handle)));
  else if (!is_defined_on(*found, *type))
    fail(raise(comm_, MPI_ERR_OP, function_,
               "the operation 0x%llx is not defined on the datatype%s%s", told(handle),
               type->name[0] != '\0' ? " " : "", type->name));
  return is_good_ ? found : nullptr;
}

Typed CollectiveCall::typed(const void* at, std::int64_t number, MPI_Datatype handle,
                            const char* const (&names)[3]) noexcept {
  count(number, names[1]);
  Datatype* const found = type(handle, names[2]);
  buffer(at, number, found, names[0]);
  fits(number, found, names[1]);
  return {const_cast<void*>(at), number, found};
}

Slices CollectiveCall::alike(const void* at, std::int64_t number, MPI_Datatype handle,
                             const char* const (&names)[3]) noexcept {
  const Typed one = typed(at, number, handle, names);
  Slices slices;
  slices.buffer = one.buffer;
  slices.count = one.count;
  slices.one_type = one.type;
  return slices;
}

Slices CollectiveCall::elements(const void* at, const int* numbers, const int* displacements,
                                MPI_Datatype handle, const char* const (&names)[4]) noexcept {
  counts(numbers, names[1]);
  if (peers() > 0) pointer(displacements, names[2]);
  Slices slices;
  slices.form = Slices::Form::kElements;
  slices.buffer = const_cast<void*>(at);
  slices.counts = numbers;
  slices.displacements = displacements;
  slices.one_type = type(handle, names[3]);
  for (int i = 0; is_good_ && i < peers(); ++i) {
    buffer(at, numbers[i], slices.one_type, names[0]);
    fits(numbers[i], slices.one_type, names[1]);
  }
  return slices;
}

Slices CollectiveCall::types(const void* at, const int* numbers, const int* displacements,
                             const MPI_Datatype* handles, Array<Datatype*>& room,
                             const char* const (&names)[4]) noexcept {
  if (peers() > 0) pointer(displacements, names[2]);
  Slices slices = types(at, numbers, static_cast<const MPI_Aint*>(nullptr), handles, room, names);
  slices.displacements = displacements;
  return slices;
}

Slices CollectiveCall::types(const void* at, const int* numbers, const MPI_Aint* displacements,
                             const MPI_Datatype* handles, Array<Datatype*>& room,
                             const char* const (&names)[4]) noexcept {
  counts(numbers, names[1]);
  if (peers() > 0) pointer(static_cast<const void*>(handles), names[3]);
  if (is_good_ && !room.resize(static_cast<std::size_t>(peers())))
    fail(no_memory(comm_, function_));
  Slices slices;
  slices.form = Slices::Form::kTypes;
  slices.buffer = const_cast<void*>(at);
  slices.counts = numbers;
  slices.long_displacements = displacements;
  for (int i = 0; is_good_ && i < peers(); ++i) {
    // Programs give MPI_DATATYPE_NULL to those that they have nothing for.
    Datatype* const found = numbers[i] == 0 ? &byte_type() : type(handles[i], names[3]);
    room[static_cast<std::size_t>(i)] = found;
    buffer(at, numbers[i], found, names[0]);
    fits(numbers[i], found, names[1]);
  }
  slices.types = room.data();
  return slices;
}

int CollectiveCall::end(int error) const noexcept {
  switch (error) {
    case MPI_SUCCESS:
      return MPI_SUCCESS;
    case MPI_ERR_NO_MEM:
      return no_memory(comm_, function_);
    case MPI_ERR_TRUNCATE:
      if (comm_->odd_rank < 0)
        return raise(comm_, error, function_,
                     "a rank has sent more than this one takes: counts or types differ between "
                     "ranks");
      return raise(
          comm_, error, function_,
          "rank %d of the communicator has sent another length than this one takes: counts "
          "or types differ between ranks",
          comm_->odd_rank);
    case MPI_ERR_PROC_ABORTED:
      return raise_loss(*comm_, function_);
    default:
      return raise(comm_, error, function_, "a message of the collective failed");
  }
}

}  // namespace vmpi
