// SPDX-License-Identifier: BSD-2-Clause
// Predefined reductions on all types that they are defined on, against plain loops, and those of
// programs (MPI 5.0 sections 6.9.2 to 6.9.5).
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "mpi_shim/core/op.hpp"
#include "mpi_shim/core/op_kernels.hpp"
#include "tests/mpi/no_ranks.hpp"

namespace {

class Operations : public ::testing::Test {
 protected:
  void SetUp() override { no_ranks::begin(); }
  void TearDown() override { no_ranks::end(); }
};

constexpr int kCount = 67;  // no multiple of a vector

template <class T>
std::vector<T> some(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> out(kCount);
  for (T& value : out) value = static_cast<T>(static_cast<int>(random() % 9) - 4);
  return out;
}

/// As the standard's table has it, by a function of two values.
template <class T, class Of>
void expect(MPI_Op op, MPI_Datatype type, Of of) {
  const std::vector<T> a = some<T>(1);
  std::vector<T> b = some<T>(2), expected = b;
  for (std::size_t i = 0; i < a.size(); ++i) expected[i] = static_cast<T>(of(a[i], b[i]));
  ASSERT_EQ(MPI_Reduce_local(a.data(), b.data(), kCount, type, op), MPI_SUCCESS)
      << vmpi::number_of(op) << " on " << vmpi::number_of(type);
  for (std::size_t i = 0; i < b.size(); ++i)
    ASSERT_TRUE(b[i] == expected[i])
        << vmpi::number_of(op) << " on " << vmpi::number_of(type) << " element " << i;
}

/// On numbers of any bits, with vectors of each length that this processor has, and without.
/// `part` bytes is a floating number, which is to be one: what is said by another has no rule; or 0.
void expect_alike_with_all_vectors(MPI_Op op, MPI_Datatype type, std::size_t bytes,
                                   std::size_t part = 0) {
  std::mt19937 random(7);
  for (int count : {1, 2, 15, 16, 31, 67, 200}) {
    std::vector<unsigned char> a(bytes * 200 + 8);
    std::vector<unsigned char> b(a.size());
    for (unsigned char& byte : a) byte = static_cast<unsigned char>(random());
    for (unsigned char& byte : b) byte = static_cast<unsigned char>(random());
    for (std::size_t at = part; part != 0 && at <= a.size(); at += part) {
      a[at - 1] &= 0xbf;
      b[at - 1] &= 0xbf;
    }
    const std::size_t shift = count % 2 == 0 ? bytes : 0;
    std::vector<unsigned char> plain;
    for (vmpi::Vectors used : {vmpi::Vectors::kPlain, vmpi::Vectors::k256, vmpi::Vectors::k512}) {
      if (used > vmpi::widest_vectors()) continue;
      vmpi::vectors = used;
      std::vector<unsigned char> out = b;
      if (count == 200 && shift != 0) continue;
      ASSERT_EQ(MPI_Reduce_local(a.data() + shift, out.data() + shift, count, type, op),
                MPI_SUCCESS);
      if (used == vmpi::Vectors::kPlain) plain = out;
      EXPECT_TRUE(out == plain) << vmpi::number_of(op) << " on " << vmpi::number_of(type) << ", "
                                << count << " of them, vectors " << static_cast<int>(used);
    }
  }
  vmpi::vectors = vmpi::widest_vectors();
}

void expect_refused(MPI_Datatype type, const std::vector<MPI_Op>& ops) {
  alignas(32) unsigned char a[64] = {}, b[64] = {};
  for (const MPI_Op op : ops)
    EXPECT_EQ(MPI_Reduce_local(a, b, 1, type, op), MPI_ERR_OP)
        << vmpi::number_of(op) << " on " << vmpi::number_of(type);
}

template <class T>
void expect_arithmetic(MPI_Datatype type) {
  expect<T>(MPI_SUM, type, [](T a, T b) { return a + b; });
  expect<T>(MPI_PROD, type, [](T a, T b) {
    // Short numbers would be multiplied as int, and overflow.
    if constexpr (std::is_integral_v<T>)
      return 1u * a * b;
    else
      return a * b;
  });
  expect<T>(MPI_MIN, type, [](T a, T b) { return b < a ? b : a; });
  expect<T>(MPI_MAX, type, [](T a, T b) { return b > a ? b : a; });
}

template <class T>
void expect_bits(MPI_Datatype type) {
  expect<T>(MPI_BAND, type, [](T a, T b) { return a & b; });
  expect<T>(MPI_BOR, type, [](T a, T b) { return a | b; });
  expect<T>(MPI_BXOR, type, [](T a, T b) { return a ^ b; });
}

template <class T>
void expect_logic(MPI_Datatype type) {
  expect<T>(MPI_LAND, type, [](T a, T b) { return a && b; });
  expect<T>(MPI_LOR, type, [](T a, T b) { return a || b; });
  expect<T>(MPI_LXOR, type, [](T a, T b) { return !a != !b; });
}

template <class T>
void expect_integer(MPI_Datatype type) {
  expect_arithmetic<T>(type);
  expect_bits<T>(type);
  expect_logic<T>(type);
  expect_refused(type, {MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP});
}

TEST_F(Operations, ReduceIntegers) {
  expect_integer<short>(MPI_SHORT);
  expect_integer<int>(MPI_INT);
  expect_integer<long>(MPI_LONG);
  expect_integer<long long>(MPI_LONG_LONG);
  expect_integer<unsigned short>(MPI_UNSIGNED_SHORT);
  expect_integer<unsigned>(MPI_UNSIGNED);
  expect_integer<unsigned long>(MPI_UNSIGNED_LONG);
  expect_integer<unsigned long long>(MPI_UNSIGNED_LONG_LONG);
  expect_integer<signed char>(MPI_SIGNED_CHAR);
  expect_integer<unsigned char>(MPI_UNSIGNED_CHAR);
  expect_integer<std::int8_t>(MPI_INT8_T);
  expect_integer<std::uint8_t>(MPI_UINT8_T);
  expect_integer<std::int16_t>(MPI_INT16_T);
  expect_integer<std::uint16_t>(MPI_UINT16_T);
  expect_integer<std::int32_t>(MPI_INT32_T);
  expect_integer<std::uint32_t>(MPI_UINT32_T);
  expect_integer<std::int64_t>(MPI_INT64_T);
  expect_integer<std::uint64_t>(MPI_UINT64_T);
  expect_integer<MPI_Aint>(MPI_AINT);
  expect_integer<MPI_Count>(MPI_COUNT);
  expect_integer<MPI_Offset>(MPI_OFFSET);
  expect_integer<int>(MPI_INTEGER);
  expect_integer<std::int8_t>(MPI_INTEGER1);
  expect_integer<std::int16_t>(MPI_INTEGER2);
  expect_integer<std::int32_t>(MPI_INTEGER4);
  expect_integer<std::int64_t>(MPI_INTEGER8);
  __extension__ typedef __int128 Wide;
  expect_integer<Wide>(MPI_INTEGER16);
}

template <class T>
void expect_floating(MPI_Datatype type) {
  expect_arithmetic<T>(type);
  expect_refused(
      type, {MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_MINLOC, MPI_MAXLOC});
}

TEST_F(Operations, ReduceFloatingNumbers) {
  expect_floating<float>(MPI_FLOAT);
  expect_floating<double>(MPI_DOUBLE);
  expect_floating<long double>(MPI_LONG_DOUBLE);
  expect_floating<float>(MPI_REAL);
  expect_floating<double>(MPI_DOUBLE_PRECISION);
  expect_floating<float>(MPI_REAL4);
  expect_floating<double>(MPI_REAL8);
  __extension__ typedef __float128 Quad;
  expect_floating<Quad>(MPI_REAL16);
  expect_refused(MPI_REAL2, {MPI_SUM});
}

template <class T>
void expect_complex(MPI_Datatype type) {
  using C = std::complex<T>;
  std::mt19937 random(5);
  std::vector<C> a(kCount), b(kCount);
  for (auto* const all : {&a, &b})
    for (C& value : *all)
      value = C(static_cast<T>(static_cast<int>(random() % 9) - 4),
                static_cast<T>(static_cast<int>(random() % 9) - 4));
  for (const MPI_Op op : {MPI_SUM, MPI_PROD}) {
    std::vector<C> got = b;
    ASSERT_EQ(MPI_Reduce_local(a.data(), got.data(), kCount, type, op), MPI_SUCCESS);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], op == MPI_SUM ? a[i] + b[i] : a[i] * b[i]);
  }
  expect_refused(type, {MPI_MIN, MPI_MAX, MPI_BAND, MPI_LAND, MPI_MINLOC});
}

