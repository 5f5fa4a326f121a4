// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/datatype_predefined.hpp"

#include <cstddef>
#include <cstdio>
#include <cwchar>
#include <new>

#include "mpi_shim/core/datatype_build.hpp"

namespace vmpi {
namespace {

// The handles are pointers, of which C++ makes no numbers at compile time: their values are those
// of the standard ABI once more, and `make_predefined_types` sees that names and numbers agree.
constexpr std::uint32_t kFirst = 0x200;
constexpr std::uint32_t kEnd = 0x300;

template <class T>
constexpr Basic plain(std::uint16_t number, BasicClass type_class, const char* name,
                      std::uint8_t external = sizeof(T)) {
  return Basic{number, type_class, sizeof(T), alignof(T), external, 0, 0, 0, 0, name};
}
template <class T>
constexpr Basic integer(std::uint16_t number, const char* name, std::uint8_t external = sizeof(T)) {
  return plain<T>(number, static_cast<T>(-1) < 0 ? BasicClass::kSigned : BasicClass::kUnsigned,
                  name, external);
}
template <class T>
constexpr Basic floating(std::uint16_t number, const char* name,
                         std::uint8_t external = sizeof(T)) {
  return plain<T>(number, BasicClass::kFloating, name, external);
}
/// The parts lie in a row and are aligned as one of them.
template <class T>
constexpr Basic complex(std::uint16_t number, const char* name,
                        std::uint8_t external = 2 * sizeof(T)) {
  return Basic{number, BasicClass::kComplex, 2 * sizeof(T), alignof(T), external, 0, 0, 0, 0, name};
}
template <class Value, class Index>
constexpr Basic pair(std::uint16_t number, const char* name, std::uint16_t value,
                     std::uint16_t index, std::uint8_t external = sizeof(Value)) {
  struct Both {
    Value value;
    Index index;
  };
  return Basic{number,        BasicClass::kPair,
               sizeof(Value), alignof(Value),
               external,      offsetof(Both, index),
               sizeof(Index), value,
               index,         name};
}
/// A type of Fortran's that is as large as it is named, aligned likewise.
constexpr Basic sized(std::uint16_t number, BasicClass type_class, std::uint8_t bytes,
                      const char* name, std::uint8_t alignment) {
  return Basic{number, type_class, bytes, alignment, bytes, 0, 0, 0, 0, name};
}

// clang-format off
constexpr Basic kBasics[] = {
    integer<MPI_Aint>(0x201, "MPI_AINT"),
    integer<MPI_Count>(0x202, "MPI_COUNT"),
    integer<MPI_Offset>(0x203, "MPI_OFFSET"),
    plain<unsigned char>(0x207, BasicClass::kBytes, "MPI_PACKED"),
    integer<short>(0x208, "MPI_SHORT"),
    integer<int>(0x209, "MPI_INT"),
    integer<long>(0x20a, "MPI_LONG", 4),
    integer<long long>(0x20b, "MPI_LONG_LONG"),
    integer<unsigned short>(0x20c, "MPI_UNSIGNED_SHORT"),
    integer<unsigned>(0x20d, "MPI_UNSIGNED"),
    integer<unsigned long>(0x20e, "MPI_UNSIGNED_LONG", 4),
    integer<unsigned long long>(0x20f, "MPI_UNSIGNED_LONG_LONG"),
    floating<float>(0x210, "MPI_FLOAT"),
    complex<float>(0x212, "MPI_C_FLOAT_COMPLEX"),
    complex<float>(0x213, "MPI_CXX_FLOAT_COMPLEX"),
    floating<double>(0x214, "MPI_DOUBLE"),
    complex<double>(0x216, "MPI_C_DOUBLE_COMPLEX"),
    complex<double>(0x217, "MPI_CXX_DOUBLE_COMPLEX"),
    sized(0x218, BasicClass::kLogical, 4, "MPI_LOGICAL", 4),
    integer<std::int32_t>(0x219, "MPI_INTEGER"),
    floating<float>(0x21a, "MPI_REAL"),
    complex<float>(0x21b, "MPI_COMPLEX"),
    floating<double>(0x21c, "MPI_DOUBLE_PRECISION"),
    complex<double>(0x21d, "MPI_DOUBLE_COMPLEX"),
    plain<char>(0x21e, BasicClass::kCharacter, "MPI_CHARACTER"),
    floating<long double>(0x220, "MPI_LONG_DOUBLE", 16),
    complex<long double>(0x224, "MPI_C_LONG_DOUBLE_COMPLEX", 32),
    complex<long double>(0x225, "MPI_CXX_LONG_DOUBLE_COMPLEX", 32),
    pair<float, int>(0x228, "MPI_FLOAT_INT", 0x210, 0x209),
    pair<double, int>(0x229, "MPI_DOUBLE_INT", 0x214, 0x209),
    pair<long, int>(0x22a, "MPI_LONG_INT", 0x20a, 0x209, 4),
    pair<int, int>(0x22b, "MPI_2INT", 0x209, 0x209),
    pair<short, int>(0x22c, "MPI_SHORT_INT", 0x208, 0x209),
    pair<long double, int>(0x22d, "MPI_LONG_DOUBLE_INT", 0x220, 0x209, 16),
    pair<float, float>(0x230, "MPI_2REAL", 0x21a, 0x21a),
    pair<double, double>(0x231, "MPI_2DOUBLE_PRECISION", 0x21c, 0x21c),
    pair<std::int32_t, std::int32_t>(0x232, "MPI_2INTEGER", 0x219, 0x219),
    plain<bool>(0x238, BasicClass::kLogical, "MPI_C_BOOL"),
    plain<bool>(0x239, BasicClass::kLogical, "MPI_CXX_BOOL"),
    plain<wchar_t>(0x23c, BasicClass::kCharacter, "MPI_WCHAR", 2),
    integer<std::int8_t>(0x240, "MPI_INT8_T"),
    integer<std::uint8_t>(0x241, "MPI_UINT8_T"),
    // The standard reduces no MPI_CHAR; other libraries do, and programs rely on it.
    integer<char>(0x243, "MPI_CHAR"),
    integer<signed char>(0x244, "MPI_SIGNED_CHAR"),
    integer<unsigned char>(0x245, "MPI_UNSIGNED_CHAR"),
    plain<unsigned char>(0x247, BasicClass::kBytes, "MPI_BYTE"),
    integer<std::int16_t>(0x248, "MPI_INT16_T"),
    integer<std::uint16_t>(0x249, "MPI_UINT16_T"),
    integer<std::int32_t>(0x250, "MPI_INT32_T"),
    integer<std::uint32_t>(0x251, "MPI_UINT32_T"),
    integer<std::int64_t>(0x258, "MPI_INT64_T"),
    integer<std::uint64_t>(0x259, "MPI_UINT64_T"),
    sized(0x2c0, BasicClass::kLogical, 1, "MPI_LOGICAL1", 1),
    sized(0x2c1, BasicClass::kSigned, 1, "MPI_INTEGER1", 1),
    sized(0x2c8, BasicClass::kLogical, 2, "MPI_LOGICAL2", 2),
    sized(0x2c9, BasicClass::kSigned, 2, "MPI_INTEGER2", 2),
    sized(0x2ca, BasicClass::kFloating, 2, "MPI_REAL2", 2),
    sized(0x2d0, BasicClass::kLogical, 4, "MPI_LOGICAL4", 4),
    sized(0x2d1, BasicClass::kSigned, 4, "MPI_INTEGER4", 4),
    sized(0x2d2, BasicClass::kFloating, 4, "MPI_REAL4", 4),
    sized(0x2d3, BasicClass::kComplex, 4, "MPI_COMPLEX4", 2),
    sized(0x2d8, BasicClass::kLogical, 8, "MPI_LOGICAL8", 8),
    sized(0x2d9, BasicClass::kSigned, 8, "MPI_INTEGER8", 8),
    sized(0x2da, BasicClass::kFloating, 8, "MPI_REAL8", 8),
    sized(0x2db, BasicClass::kComplex, 8, "MPI_COMPLEX8", 4),
    sized(0x2e0, BasicClass::kLogical, 16, "MPI_LOGICAL16", 16),
    sized(0x2e1, BasicClass::kSigned, 16, "MPI_INTEGER16", 16),
    sized(0x2e2, BasicClass::kFloating, 16, "MPI_REAL16", 16),
    sized(0x2e3, BasicClass::kComplex, 16, "MPI_COMPLEX16", 8),
    sized(0x2eb, BasicClass::kComplex, 32, "MPI_COMPLEX32", 16),
};
// clang-format on

/// Place in kBasics by number; 0xff: none.
struct Places {
  std::uint8_t of[kEnd - kFirst];
};
constexpr Places kPlaces = [] {
  Places places{};
  for (std::uint8_t& place : places.of) place = 0xff;
  std::uint8_t i = 0;
  for (const Basic& basic : kBasics) places.of[basic.number - kFirst] = i++;
  return places;
}();

constexpr std::size_t kCount = sizeof(kBasics) / sizeof(kBasics[0]);
Datatype* predefined = nullptr;

[[nodiscard]] bool make(Datatype& type, const Basic& basic) noexcept {
  type.handle = basic.number;
  type.is_predefined = true;
  type.is_committed = true;
  std::snprintf(type.name, sizeof type.name, "%s", basic.name);
  TypeBuilder builder(type);
  if (basic.type_class == BasicClass::kPair) {
    builder.add_basic(basic.value, 0, basic.bytes, basic.alignment);
    builder.add_basic(basic.index, basic.index_at, basic.index_bytes, basic.index_bytes);
  } else {
    builder.add_basic(basic.number, 0, basic.bytes, basic.alignment);
  }
  return builder.finish() == MPI_SUCCESS;
}

}  // namespace

bool make_predefined_types() noexcept {
  if (predefined != nullptr) return true;
  auto* const made = static_cast<Datatype*>(std::malloc(kCount * sizeof(Datatype)));
  if (made == nullptr) return false;
  for (std::size_t i = 0; i < kCount; ++i) ::new (static_cast<void*>(&made[i])) Datatype();
  predefined = made;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (make(made[i], kBasics[i])) continue;
    drop_predefined_types();
    return false;
  }
  return true;
}

void drop_predefined_types() noexcept {
  if (predefined == nullptr) return;
  for (std::size_t i = 0; i < kCount; ++i) predefined[i].~Datatype();
  std::free(predefined);
  predefined = nullptr;
}

const Basic* find_basic(std::uint32_t number) noexcept {
  if (number < kFirst || number >= kEnd || kPlaces.of[number - kFirst] == 0xff) return nullptr;
  return &kBasics[kPlaces.of[number - kFirst]];
}

std::int64_t size_of_basic(std::uint32_t number) noexcept {
  const Basic* const basic = find_basic(number);
  if (basic == nullptr) return 0;
  return basic->bytes + (basic->type_class == BasicClass::kPair ? basic->index_bytes : 0);
}

Datatype* find_predefined_type(std::uint32_t number) noexcept {
  const Basic* const basic = find_basic(number);
  return predefined == nullptr || basic == nullptr ? nullptr : &predefined[basic - kBasics];
}

void each_basic(BasicVisitor visit, void* context) noexcept {
  for (const Basic& basic : kBasics) visit(basic, context);
}

}  // namespace vmpi
