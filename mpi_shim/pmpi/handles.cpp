// SPDX-License-Identifier: BSD-2-Clause
// In Open MPI a predefined handle is the address of an object with a name, in MPICH a number that
// says the size in its second byte. Which types a reduction is done on is the engine's to say; those
// of other languages that have no kin there (LOGICAL, REAL*16) are moved and not reduced, as are
// characters, which MPI does not reduce.
#include "mpi_shim/pmpi/handles.hpp"

#include <cstddef>

namespace vmpi::pmpi {
namespace {

enum class Kind : std::uint8_t { kMoved, kBytes, kSigned, kUnsigned, kFloating, kComplex, kBool };

struct TypeName {
  const char* open_mpi;
  std::uint32_t mpich;
  Kind kind;
};

constexpr TypeName kTypes[] = {
    {"ompi_mpi_byte", 0x4c00010d, Kind::kBytes},
    {"ompi_mpi_packed", 0x4c00010f, Kind::kMoved},
    {"ompi_mpi_char", 0x4c000101, Kind::kMoved},
    {"ompi_mpi_wchar", 0x4c00040e, Kind::kMoved},
    {"ompi_mpi_signed_char", 0x4c000118, Kind::kSigned},
    {"ompi_mpi_unsigned_char", 0x4c000102, Kind::kUnsigned},
    {"ompi_mpi_short", 0x4c000203, Kind::kSigned},
    {"ompi_mpi_unsigned_short", 0x4c000204, Kind::kUnsigned},
    {"ompi_mpi_int", 0x4c000405, Kind::kSigned},
    {"ompi_mpi_unsigned", 0x4c000406, Kind::kUnsigned},
    {"ompi_mpi_long", 0x4c000807, Kind::kSigned},
    {"ompi_mpi_unsigned_long", 0x4c000808, Kind::kUnsigned},
    {"ompi_mpi_long_long_int", 0x4c000809, Kind::kSigned},
    {"ompi_mpi_unsigned_long_long", 0x4c000819, Kind::kUnsigned},
    {"ompi_mpi_int8_t", 0x4c000137, Kind::kSigned},
    {"ompi_mpi_int16_t", 0x4c000238, Kind::kSigned},
    {"ompi_mpi_int32_t", 0x4c000439, Kind::kSigned},
    {"ompi_mpi_int64_t", 0x4c00083a, Kind::kSigned},
    {"ompi_mpi_uint8_t", 0x4c00013b, Kind::kUnsigned},
    {"ompi_mpi_uint16_t", 0x4c00023c, Kind::kUnsigned},
    {"ompi_mpi_uint32_t", 0x4c00043d, Kind::kUnsigned},
    {"ompi_mpi_uint64_t", 0x4c00083e, Kind::kUnsigned},
    {"ompi_mpi_aint", 0x4c000843, Kind::kSigned},
    {"ompi_mpi_offset", 0x4c000844, Kind::kSigned},
    {"ompi_mpi_count", 0x4c000845, Kind::kSigned},
    {"ompi_mpi_float", 0x4c00040a, Kind::kFloating},
    {"ompi_mpi_double", 0x4c00080b, Kind::kFloating},
    {"ompi_mpi_long_double", 0x4c00100c, Kind::kFloating},
    {"ompi_mpi_c_float_complex", 0x4c000840, Kind::kComplex},
    {"ompi_mpi_c_double_complex", 0x4c001041, Kind::kComplex},
    {"ompi_mpi_c_long_double_complex", 0x4c002042, Kind::kComplex},
    {"ompi_mpi_cxx_cplex", 0x4c000834, Kind::kComplex},
    {"ompi_mpi_cxx_dblcplex", 0x4c001035, Kind::kComplex},
    {"ompi_mpi_cxx_ldblcplex", 0x4c002036, Kind::kComplex},
    {"ompi_mpi_c_bool", 0x4c00013f, Kind::kBool},
    {"ompi_mpi_cxx_bool", 0x4c000133, Kind::kBool},
    {"ompi_mpi_2int", 0x4c000816, Kind::kMoved},
    // Of Fortran.
    {"ompi_mpi_character", 0x4c00011a, Kind::kMoved},
    {"ompi_mpi_logical", 0x4c00041d, Kind::kMoved},
    {"ompi_mpi_integer", 0x4c00041b, Kind::kSigned},
    {"ompi_mpi_integer1", 0x4c00012d, Kind::kSigned},
    {"ompi_mpi_integer2", 0x4c00022f, Kind::kSigned},
    {"ompi_mpi_integer4", 0x4c000430, Kind::kSigned},
    {"ompi_mpi_integer8", 0x4c000831, Kind::kSigned},
    {"ompi_mpi_real", 0x4c00041c, Kind::kFloating},
    {"ompi_mpi_real4", 0x4c000427, Kind::kFloating},
    {"ompi_mpi_real8", 0x4c000829, Kind::kFloating},
    {"ompi_mpi_real16", 0x4c00102b, Kind::kMoved},
    {"ompi_mpi_dblprec", 0x4c00081f, Kind::kFloating},
    {"ompi_mpi_cplex", 0x4c00081e, Kind::kComplex},
    {"ompi_mpi_dblcplex", 0x4c001022, Kind::kComplex},
    {"ompi_mpi_complex8", 0x4c000828, Kind::kComplex},
    {"ompi_mpi_complex16", 0x4c00102a, Kind::kComplex},
    {"ompi_mpi_2integer", 0x4c000820, Kind::kMoved},
    {"ompi_mpi_2real", 0x4c000821, Kind::kMoved},
    {"ompi_mpi_2dblprec", 0x4c001023, Kind::kMoved},
};
constexpr std::size_t kTypeCount = sizeof kTypes / sizeof kTypes[0];
constexpr TypeName kUint64 = {"ompi_mpi_uint64_t", 0x4c00083e, Kind::kUnsigned};

struct OperationName {
  const char* open_mpi;
  std::uint32_t mpich;
  vbt_coll_op operation;
};

constexpr OperationName kSum = {"ompi_mpi_op_sum", 0x58000003, VBT_COLL_SUM};
constexpr OperationName kMax = {"ompi_mpi_op_max", 0x58000001, VBT_COLL_MAX};
constexpr OperationName kOperations[] = {
    kSum,
    kMax,
    {"ompi_mpi_op_min", 0x58000002, VBT_COLL_MIN},
    {"ompi_mpi_op_prod", 0x58000004, VBT_COLL_PROD},
    {"ompi_mpi_op_land", 0x58000005, VBT_COLL_LAND},
    {"ompi_mpi_op_band", 0x58000006, VBT_COLL_BAND},
    {"ompi_mpi_op_lor", 0x58000007, VBT_COLL_LOR},
    {"ompi_mpi_op_bor", 0x58000008, VBT_COLL_BOR},
    {"ompi_mpi_op_lxor", 0x58000009, VBT_COLL_LXOR},
    {"ompi_mpi_op_bxor", 0x5800000a, VBT_COLL_BXOR},
};

/// From handles to numbers above 0, by linear probing. At least half of it stays empty.
template <unsigned kBits>
class HandleTable {
 public:
  void put(Handle key, std::uint8_t value) noexcept {
    Entry& entry = entries_[place_of(key)];
    entry = {key, value};
  }
  /// 0: it is not there.
  [[nodiscard]] std::uint8_t find(Handle key) const noexcept {
    return entries_[place_of(key)].value;
  }