TEST_F(Operations, ReduceComplexNumbers) {
  expect_complex<float>(MPI_C_COMPLEX);
  expect_complex<float>(MPI_CXX_FLOAT_COMPLEX);
  expect_complex<double>(MPI_C_DOUBLE_COMPLEX);
  expect_complex<double>(MPI_CXX_DOUBLE_COMPLEX);
  expect_complex<long double>(MPI_C_LONG_DOUBLE_COMPLEX);
  expect_complex<long double>(MPI_CXX_LONG_DOUBLE_COMPLEX);
  expect_complex<float>(MPI_COMPLEX);
  expect_complex<double>(MPI_DOUBLE_COMPLEX);
  expect_complex<float>(MPI_COMPLEX8);
  expect_complex<double>(MPI_COMPLEX16);
  expect_refused(MPI_COMPLEX4, {MPI_SUM});
}

TEST_F(Operations, ReduceQuadrupleComplexNumbers) {
  __extension__ typedef __float128 Quad;
  const Quad a[] = {1, 2}, b[] = {3, -4};
  Quad sum[] = {b[0], b[1]}, product[] = {b[0], b[1]};
  ASSERT_EQ(MPI_Reduce_local(a, sum, 1, MPI_COMPLEX32, MPI_SUM), MPI_SUCCESS);
  EXPECT_TRUE(sum[0] == 4 && sum[1] == -2);
  ASSERT_EQ(MPI_Reduce_local(a, product, 1, MPI_COMPLEX32, MPI_PROD), MPI_SUCCESS);
  EXPECT_TRUE(product[0] == 11 && product[1] == 2);
}

