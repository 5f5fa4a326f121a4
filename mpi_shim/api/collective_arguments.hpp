// SPDX-License-Identifier: BSD-2-Clause
// What the functions of collectives check before they begin: an argument that one rank can see to be
// wrong is an error there, and nothing has been sent. The big lock is held.
#pragma once

#include "mpi_shim/api/comm_arguments.hpp"
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/plans_between.hpp"

namespace vmpi {

/// Whether a function waits for its collective, or only starts it.
struct Start {
  bool is_all;
  MPI_Request* request;
};
inline constexpr Start kWaits = {false, nullptr};
[[nodiscard]] inline Start starts(MPI_Request* request) noexcept { return {true, request}; }

/// One call's checks: the first that fails raises, and `error()` keeps what that returned; those
/// after it say no without looking.
class CollectiveCall {
 public:
  CollectiveCall(const char* function, MPI_Comm comm, Start start) noexcept;
  ~CollectiveCall();
  CollectiveCall(const CollectiveCall&) = delete;
  CollectiveCall& operator=(const CollectiveCall&) = delete;

  [[nodiscard]] Comm& comm() const noexcept { return *comm_; }
  [[nodiscard]] bool is_good() const noexcept { return is_good_; }
  [[nodiscard]] int error() const noexcept { return error_; }
  /// MPI_ROOT, in an intercommunicator.
  [[nodiscard]] bool is_root(int root) const noexcept {
    return comm_->remote != nullptr ? root == MPI_ROOT : comm_->rank() == root;
  }
  /// Whether this rank is one of those that the root gathers from or scatters to.
  [[nodiscard]] bool is_leaf(int root) const noexcept {
    return comm_->remote == nullptr || root >= 0;
  }
  /// Ranks that a collective's arrays have an element for: those of the communicator, or so many.
  [[nodiscard]] int peers() const noexcept { return slices_ < 0 ? comm_->peers().size() : slices_; }
  void use_slices(std::size_t slices) noexcept { slices_ = static_cast<int>(slices); }
  /// The neighbours of this rank, or not good.
  void neighbours(Neighbours& out) noexcept;

  /// An intercommunicator is no argument of this function.
  void not_between_groups() noexcept;
  void root(int rank) noexcept;
  /// Null: not good.
  Datatype* type(MPI_Datatype handle, const char* argument) noexcept;
  void count(std::int64_t value, const char* argument) noexcept;
  void counts(const int* values, const char* argument) noexcept {
    counts(values, argument, peers());
  }
  void counts(const int* values, const char* argument, int ranks) noexcept;
  void pointer(const void* value, const char* argument) noexcept;
  void not_in_place(const void* buffer, const char* argument) noexcept;
  /// A null buffer is no place for bytes; but MPI_BOTTOM is a null pointer, and its types say where.
  void buffer(const void* at, std::int64_t count, const Datatype* type,
              const char* argument) noexcept;
  /// Such a buffer of each rank together has a size that is a number of 63 bits, so that no sum of
  /// the collective overflows.
  void fits(std::int64_t count, const Datatype* type, const char* argument) noexcept;
  /// Of one rank: the buffers may not be the same one.
  void are_apart(const void* send, const void* receive, std::int64_t bytes) noexcept;
  /// Of each rank: what is sent to it and what comes from it may not begin at the same byte, in two
  /// buffers that may be one where their slices lie apart.
  void are_apart(const Slices& send, const Slices& receive) noexcept;
  Op* operation(MPI_Op handle, const Datatype* type) noexcept;

  /// One buffer.
  Typed typed(const void* at, std::int64_t count, MPI_Datatype handle,
              const char* const (&names)[3]) noexcept;
  Slices alike(const void* at, std::int64_t count, MPI_Datatype handle,
               const char* const (&names)[3]) noexcept;
  Slices elements(const void* at, const int* counts, const int* displacements, MPI_Datatype handle,
                  const char* const (&names)[4]) noexcept;
  /// `room` keeps the datatypes.
  Slices types(const void* at, const int* counts, const int* displacements,
               const MPI_Datatype* handles, Array<Datatype*>& room,
               const char* const (&names)[4]) noexcept;
  Slices types(const void* at, const int* counts, const MPI_Aint* displacements,
               const MPI_Datatype* handles, Array<Datatype*>& room,
               const char* const (&names)[4]) noexcept;

  /// Raises what the collective returned.
  [[nodiscard]] int end(int error) const noexcept;
  /// Does it or starts it; nothing of both when a check has failed.
  [[nodiscard]] int run(Collective which, const Operands& of) noexcept;
  /// Does or starts what `plan(schedule)` makes.
  template <class MakePlan>
  [[nodiscard]] int run(MakePlan plan) noexcept {
    if (!is_good_) return error_;
    Schedule* const schedule = make_schedule(*comm_);
    if (schedule == nullptr) return end(MPI_ERR_NO_MEM);
    plan(*schedule);
    return begin(schedule);
  }

 private:
  [[nodiscard]] int begin(Schedule* schedule) noexcept;
  void fail(int error) noexcept {
    is_good_ = false;
    error_ = error;
  }

  const char* function_;
  Comm* comm_;
  Start start_;
  int slices_ = -1;
  bool is_good_ = true;
  int error_ = MPI_SUCCESS;
};

// Names for messages.
inline constexpr const char* kSend[3] = {"sendbuf", "sendcount", "sendtype"};
inline constexpr const char* kReceive[3] = {"recvbuf", "recvcount", "recvtype"};
inline constexpr const char* kSends[4] = {"sendbuf", "sendcounts", "sdispls", "sendtype"};
inline constexpr const char* kReceives[4] = {"recvbuf", "recvcounts", "rdispls", "recvtype"};

}  // namespace vmpi
