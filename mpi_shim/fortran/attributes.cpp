// SPDX-License-Identifier: BSD-2-Clause
// Attributes: values of INTEGER(KIND=MPI_ADDRESS_KIND), of INTEGER in the functions of MPI-1, and
// functions of Fortran that copy and delete them. The library calls one of ours, which finds the
// program's under the number of the keyval.
#include "mpi_shim/core/attributes.hpp"

#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/fortran/entry.hpp"

using namespace vmpi::fortran;

// Procedures that stand for constants of C.
#define VMPI_NULL_COPY(name, integer)                                                             \
  VMPI_FORTRAN(name, (const MPI_Fint*, const MPI_Fint*, const integer*, const integer*, integer*, \
                      MPI_Fint* flag, MPI_Fint* ierror)) {                                        \
    *flag = 0;                                                                                    \
    *ierror = MPI_SUCCESS;                                                                        \
  }
#define VMPI_DUP(name, integer)                                                                  \
  VMPI_FORTRAN(name, (const MPI_Fint*, const MPI_Fint*, const integer*, const integer* value_in, \
                      integer* value_out, MPI_Fint* flag, MPI_Fint* ierror)) {                   \
    *value_out = *value_in;                                                                      \
    *flag = 1;                                                                                   \
    *ierror = MPI_SUCCESS;                                                                       \
  }
#define VMPI_NULL_DELETE(name, integer)                                                 \
  VMPI_FORTRAN(name, (const MPI_Fint*, const MPI_Fint*, const integer*, const integer*, \
                      MPI_Fint* ierror)) {                                              \
    *ierror = MPI_SUCCESS;                                                              \
  }

VMPI_NULL_COPY(mpi_null_copy_fn, MPI_Fint)
VMPI_NULL_COPY(mpi_comm_null_copy_fn, MPI_Aint)
VMPI_NULL_COPY(mpi_type_null_copy_fn, MPI_Aint)
VMPI_NULL_COPY(mpi_win_null_copy_fn, MPI_Aint)
VMPI_DUP(mpi_dup_fn, MPI_Fint)
VMPI_DUP(mpi_comm_dup_fn, MPI_Aint)
VMPI_DUP(mpi_type_dup_fn, MPI_Aint)
VMPI_DUP(mpi_win_dup_fn, MPI_Aint)
VMPI_NULL_DELETE(mpi_null_delete_fn, MPI_Fint)
VMPI_NULL_DELETE(mpi_comm_null_delete_fn, MPI_Aint)
VMPI_NULL_DELETE(mpi_type_null_delete_fn, MPI_Aint)
VMPI_NULL_DELETE(mpi_win_null_delete_fn, MPI_Aint)

namespace {

using Procedure = void();
// Integer: MPI_Aint, or MPI_Fint for the functions of MPI-1.
template <class Integer>
using CopyProcedure = void(MPI_Fint* object, MPI_Fint* keyval, Integer* extra_state,
                           Integer* value_in, Integer* value_out, MPI_Fint* flag, MPI_Fint* ierror);
template <class Integer>
using DeleteProcedure = void(MPI_Fint* object, MPI_Fint* keyval, Integer* value,
                             Integer* extra_state, MPI_Fint* ierror);

template <class... Arguments>
[[nodiscard]] Procedure* procedure(void (*function)(Arguments...)) noexcept {
  return reinterpret_cast<Procedure*>(function);
}
[[nodiscard]] void* pointer_of(MPI_Aint value) noexcept { return reinterpret_cast<void*>(value); }
template <class Integer>
[[nodiscard]] Integer integer_of(const void* value) noexcept {
  return static_cast<Integer>(reinterpret_cast<std::intptr_t>(value));
}

template <class Handle, class Integer>
int copy(Handle object, int keyval, void* extra_state, void* value_in, void* value_out, int* flag) {
  auto* const procedure =
      reinterpret_cast<CopyProcedure<Integer>*>(vmpi::foreign_functions_of(keyval).copy);
  MPI_Fint number = number_of_handle(object);
  auto state = integer_of<Integer>(extra_state);
  auto in = integer_of<Integer>(value_in);
  Integer out = 0;
  MPI_Fint error = MPI_SUCCESS;
  MPI_Fint is_copied = 0;
  procedure(&number, &keyval, &state, &in, &out, &is_copied, &error);
  *flag = is_copied;
  if (is_copied != 0) *static_cast<void**>(value_out) = pointer_of(out);
  return error;
}

template <class Handle, class Integer>
int remove(Handle object, int keyval, void* value, void* extra_state) {
  auto* const procedure =
      reinterpret_cast<DeleteProcedure<Integer>*>(vmpi::foreign_functions_of(keyval).remove);
  MPI_Fint number = number_of_handle(object);
  auto state = integer_of<Integer>(extra_state);
  auto kept = integer_of<Integer>(value);
  MPI_Fint error = MPI_SUCCESS;
  procedure(&number, &keyval, &kept, &state, &error);
  return error;
}

/// What C's mpi.h has for the procedures that stand for constants, else ours.
template <class Function>
[[nodiscard]] Function* copy_function(Procedure* given, Procedure* null_copy, Procedure* dup,
                                      Function* ours) noexcept {
  if (given == null_copy) return nullptr;
  return given == dup ? reinterpret_cast<Function*>(1) : ours;
}

template <class Handle, class Integer, class Copy, class Delete>
void create(int (*function)(Copy*, Delete*, int*, void*), Procedure* copy_fn, Procedure* delete_fn,
            Procedure* null_copy, Procedure* dup, Procedure* null_delete, MPI_Fint* keyval,
            Integer extra_state, MPI_Fint* ierror) noexcept {
  int made = MPI_KEYVAL_INVALID;
  *ierror = function(copy_function<Copy>(copy_fn, null_copy, dup, copy<Handle, Integer>),
                     delete_fn == null_delete ? nullptr : remove<Handle, Integer>, &made,
                     pointer_of(extra_state));
  if (*ierror != MPI_SUCCESS) return;
  vmpi::set_foreign_functions(made, {copy_fn, delete_fn});
  *keyval = made;
}

/// The value of an attribute that the standard defines is a number here, for C a pointer to it.
[[nodiscard]] MPI_Aint value_of(int keyval, const void* value) noexcept {
  switch (keyval) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL:
      return *static_cast<const int*>(value);
    case MPI_WIN_SIZE:
      return *static_cast<const MPI_Aint*>(value);
    default:
      return integer_of<MPI_Aint>(value);
  }
}

