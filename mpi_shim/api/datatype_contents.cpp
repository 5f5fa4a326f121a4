// SPDX-License-Identifier: BSD-2-Clause
// How a type was made (MPI 5.0 section 5.1.13), and predefined types by their properties.
#include <cstring>
#include <initializer_list>

#include "mpi_shim/api/datatype_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/datatype_predefined.hpp"

namespace vmpi {
namespace {

[[nodiscard]] std::size_t types_of_program(const Datatype& type) noexcept {
  return type.types.size() - type.inner_types;
}

struct Envelope {
  MPI_Count integers, addresses, counts, types;
};

int envelope_of(const char* function, MPI_Datatype handle, bool with_counts, Envelope& out,
                int& combiner) noexcept {
  Datatype* type = nullptr;
  if (const int error = check_type(nullptr, function, "datatype", handle, type)) return error;
  if (!with_counts && !type->counts.empty())
    return raise(nullptr, MPI_ERR_TYPE, function,
                 "the type was made with large counts: ask with %s_c", function);
  out = Envelope{
      static_cast<MPI_Count>(type->integers.size()), static_cast<MPI_Count>(type->addresses.size()),
      static_cast<MPI_Count>(type->counts.size()), static_cast<MPI_Count>(types_of_program(*type))};
  combiner = type->combiner;
  return 0;
}

template <class T>
void copy_out(const Array<T>& from, T* out) noexcept {
  if (out != nullptr && !from.empty()) std::memcpy(out, from.data(), from.size() * sizeof(T));
}

int check_room(const char* function, const char* what, MPI_Count most, MPI_Count needed,
               const void* out) noexcept {
  if (most >= needed && (needed == 0 || out != nullptr)) return 0;
  if (most < needed)
    return raise(nullptr, MPI_ERR_ARG, function, "argument `max_%s` is %lld, and there are %lld",
                 what, static_cast<long long>(most), static_cast<long long>(needed));
  return raise(nullptr, MPI_ERR_ARG, function, "argument `array_of_%s` is a null pointer", what);
}

int contents_of(const char* function, MPI_Datatype handle, bool with_counts, const Envelope& room,
                int* integers, MPI_Aint* addresses, MPI_Count* counts,
                MPI_Datatype* types) noexcept {
  BigGuard guard;
  Envelope needed = {};
  int combiner = 0;
  if (const int error = envelope_of(function, handle, with_counts, needed, combiner)) return error;
  if (combiner == MPI_COMBINER_NAMED)
    return raise(nullptr, MPI_ERR_TYPE, function, "datatype is predefined, it has no contents");
  if (const int error = check_room(function, "integers", room.integers, needed.integers, integers))
    return error;
  if (const int error =
          check_room(function, "addresses", room.addresses, needed.addresses, addresses))
    return error;
  if (with_counts)
    if (const int error = check_room(function, "large_counts", room.counts, needed.counts, counts))
      return error;
  if (const int error = check_room(function, "datatypes", room.types, needed.types, types))
    return error;
  Datatype& type = *find_datatype(handle);
  copy_out(type.integers, integers);
  copy_out(type.addresses, addresses);
  copy_out(type.counts, counts);
  for (std::size_t i = 0; i < types_of_program(type); ++i) {
    Datatype& part = *find_datatype_by_number(type.types[i]);
    // A derived one is a handle of the program's, to be freed.
    if (!part.is_predefined) {
      ++part.program_handles;
      retain(part);
    }
    types[i] = handle_of(part);
  }
  return MPI_SUCCESS;
}

/// The type of Fortran's kinds that is of this class and size, 0: none.
[[nodiscard]] std::uint32_t sized_type(BasicClass type_class, int bytes) noexcept {
  struct Wanted {
    BasicClass type_class;
    int bytes;
    std::uint32_t found;
  } wanted{type_class, bytes, 0};
  each_basic(
      [](const Basic& basic, void* context) {
        auto& what = *static_cast<Wanted*>(context);
        constexpr std::uint32_t kFirstSized = 0x2c0;  // MPI_LOGICAL1, from where the kinds are
        if (basic.number >= kFirstSized && basic.type_class == what.type_class &&
            basic.bytes == what.bytes)
          what.found = basic.number;
      },
      &wanted);
  return wanted.found;
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Type_get_envelope,
           (MPI_Datatype datatype, int* num_integers, int* num_addresses, int* num_datatypes,
            int* combiner)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Type_get_envelope";
  if (const int error = check_not_null(kName, "num_integers", num_integers)) return error;
  if (const int error = check_not_null(kName, "num_addresses", num_addresses)) return error;
  if (const int error = check_not_null(kName, "num_datatypes", num_datatypes)) return error;
  if (const int error = check_not_null(kName, "combiner", combiner)) return error;
  Envelope envelope = {};
  int found = 0;
  if (const int error = envelope_of(kName, datatype, false, envelope, found)) return error;
  *num_integers = static_cast<int>(envelope.integers);
  *num_addresses = static_cast<int>(envelope.addresses);
  *num_datatypes = static_cast<int>(envelope.types);
  *combiner = found;
  return MPI_SUCCESS;
}
VMPI_ENTRY(int, MPI_Type_get_envelope_c,
           (MPI_Datatype datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
            MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Type_get_envelope_c";
  if (const int error = check_not_null(kName, "num_integers", num_integers)) return error;
  if (const int error = check_not_null(kName, "num_addresses", num_addresses)) return error;
  if (const int error = check_not_null(kName, "num_large_counts", num_large_counts)) return error;
  if (const int error = check_not_null(kName, "num_datatypes", num_datatypes)) return error;
  if (const int error = check_not_null(kName, "combiner", combiner)) return error;
  Envelope envelope = {};
  int found = 0;
  if (const int error = envelope_of(kName, datatype, true, envelope, found)) return error;
  *num_integers = envelope.integers;
  *num_addresses = envelope.addresses;
  *num_large_counts = envelope.counts;
  *num_datatypes = envelope.types;
  *combiner = found;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Type_get_contents,
           (MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
            int array_of_integers[], MPI_Aint array_of_addresses[],
            MPI_Datatype array_of_datatypes[])) {
  return contents_of("MPI_Type_get_contents", datatype, false,
                     {max_integers, max_addresses, 0, max_datatypes}, array_of_integers,
                     array_of_addresses, nullptr, array_of_datatypes);
}
VMPI_ENTRY(int, MPI_Type_get_contents_c,
           (MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
            MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[],
            MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
            MPI_Datatype array_of_datatypes[])) {
  return contents_of("MPI_Type_get_contents_c", datatype, true,
                     {max_integers, max_addresses, max_large_counts, max_datatypes},
                     array_of_integers, array_of_addresses, array_of_large_counts,
                     array_of_datatypes);
}

VMPI_ENTRY(int, MPI_Type_match_size, (int typeclass, int size, MPI_Datatype* datatype)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Type_match_size";
  if (const int error = check_not_null(kName, "datatype", datatype)) return error;
  BasicClass type_class = BasicClass::kSigned;
  switch (typeclass) {
    case MPI_TYPECLASS_INTEGER:
      break;
    case MPI_TYPECLASS_REAL:
      type_class = BasicClass::kFloating;
      break;
    case MPI_TYPECLASS_COMPLEX:
      type_class = BasicClass::kComplex;
      break;
    default:
      return raise(nullptr, MPI_ERR_ARG, kName, "typeclass is %d, none of MPI_TYPECLASS_*",
                   typeclass);
  }
  const std::uint32_t number = sized_type(type_class, size);
  if (number == 0)
    return raise(nullptr, MPI_ERR_ARG, kName, "there is no such type of %d bytes", size);
  *datatype = reinterpret_cast<MPI_Datatype>(static_cast<std::uintptr_t>(number));
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Type_get_value_index,
           (MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype* pair_type)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Type_get_value_index";
  Datatype* value = nullptr;
  Datatype* index = nullptr;
  if (const int error = check_type(nullptr, kName, "value_type", value_type, value)) return error;
  if (const int error = check_type(nullptr, kName, "index_type", index_type, index)) return error;
  if (const int error = check_not_null(kName, "pair_type", pair_type)) return error;
  struct Wanted {
    std::uint32_t value, index, found;
  } wanted{value->handle, index->handle, 0};
  each_basic(
      [](const Basic& basic, void* context) {
        auto& what = *static_cast<Wanted*>(context);
        if (basic.type_class == BasicClass::kPair && basic.value == what.value &&
            basic.index == what.index)
          what.found = basic.number;
      },
      &wanted);
  *pair_type = wanted.found == 0
                   ? MPI_DATATYPE_NULL
                   : reinterpret_cast<MPI_Datatype>(static_cast<std::uintptr_t>(wanted.found));
  return MPI_SUCCESS;
}