 private:
  struct Entry {
    Handle key;
    std::uint8_t value;
  };
  [[nodiscard]] std::size_t place_of(Handle key) const noexcept {
    std::size_t at = static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15u >> (64 - kBits);
    while (entries_[at].value != 0 && entries_[at].key != key) at = (at + 1) % kEntries;
    return at;
  }
  static constexpr std::size_t kEntries = std::size_t{1} << kBits;
  Entry entries_[kEntries] = {};
};

constinit HandleTable<8> types;
constinit HandleTable<6> operations;
static_assert(kTypeCount <= 128);
constinit PredefinedType rows[kTypeCount + 1] = {};

template <class Name>
[[nodiscard]] Handle handle_by(const Library& library, const Name& name) noexcept {
  if (library.family == Family::kMpich) return name.mpich;
  return reinterpret_cast<Handle>(find_symbol(name.open_mpi));
}

/// 0: there are none of that size.
[[nodiscard]] vbt_coll_type type_of(Kind kind, std::uint32_t bytes) noexcept {
  struct Of {
    Kind kind;
    vbt_coll_type type;
  };
  static constexpr Of kAll[] = {
      {Kind::kBytes, VBT_COLL_BYTE},
      {Kind::kSigned, VBT_COLL_INT8},
      {Kind::kSigned, VBT_COLL_INT16},
      {Kind::kSigned, VBT_COLL_INT32},
      {Kind::kSigned, VBT_COLL_INT64},
      {Kind::kUnsigned, VBT_COLL_UINT8},
      {Kind::kUnsigned, VBT_COLL_UINT16},
      {Kind::kUnsigned, VBT_COLL_UINT32},
      {Kind::kUnsigned, VBT_COLL_UINT64},
      {Kind::kFloating, VBT_COLL_FLOAT},
      {Kind::kFloating, VBT_COLL_DOUBLE},
      {Kind::kFloating, VBT_COLL_LONG_DOUBLE},
      {Kind::kComplex, VBT_COLL_FLOAT_COMPLEX},
      {Kind::kComplex, VBT_COLL_DOUBLE_COMPLEX},
      {Kind::kComplex, VBT_COLL_LONG_DOUBLE_COMPLEX},
      {Kind::kBool, VBT_COLL_BOOL},
  };
  for (const Of& of : kAll)
    if (of.kind == kind && vbt_coll_type_size(of.type) == bytes) return of.type;
  return vbt_coll_type{};
}

[[nodiscard]] std::uint32_t bytes_of(const Library& library, Handle type) noexcept {
  if (library.family == Family::kMpich) return static_cast<std::uint32_t>(type >> 8 & 0xff);
  int bytes = 0;
  if (library.call.type_size(type, &bytes) != kSuccess || bytes < 0) return 0;
  return static_cast<std::uint32_t>(bytes);
}

}  // namespace

const PredefinedType* find_type(Handle type) noexcept {
  const std::uint8_t row = types.find(type);
  return row != 0 ? &rows[row] : nullptr;
}

vbt_coll_op find_operation(Handle operation) noexcept {
  return static_cast<vbt_coll_op>(operations.find(operation));
}

Handle handle_of_byte() noexcept { return handle_by(library(), kTypes[0]); }
Handle handle_of_uint64() noexcept { return handle_by(library(), kUint64); }
Handle handle_of_sum() noexcept { return handle_by(library(), kSum); }
Handle handle_of_max() noexcept { return handle_by(library(), kMax); }

bool find_handles(const Library& library) noexcept {
  std::uint8_t row = 0;
  for (const TypeName& name : kTypes) {
    const Handle type = handle_by(library, name);
    const std::uint32_t bytes = type != 0 ? bytes_of(library, type) : 0;
    if (bytes == 0) continue;  // of a language for which this MPI was not built
    const vbt_coll_type reduced = type_of(name.kind, bytes);
    std::uint32_t defined = 0;
    for (const OperationName& operation : kOperations)
      if (reduced != 0 && vbt_coll_is_op_of(operation.operation, reduced) == 1)
        defined |= 1u << operation.operation;
    rows[++row] = {bytes, reduced, defined};
    types.put(type, row);
  }
  for (const OperationName& name : kOperations) {
    const Handle operation = handle_by(library, name);
    if (operation != 0) operations.put(operation, static_cast<std::uint8_t>(name.operation));
  }
  return find_type(handle_by(library, kUint64)) != nullptr &&
         find_operation(handle_by(library, kSum)) == VBT_COLL_SUM &&
         find_operation(handle_by(library, kMax)) == VBT_COLL_MAX;
}

}  // namespace vmpi::pmpi
