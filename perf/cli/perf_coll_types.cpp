// SPDX-License-Identifier: BSD-2-Clause
// Values repeat after kPeriod elements, so what ranks make of a vector is told by so many results.
// They are small whole numbers: each order in which they are combined has one result, also of reals,
// and integers that overflow wrap in each order alike.
#include "perf/cli/perf_coll_types.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

namespace verbatim::cli {
namespace {

constexpr int kPeriod = 7;

enum OpNumber { kSum, kProd, kMin, kMax, kLand, kLor, kLxor, kBand, kBor, kBxor };

const std::array kOps = {
    CollOp{"sum", "MPI_SUM", MPI_SUM, true, false},
    CollOp{"prod", "MPI_PROD", MPI_PROD, true, false},
    CollOp{"min", "MPI_MIN", MPI_MIN, true, false},
    CollOp{"max", "MPI_MAX", MPI_MAX, true, false},
    CollOp{"land", "MPI_LAND", MPI_LAND, false, false},
    CollOp{"lor", "MPI_LOR", MPI_LOR, false, false},
    CollOp{"lxor", "MPI_LXOR", MPI_LXOR, false, false},
    CollOp{"band", "MPI_BAND", MPI_BAND, false, true},
    CollOp{"bor", "MPI_BOR", MPI_BOR, false, true},
    CollOp{"bxor", "MPI_BXOR", MPI_BXOR, false, true},
};

/// Products of ones and twos are powers of two, which reals have exactly.
int value_of(std::uint64_t place, int rank, bool is_product) {
  const auto residue = static_cast<int>((place + static_cast<std::uint64_t>(rank)) % kPeriod);
  return is_product ? 1 + residue % 2 : residue;
}

template <class T>
T combined(T a, T b, int op) {
  if (op == kMin) return std::min(a, b);
  if (op == kMax) return std::max(a, b);
  if constexpr (std::is_floating_point_v<T>) {
    return op == kProd ? a * b : a + b;
  } else {
    // What overflows wraps.
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    switch (op) {
      case kProd:
        return static_cast<T>(x * y);
      case kLand:
        return static_cast<T>(x != 0 && y != 0);
      case kLor:
        return static_cast<T>(x != 0 || y != 0);
      case kLxor:
        return static_cast<T>((x != 0) != (y != 0));
      case kBand:
        return static_cast<T>(x & y);
      case kBor:
        return static_cast<T>(x | y);
      case kBxor:
        return static_cast<T>(x ^ y);
      default:
        return static_cast<T>(x + y);
    }
  }
}

template <class T>
void fill(void* at, std::int64_t first, std::int64_t count, int rank, std::uint64_t round,
          bool is_product) {
  auto* const to = static_cast<T*>(at);
  const std::uint64_t place = static_cast<std::uint64_t>(first) + round;
  std::array<T, kPeriod> values;
  for (std::uint64_t i = 0; i < kPeriod; ++i)
    values[i] = static_cast<T>(value_of(place + i, rank, is_product));
  std::int64_t i = 0;
  for (; i + kPeriod <= count; i += kPeriod) std::copy_n(values.data(), kPeriod, to + i);
  std::copy_n(values.data(), count - i, to + i);
}

template <class T>
std::int64_t first_wrong(const void* at, std::int64_t first, std::int64_t count, int from, int to,
                         std::uint64_t round, int op) {
  const auto* const got = static_cast<const T*>(at);
  const std::uint64_t place = static_cast<std::uint64_t>(first) + round;
  std::array<T, kPeriod> wanted;
  for (std::uint64_t i = 0; i < kPeriod; ++i) {
    wanted[i] = static_cast<T>(value_of(place + i, from, op == kProd));
    for (int rank = from + 1; rank < to; ++rank)
      wanted[i] = combined(wanted[i], static_cast<T>(value_of(place + i, rank, op == kProd)), op);
  }
  for (std::int64_t i = 0; i < count; ++i)
    if (got[i] != wanted[static_cast<std::size_t>(i % kPeriod)]) return i;
  return -1;
}

template <class T>
CollType type(const char* name, const char* mpi_name, MPI_Datatype handle, CollClass is) {
  return {name, mpi_name, handle, sizeof(T), is, fill<T>, first_wrong<T>};
}

const std::array kTypes = {
    type<std::uint8_t>("char", "MPI_CHAR", MPI_CHAR, CollClass::kText),
    type<std::uint8_t>("byte", "MPI_BYTE", MPI_BYTE, CollClass::kBytes),
    type<std::int8_t>("int8_t", "MPI_INT8_T", MPI_INT8_T, CollClass::kInteger),
    type<std::uint8_t>("uint8_t", "MPI_UINT8_T", MPI_UINT8_T, CollClass::kInteger),
    type<std::int16_t>("int16_t", "MPI_INT16_T", MPI_INT16_T, CollClass::kInteger),
    type<std::int32_t>("int", "MPI_INT", MPI_INT, CollClass::kInteger),
    type<std::int64_t>("int64_t", "MPI_INT64_T", MPI_INT64_T, CollClass::kInteger),
    type<float>("float", "MPI_FLOAT", MPI_FLOAT, CollClass::kReal),
    type<double>("double", "MPI_DOUBLE", MPI_DOUBLE, CollClass::kReal),
};

std::string_view without(std::string_view prefix, std::string_view name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

}  // namespace

const CollType* coll_type_named(std::string_view name) {
  for (const CollType& each : kTypes)
    if (without("mpi_", name) == each.name || name == each.mpi_name) return &each;
  return nullptr;
}

const CollOp* coll_op_named(std::string_view name) {
  for (const CollOp& each : kOps)
    if (without("mpi_", name) == each.name || name == each.mpi_name) return &each;
  return nullptr;
}

int number_of(const CollOp& op) { return static_cast<int>(&op - kOps.data()); }

bool takes(const CollOp& op, const CollType& type) {
  switch (type.is) {
    case CollClass::kText:
      return false;
    case CollClass::kBytes:
      return op.takes_bytes;
    case CollClass::kReal:
      return op.takes_reals;
    case CollClass::kInteger:
      return true;
  }
  return false;
}

}  // namespace verbatim::cli
