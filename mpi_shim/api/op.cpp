// SPDX-License-Identifier: BSD-2-Clause
// Operations of reductions, and the reduction of one process.
#include "mpi_shim/core/op.hpp"

#include "mpi_shim/api/datatype_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

int refuse_op(const char* function, MPI_Op handle) noexcept {
  if (handle == MPI_OP_NULL) return raise(nullptr, MPI_ERR_OP, function, "op is MPI_OP_NULL");
  return raise(nullptr, MPI_ERR_OP, function, "op is %p, which is no operation or was freed",
               static_cast<void*>(handle));
}

int create(const char* function, MPI_User_function* user, MPI_User_function_c* user_c, int commutes,
           MPI_Op* out) noexcept {
  BigGuard guard;
  if (user == nullptr && user_c == nullptr)
    return raise(nullptr, MPI_ERR_ARG, function, "user_fn is a null pointer");
  if (const int error = check_not_null(function, "op", out)) return error;
  Op* const op = new_op();
  if (op == nullptr)
    return raise(nullptr, MPI_ERR_NO_MEM, function, "there is no memory for the operation");
  op->function = user;
  op->function_c = user_c;
  op->is_commutative = commutes != 0;
  *out = reinterpret_cast<MPI_Op>(static_cast<std::uintptr_t>(op->handle));
  return MPI_SUCCESS;
}

int reduce_local(const char* function, const void* in, void* inout, std::int64_t count,
                 MPI_Datatype type_handle, MPI_Op op_handle) noexcept {
  BigGuard guard;
  Datatype* type = nullptr;
  if (const int error = check_not_negative(function, MPI_ERR_COUNT, "count", count)) return error;
  if (const int error = check_type(nullptr, function, "datatype", type_handle, type)) return error;
  Op* const op = find_op(op_handle);
  if (op == nullptr) return refuse_op(function, op_handle);
  if (!is_defined_on(*op, *type))
    return raise(nullptr, MPI_ERR_OP, function, "%s is not defined on %s", name_of(*op),
                 name_of(*type));
  if (count == 0) return MPI_SUCCESS;
  if (in == MPI_IN_PLACE || inout == MPI_IN_PLACE)
    return raise(nullptr, MPI_ERR_BUFFER, function, "a buffer is MPI_IN_PLACE");
  if (op->is_predefined && (in == nullptr || inout == nullptr))
    return raise(nullptr, MPI_ERR_BUFFER, function, "%s is a null pointer",
                 in == nullptr ? "inbuf" : "inoutbuf");
  if (in == inout && type->size != 0 && in != MPI_BOTTOM)
    return raise(nullptr, MPI_ERR_BUFFER, function, "inbuf and inoutbuf are one buffer");
  retain(*op);
  retain(*type);
  reduce(*op, *type, count, in, inout);
  release(*type);
  release(*op);
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Op_create, (MPI_User_function * user_fn, int commute, MPI_Op* op)) {
  return create("MPI_Op_create", user_fn, nullptr, commute, op);
}
VMPI_ENTRY(int, MPI_Op_create_c, (MPI_User_function_c * user_fn, int commute, MPI_Op* op)) {
  return create("MPI_Op_create_c", nullptr, user_fn, commute, op);
}

VMPI_ENTRY(int, MPI_Op_free, (MPI_Op * op)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Op_free";
  if (const int error = check_not_null(kName, "op", op)) return error;
  Op* const found = find_op(*op);
  if (found == nullptr) return refuse_op(kName, *op);
  if (found->is_predefined)
    return raise(nullptr, MPI_ERR_OP, kName, "op is %s, which is predefined", name_of(*found));
  found->is_freed = true;
  release(*found);
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Op_commutative, (MPI_Op op, int* commute)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Op_commutative";
  const Op* const found = find_op(op);
  if (found == nullptr) return refuse_op(kName, op);
  if (const int error = check_not_null(kName, "commute", commute)) return error;
  *commute = found->is_commutative ? 1 : 0;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Reduce_local,
           (const void* inbuf, void* inoutbuf, int count, MPI_Datatype datatype, MPI_Op op)) {
  return reduce_local("MPI_Reduce_local", inbuf, inoutbuf, count, datatype, op);
}
VMPI_ENTRY(int, MPI_Reduce_local_c,
           (const void* inbuf, void* inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op)) {
  return reduce_local("MPI_Reduce_local_c", inbuf, inoutbuf, count, datatype, op);
}
