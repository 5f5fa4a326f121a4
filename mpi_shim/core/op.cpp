// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/op.hpp"

#include <climits>

#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/op_kernels.hpp"

namespace vmpi {
namespace {

HandleTable<HandleKind::kOp, Op> table;

constexpr std::uint32_t kFirst = 0x21;
constexpr std::uint32_t kEnd = 0x3e;
Op predefined[kEnd - kFirst];

// Numbers of MPI_REPLACE and MPI_NO_OP: operations of windows, on no datatype elsewhere.
[[nodiscard]] bool is_predefined_number(std::uint32_t number) noexcept {
  return (number >= 0x21 && number <= 0x24) || (number >= 0x28 && number <= 0x2a) ||
         (number >= 0x30 && number <= 0x32) || number == 0x38 || number == 0x39 || number == 0x3c ||
         number == 0x3d;
}

[[nodiscard]] Operation operation_of(std::uint32_t number) noexcept {
  switch (number) {
    case 0x21:
      return Operation::kSum;
    case 0x22:
      return Operation::kMin;
    case 0x23:
      return Operation::kMax;
    case 0x24:
      return Operation::kProduct;
    case 0x28:
      return Operation::kBitAnd;
    case 0x29:
      return Operation::kBitOr;
    case 0x2a:
      return Operation::kBitXor;
    case 0x30:
      return Operation::kAnd;
    case 0x31:
      return Operation::kOr;
    case 0x32:
      return Operation::kXor;
    case 0x38:
      return Operation::kMinLocation;
    case 0x39:
      return Operation::kMaxLocation;
    default:
      return Operation::kNone;
  }
}

[[nodiscard]] Kernel kernel_of(const Op& op, const Datatype& type) noexcept {
  const Basic* const basic = type.is_predefined ? find_basic(type.handle) : nullptr;
  if (basic == nullptr) return nullptr;
  const Operation operation = operation_of(op.handle);
  switch (basic->type_class) {
    case BasicClass::kBytes:
    case BasicClass::kSigned:
    case BasicClass::kUnsigned:
      return find_integer_kernel(operation, *basic);
    case BasicClass::kLogical:
      return find_logical_kernel(operation, *basic);
    case BasicClass::kFloating:
      return find_floating_kernel(operation, *basic);
    case BasicClass::kComplex:
      return find_complex_kernel(operation, *basic);
    case BasicClass::kPair:
      return find_pair_kernel(operation, *basic);
    case BasicClass::kCharacter:
      break;
  }
  return nullptr;
}

void call_program(const Op& op, const Datatype& type, std::int64_t count, const void* in,
                  void* inout) noexcept {
  MPI_Datatype handle = handle_of(type);
  // Its parameters are not const, and it must not write to `in`.
  void* const from = const_cast<void*>(in);
  if (op.function_c != nullptr) {
    MPI_Count length = count;
    return op.function_c(from, inout, &length, &handle);
  }
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t left = count - done;
    int length = left > INT_MAX ? INT_MAX : static_cast<int>(left);
    const auto skipped = static_cast<std::uintptr_t>(done * type.extent);
    op.function(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(from) + skipped),
                reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(inout) + skipped), &length,
                &handle);
    done += left > INT_MAX ? INT_MAX : left;
  }
}

}  // namespace

bool make_predefined_ops() noexcept {
  vectors = widest_vectors();
  for (std::uint32_t number = kFirst; number < kEnd; ++number) {
    if (!is_predefined_number(number)) continue;
    Op& op = predefined[number - kFirst];
    op.handle = number;
    op.is_predefined = true;
    op.is_commutative = true;
  }
  return true;
}

Op* new_op() noexcept { return table.make(); }

Op* find_op(MPI_Op handle) noexcept {
  const std::uint32_t number = number_of(handle);
  if (is_predefined_number(number)) {
    Op& op = predefined[number - kFirst];
    if (op.handle == 0) (void)make_predefined_ops();
    return &op;
  }
  Op* const op = table.find(number);
  return op != nullptr && !op->is_freed ? op : nullptr;
}

void retain(Op& op) noexcept {
  if (!op.is_predefined) ++op.references;
}

void release(Op& op) noexcept {
  if (!op.is_predefined && --op.references == 0) table.release(op);
}

void drop_ops() noexcept { table.clear(); }

const char* name_of(const Op& op) noexcept {
  switch (op.handle) {
    case 0x21:
      return "MPI_SUM";
    case 0x22:
      return "MPI_MIN";
    case 0x23:
      return "MPI_MAX";
    case 0x24:
      return "MPI_PROD";
    case 0x28:
      return "MPI_BAND";
    case 0x29:
      return "MPI_BOR";
    case 0x2a:
      return "MPI_BXOR";
    case 0x30:
      return "MPI_LAND";
    case 0x31:
      return "MPI_LOR";
    case 0x32:
      return "MPI_LXOR";
    case 0x38:
      return "MPI_MINLOC";
    case 0x39:
      return "MPI_MAXLOC";
    case 0x3c:
      return "MPI_REPLACE";
    case 0x3d:
      return "MPI_NO_OP";
    default:
      return "the program's operation";
  }
}

bool is_defined_on(const Op& op, const Datatype& type) noexcept {
  return !op.is_predefined || kernel_of(op, type) != nullptr;
}

Combine* combine_of(const Op& op, const Datatype& type) noexcept {
  return op.is_predefined ? kernel_of(op, type) : nullptr;
}

void reduce(const Op& op, const Datatype& type, std::int64_t count, const void* in,
            void* inout) noexcept {
  if (count <= 0) return;
  if (op.is_predefined) return kernel_of(op, type)(in, inout, count);
  big_lock.unlock();
  call_program(op, type, count, in, inout);
  big_lock.lock();
}

}  // namespace vmpi
