// SPDX-License-Identifier: BSD-2-Clause
#include <verbatim/coll.h>

#include "mpi_shim/pmpi/call.hpp"
#include "mpi_shim/pmpi/handles.hpp"
#include "mpi_shim/pmpi/taken.hpp"

namespace vmpi::pmpi {
namespace {

struct Reduction {
  vbt_coll_type type;
  vbt_coll_op operation;
  std::uint64_t bytes;
};

/// Whether it is taken; counted if it is not.
[[nodiscard]] bool find_reduction(Communicator& communicator, Collective collective, Count count,
                                  Handle type, Handle operation, Reduction& found) noexcept {
  const vbt_coll_op known_operation = find_operation(handle_of(operation));
  if (known_operation == 0) return leave(communicator, collective, Reason::kOperation);
  const PredefinedType* const known = find_type(handle_of(type));
  if (known == nullptr || (known->operations >> known_operation & 1) == 0)
    return leave(communicator, collective, Reason::kType);
  if (count < 0) return leave(communicator, collective, Reason::kArguments);
  found = {known->type, known_operation, bytes_of(count, known->bytes)};
  return is_taken(communicator, collective, found.bytes);
}

/// What is sent, as the engine takes it. One buffer for both, which MPI does not allow and programs
/// have, is what MPI_IN_PLACE says.
[[nodiscard]] const void* sent(const void* send, const void* receive) noexcept {
  return send == library().in_place || send == receive ? VBT_COLL_IN_PLACE : send;
}

}  // namespace

bool take_reduce(const void* send, void* receive, Count count, Handle type, Handle operation,
                 int root, Handle communicator, int& result) noexcept {
  constexpr Collective kThis = Collective::kReduce;
  Communicator* const comm = find_communicator(communicator);
  if (comm == nullptr) return false;
  Reduction reduction;
  if (!find_reduction(*comm, kThis, count, type, operation, reduction)) return false;
  const bool is_root = root == comm->rank;
  const bool has_buffers =
      count == 0 ||
      (send != nullptr && (is_root ? receive != nullptr && receive != library().in_place
                                   : send != library().in_place));
  if (root < 0 || root >= comm->size || !has_buffers)
    return leave(*comm, kThis, Reason::kArguments);
  const int error =
      vbt_coll_reduce(comm->team, is_root ? sent(send, receive) : send, is_root ? receive : nullptr,
                      static_cast<std::size_t>(count), reduction.type, reduction.operation,
                      static_cast<std::uint32_t>(root));
  return end(*comm, kThis, reduction.bytes, error, result);
}

bool take_allreduce(const void* send, void* receive, Count count, Handle type, Handle operation,
                    Handle communicator, int& result) noexcept {
  constexpr Collective kThis = Collective::kAllreduce;
  Communicator* const comm = find_communicator(communicator);
  if (comm == nullptr) return false;
  Reduction reduction;
  if (!find_reduction(*comm, kThis, count, type, operation, reduction)) return false;
  if (count != 0 && (send == nullptr || receive == nullptr || receive == library().in_place))
    return leave(*comm, kThis, Reason::kArguments);
  const int error =
      vbt_coll_allreduce(comm->team, sent(send, receive), receive, static_cast<std::size_t>(count),
                         reduction.type, reduction.operation);
  return end(*comm, kThis, reduction.bytes, error, result);
}

}  // namespace vmpi::pmpi