template <class T>
void expect_logical(MPI_Datatype type) {
  expect_logic<T>(type);
  expect_refused(type, {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR});
}

TEST_F(Operations, ReduceTruthValues) {
  expect_logical<std::uint8_t>(MPI_C_BOOL);
  expect_logical<std::uint8_t>(MPI_CXX_BOOL);
  expect_logical<std::int32_t>(MPI_LOGICAL);
  expect_logical<std::int8_t>(MPI_LOGICAL1);
  expect_logical<std::int16_t>(MPI_LOGICAL2);
  expect_logical<std::int32_t>(MPI_LOGICAL4);
  expect_logical<std::int64_t>(MPI_LOGICAL8);
  __extension__ typedef __int128 Wide;
  expect_logical<Wide>(MPI_LOGICAL16);
}

TEST_F(Operations, ReduceBytesByBitsAlone) {
  expect_bits<unsigned char>(MPI_BYTE);
  expect_refused(MPI_BYTE, {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR});
  for (const MPI_Datatype type : {MPI_PACKED, MPI_CHARACTER, MPI_WCHAR})
    expect_refused(type, {MPI_SUM, MPI_MAX, MPI_BAND, MPI_LAND, MPI_MAXLOC});
}

template <class Value, class Index>
void expect_pairs(MPI_Datatype type) {
  struct Pair {
    Value value;
    Index index;
  };
  const auto make = [](int value, int index) {
    Pair pair;
    std::memset(static_cast<void*>(&pair), 0, sizeof pair);
    pair.value = static_cast<Value>(value);
    pair.index = static_cast<Index>(index);
    return pair;
  };
  const Pair a[] = {make(1, 5), make(2, 5), make(3, 5), make(3, 2)};
  const Pair start[] = {make(2, 1), make(1, 1), make(3, 9), make(3, 4)};
  const struct {
    MPI_Op op;
    Pair expected[4];
  } rows[] = {{MPI_MINLOC, {make(1, 5), make(1, 1), make(3, 5), make(3, 2)}},
              {MPI_MAXLOC, {make(2, 1), make(2, 5), make(3, 5), make(3, 2)}}};
  for (const auto& row : rows) {
    Pair b[] = {start[0], start[1], start[2], start[3]};
    ASSERT_EQ(MPI_Reduce_local(a, b, 4, type, row.op), MPI_SUCCESS);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(b[i].value, row.expected[i].value);
      EXPECT_EQ(b[i].index, row.expected[i].index) << i;
    }
  }
  expect_refused(type, {MPI_SUM, MPI_MIN, MPI_BAND, MPI_LAND});
}

TEST_F(Operations, FindThePlaceOfTheLeastAndTheGreatest) {
  expect_pairs<float, int>(MPI_FLOAT_INT);
  expect_pairs<double, int>(MPI_DOUBLE_INT);
  expect_pairs<long, int>(MPI_LONG_INT);
  expect_pairs<int, int>(MPI_2INT);
  expect_pairs<short, int>(MPI_SHORT_INT);
  expect_pairs<long double, int>(MPI_LONG_DOUBLE_INT);
  expect_pairs<float, float>(MPI_2REAL);
  expect_pairs<double, double>(MPI_2DOUBLE_PRECISION);
  expect_pairs<int, int>(MPI_2INTEGER);
}

TEST_F(Operations, AreNotDefinedOnDerivedTypes) {
  MPI_Datatype type;
  ASSERT_EQ(MPI_Type_contiguous(2, MPI_INT, &type), MPI_SUCCESS);
  expect_refused(type, {MPI_SUM, MPI_MAXLOC});
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
}

