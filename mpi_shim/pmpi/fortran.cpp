// SPDX-License-Identifier: BSD-2-Clause
// The functions of Fortran. Those of MPICH call the ones of C, and come there, but for two of the
// module mpi_f08; those of Open MPI call past them, in all three bindings (`ompi_bcast_f` is what the
// module mpi_f08 calls). A rank in Fortran may meet one in C in one call: they are taken alike, or
// hang.
//
// As gfortran, flang and ifort name them, with INTEGER of 4 bytes.
#include "mpi_shim/pmpi/communicator.hpp"
#include "mpi_shim/pmpi/entry.hpp"
#include "mpi_shim/pmpi/taken.hpp"

namespace vmpi::pmpi {
namespace {

/// What Fortran has of Open MPI, found at the first call. The symbols are those of the program, and
/// do not change while it runs.
struct Fortran {
  Handle (*comm_f2c)(int);
  Handle (*type_f2c)(int);
  Handle (*op_f2c)(int);
  const void* in_place;
  const void* bottom;
};

template <class Function>
void find(Function& function, const char* name) noexcept {
  function = reinterpret_cast<Function>(find_symbol(name));
}

[[gnu::cold, gnu::noinline]] Fortran find_fortran() noexcept {
  Fortran found = {};
  if (library().family != Family::kOpenMpi) return found;
  find(found.comm_f2c, "PMPI_Comm_f2c");
  find(found.type_f2c, "PMPI_Type_f2c");
  find(found.op_f2c, "PMPI_Op_f2c");
  found.in_place = find_symbol("mpi_fortran_in_place_");
  found.bottom = find_symbol("mpi_fortran_bottom_");
  return found;
}

/// Null: calls are passed on. (Two threads that come together find the same.)
[[nodiscard]] const Fortran* fortran() noexcept {
  static constinit Fortran known = {};
  static constinit std::atomic<int> is_known{0};
  // Pairs with the store below.
  if (is_known.load(std::memory_order_acquire) == 0) [[unlikely]] {
    static constinit std::atomic_flag is_looking = ATOMIC_FLAG_INIT;
    const Fortran found = find_fortran();
    if (is_looking.test_and_set(std::memory_order_acquire)) {
      while (is_known.load(std::memory_order_acquire) == 0) continue;
    } else {
      known = found;
      is_known.store(1, std::memory_order_release);
    }
  }
  const bool is_whole = known.comm_f2c != nullptr && known.type_f2c != nullptr &&
                        known.op_f2c != nullptr && known.in_place != nullptr;
  return is_whole ? &known : nullptr;
}

[[nodiscard]] void* buffer_of(const Fortran& known, void* buffer) noexcept {
  if (buffer == known.in_place) return const_cast<void*>(library().in_place);
  return buffer == known.bottom ? nullptr : buffer;
}

void answer(int* error, int result) noexcept {
  if (error != nullptr) *error = result;
}

/// A function of the MPI's own, which is looked for once.
struct PassedOn {
  const char* name;
  std::atomic<void*> function{nullptr};  ///< alike whoever finds it
};

template <class... Arguments>
void pass_on_fortran(PassedOn& own, int* error, Arguments*... arguments) noexcept {
  void* found = own.function.load(std::memory_order_relaxed);
  if (found == nullptr) [[unlikely]] {
    found = find_symbol(own.name);
    own.function.store(found, std::memory_order_relaxed);
  }
  const auto function = reinterpret_cast<void (*)(Arguments * ..., int*)>(found);
  if (function != nullptr)
    function(arguments..., error);
  else
    answer(error, is_missing(own.name));
}

}  // namespace
}  // namespace vmpi::pmpi

using namespace vmpi::pmpi;

VERBATIM_PMPI_ENTRY void mpi_barrier_(int* comm, int* error) {
  int result = kSuccess;
  const Fortran* const known = fortran();
  if (known != nullptr && take_barrier(known->comm_f2c(*comm), result))
    return answer(error, result);
  static constinit PassedOn own = {"pmpi_barrier_"};
  pass_on_fortran(own, error, comm);
}

VERBATIM_PMPI_ENTRY void mpi_bcast_(void* buffer, int* count, int* type, int* root, int* comm,
                                    int* error) {
  int result = kSuccess;
  const Fortran* const known = fortran();
  if (known != nullptr && take_bcast(buffer_of(*known, buffer), *count, known->type_f2c(*type),
                                     *root, known->comm_f2c(*comm), result))
    return answer(error, result);
  static constinit PassedOn own = {"pmpi_bcast_"};
  pass_on_fortran(own, error, buffer, count, type, root, comm);
}