template <class Handle, class Integer>
void get(int (*function)(Handle, int, void*, int*), MPI_Fint object, MPI_Fint keyval,
         Integer* value, MPI_Fint* flag, MPI_Fint* ierror) noexcept {
  void* found = nullptr;
  int is_set = 0;
  *ierror = function(handle_of<Handle>(object), keyval, static_cast<void*>(&found), &is_set);
  if (*ierror != MPI_SUCCESS) return;
  *flag = is_set;
  if (is_set != 0) *value = static_cast<Integer>(value_of(keyval, found));
}

}  // namespace

#define VMPI_ATTRIBUTES(chapter, lower, handle)                                                   \
  VMPI_FORTRAN(mpi_##lower##_create_keyval,                                                       \
               (Procedure * copy_fn, Procedure * delete_fn, MPI_Fint * keyval,                    \
                const MPI_Aint* extra_state, MPI_Fint* ierror)) {                                 \
    create<handle, MPI_Aint>(                                                                     \
        PMPI_##chapter##_create_keyval, copy_fn, delete_fn,                                       \
        procedure(pmpi_##lower##_null_copy_fn_), procedure(pmpi_##lower##_dup_fn_),               \
        procedure(pmpi_##lower##_null_delete_fn_), keyval, *extra_state, ierror);                 \
  }                                                                                               \
  VMPI_FORTRAN(mpi_##lower##_set_attr, (From<handle> object, const MPI_Fint* keyval,              \
                                        const MPI_Aint* value, MPI_Fint* ierror)) {               \
    *ierror = PMPI_##chapter##_set_attr(handle_of<handle>(*object), *keyval, pointer_of(*value)); \
  }                                                                                               \
  VMPI_FORTRAN(mpi_##lower##_get_attr, (From<handle> object, const MPI_Fint* keyval,              \
                                        MPI_Aint* value, MPI_Fint* flag, MPI_Fint* ierror)) {     \
    get(PMPI_##chapter##_get_attr, *object, *keyval, value, flag, ierror);                        \
  }

VMPI_ATTRIBUTES(Comm, comm, MPI_Comm)
VMPI_ATTRIBUTES(Type, type, MPI_Datatype)
VMPI_ATTRIBUTES(Win, win, MPI_Win)

// MPI-1.
VMPI_FORTRAN(mpi_keyval_create, (Procedure * copy_fn, Procedure* delete_fn, MPI_Fint* keyval,
                                 const MPI_Fint* extra_state, MPI_Fint* ierror)) {
  create<MPI_Comm, MPI_Fint>(PMPI_Keyval_create, copy_fn, delete_fn, procedure(pmpi_null_copy_fn_),
                             procedure(pmpi_dup_fn_), procedure(pmpi_null_delete_fn_), keyval,
                             *extra_state, ierror);
}
VMPI_FORTRAN(mpi_attr_put, (From<MPI_Comm> comm, const MPI_Fint* keyval, const MPI_Fint* value,
                            MPI_Fint* ierror)) {
  *ierror = PMPI_Attr_put(handle_of<MPI_Comm>(*comm), *keyval, pointer_of(*value));
}
VMPI_FORTRAN(mpi_attr_get, (From<MPI_Comm> comm, const MPI_Fint* keyval, MPI_Fint* value,
                            MPI_Fint* flag, MPI_Fint* ierror)) {
  get(PMPI_Attr_get, *comm, *keyval, value, flag, ierror);
}