void keep_first(void* in, void* inout, int* length, MPI_Datatype* type) {
  MPI_Aint lb = 0, extent = 0;
  EXPECT_EQ(MPI_Type_get_extent(*type, &lb, &extent), MPI_SUCCESS);  // it may call us
  std::memcpy(inout, in, static_cast<std::size_t>(*length * extent));
}
MPI_Count seen = 0;
void see_length(void*, void*, MPI_Count* length, MPI_Datatype*) { seen = *length; }

TEST_F(Operations, OfProgramsWorkOnAnyType) {
  MPI_Datatype type;
  ASSERT_EQ(MPI_Type_contiguous(2, MPI_INT, &type), MPI_SUCCESS);
  MPI_Op op;
  ASSERT_EQ(MPI_Op_create(keep_first, 0, &op), MPI_SUCCESS);
  int commutes = -1;
  EXPECT_EQ(MPI_Op_commutative(op, &commutes), MPI_SUCCESS);
  EXPECT_EQ(commutes, 0);
  EXPECT_EQ(MPI_Op_commutative(MPI_SUM, &commutes), MPI_SUCCESS);
  EXPECT_EQ(commutes, 1);
  const int a[] = {1, 2, 3, 4};
  int b[4] = {};
  EXPECT_EQ(MPI_Reduce_local(a, b, 2, type, op), MPI_SUCCESS);
  EXPECT_EQ(b[3], 4);
  const MPI_Op freed = op;
  EXPECT_EQ(MPI_Op_free(&op), MPI_SUCCESS);
  EXPECT_EQ(op, MPI_OP_NULL);
  EXPECT_EQ(MPI_Reduce_local(a, b, 2, type, freed), MPI_ERR_OP);
  ASSERT_EQ(MPI_Op_create_c(see_length, 1, &op), MPI_SUCCESS);
  EXPECT_EQ(MPI_Reduce_local_c(nullptr, b, 5'000'000'000, type, op), MPI_SUCCESS);
  EXPECT_EQ(seen, 5'000'000'000);
  EXPECT_EQ(MPI_Op_free(&op), MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
}

TEST_F(Operations, BadArgumentsAreRefusedByTheirClasses) {
  int a = 1, b = 2;
  EXPECT_EQ(MPI_Reduce_local(&a, &b, -1, MPI_INT, MPI_SUM), MPI_ERR_COUNT);
  EXPECT_EQ(MPI_Reduce_local(&a, &b, 1, MPI_DATATYPE_NULL, MPI_SUM), MPI_ERR_TYPE);
  EXPECT_EQ(MPI_Reduce_local(&a, &b, 1, MPI_INT, MPI_OP_NULL), MPI_ERR_OP);
  EXPECT_EQ(MPI_Reduce_local(&a, &a, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
  EXPECT_EQ(MPI_Reduce_local(MPI_IN_PLACE, &a, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
  EXPECT_EQ(MPI_Reduce_local(nullptr, &a, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
  EXPECT_EQ(MPI_Reduce_local(nullptr, nullptr, 0, MPI_INT, MPI_SUM), MPI_SUCCESS);
  MPI_Op op = MPI_SUM;
  EXPECT_EQ(MPI_Op_free(&op), MPI_ERR_OP);
  EXPECT_EQ(MPI_Op_create(nullptr, 1, &op), MPI_ERR_ARG);
}

TEST_F(Operations, AllVectorsComputeTheSameBits) {
  const struct {
    MPI_Datatype type;
    std::size_t bytes;
  } integers[] = {{MPI_INT8_T, 1},  {MPI_UINT8_T, 1},  {MPI_INT16_T, 2}, {MPI_UINT16_T, 2},
                  {MPI_INT32_T, 4}, {MPI_UINT32_T, 4}, {MPI_INT64_T, 8}, {MPI_UINT64_T, 8}};
  for (const auto& each : integers)
    for (MPI_Op op : {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND,
                      MPI_LOR, MPI_LXOR})
      expect_alike_with_all_vectors(op, each.type, each.bytes);
  for (MPI_Op op : {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX}) {
    expect_alike_with_all_vectors(op, MPI_FLOAT, 4, 4);
    expect_alike_with_all_vectors(op, MPI_DOUBLE, 8, 8);
  }
  for (MPI_Op op : {MPI_SUM, MPI_PROD}) {
    expect_alike_with_all_vectors(op, MPI_C_FLOAT_COMPLEX, 8, 4);
    expect_alike_with_all_vectors(op, MPI_C_DOUBLE_COMPLEX, 16, 8);
  }
}

}  // namespace