VERBATIM_PMPI_ENTRY void mpi_reduce_(void* send, void* receive, int* count, int* type, int* op,
                                     int* root, int* comm, int* error) {
  int result = kSuccess;
  const Fortran* const known = fortran();
  if (known != nullptr && take_reduce(buffer_of(*known, send), buffer_of(*known, receive), *count,
                                      known->type_f2c(*type), known->op_f2c(*op), *root,
                                      known->comm_f2c(*comm), result))
    return answer(error, result);
  static constinit PassedOn own = {"pmpi_reduce_"};
  pass_on_fortran(own, error, send, receive, count, type, op, root, comm);
}

VERBATIM_PMPI_ENTRY void mpi_allreduce_(void* send, void* receive, int* count, int* type, int* op,
                                        int* comm, int* error) {
  int result = kSuccess;
  const Fortran* const known = fortran();
  if (known != nullptr &&
      take_allreduce(buffer_of(*known, send), buffer_of(*known, receive), *count,
                     known->type_f2c(*type), known->op_f2c(*op), known->comm_f2c(*comm), result))
    return answer(error, result);
  static constinit PassedOn own = {"pmpi_allreduce_"};
  pass_on_fortran(own, error, send, receive, count, type, op, comm);
}

VERBATIM_PMPI_ENTRY void mpi_allgather_(void* send, int* send_count, int* send_type, void* receive,
                                        int* receive_count, int* receive_type, int* comm,
                                        int* error) {
  int result = kSuccess;
  const Fortran* const known = fortran();
  if (known != nullptr &&
      take_allgather(buffer_of(*known, send), *send_count, known->type_f2c(*send_type),
                     buffer_of(*known, receive), *receive_count, known->type_f2c(*receive_type),
                     known->comm_f2c(*comm), result))
    return answer(error, result);
  static constinit PassedOn own = {"pmpi_allgather_"};
  pass_on_fortran(own, error, send, send_count, send_type, receive, receive_count, receive_type,
                  comm);
}

VERBATIM_PMPI_ENTRY void mpi_alltoall_(void* send, int* send_count, int* send_type, void* receive,
                                       int* receive_count, int* receive_type, int* comm,
                                       int* error) {
  int result = kSuccess;
  const Fortran* const known = fortran();
  if (known != nullptr &&
      take_alltoall(buffer_of(*known, send), *send_count, known->type_f2c(*send_type),
                    buffer_of(*known, receive), *receive_count, known->type_f2c(*receive_type),
                    known->comm_f2c(*comm), result))
    return answer(error, result);
  static constinit PassedOn own = {"pmpi_alltoall_"};
  pass_on_fortran(own, error, send, send_count, send_type, receive, receive_count, receive_type,
                  comm);
}

VERBATIM_PMPI_ENTRY void mpi_finalize_(int* error) {
  if (fortran() != nullptr) end_communicators();
  static constinit PassedOn own = {"pmpi_finalize_"};
  pass_on_fortran(own, error);
}

// Of the module mpi_f08, those that have no buffer: in MPICH they call past the functions of C, where
// a handle is the number that Fortran has.

VERBATIM_PMPI_ENTRY void mpi_barrier_f08_(int* comm, int* error) {
  const bool is_mpich = library().family == Family::kMpich;
  int result = kSuccess;
  if (is_mpich && take_barrier(static_cast<unsigned>(*comm), result)) return answer(error, result);
  static constinit PassedOn of_mpich = {"pmpir_barrier_f08_"};
  static constinit PassedOn of_others = {"pmpi_barrier_f08_"};
  pass_on_fortran(is_mpich ? of_mpich : of_others, error, comm);
}

VERBATIM_PMPI_ENTRY void mpi_finalize_f08_(int* error) {
  const bool is_mpich = library().family == Family::kMpich;
  if (is_mpich) end_communicators();
  static constinit PassedOn of_mpich = {"pmpir_finalize_f08_"};
  static constinit PassedOn of_others = {"pmpi_finalize_f08_"};
  pass_on_fortran(is_mpich ? of_mpich : of_others, error);
}

// In Open MPI, what the functions of that module call.
#define VERBATIM_PMPI_ALSO(name) \
  VERBATIM_PMPI_ENTRY [[gnu::alias("mpi_" #name "_")]] decltype(mpi_##name##_) ompi_##name##_f
VERBATIM_PMPI_ALSO(barrier);
VERBATIM_PMPI_ALSO(bcast);
VERBATIM_PMPI_ALSO(reduce);
VERBATIM_PMPI_ALSO(allreduce);
VERBATIM_PMPI_ALSO(allgather);
VERBATIM_PMPI_ALSO(alltoall);
VERBATIM_PMPI_ALSO(finalize);
