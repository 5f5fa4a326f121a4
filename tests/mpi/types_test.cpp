// SPDX-License-Identifier: BSD-2-Clause
// Datatypes: what random ones do not show. Sentences are of MPI 5.0 chapter 5 where none is named.
#include <gtest/gtest.h>

#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include "mpi_shim/core/datatype.hpp"
#include "mpi_shim/core/datatype_build.hpp"
#include "mpi_shim/core/status.hpp"
#include "tests/mpi/no_ranks.hpp"

namespace {

class Types : public ::testing::Test {
 protected:
  void SetUp() override { no_ranks::begin(); }
  void TearDown() override { no_ranks::end(); }
};

int size_of(MPI_Datatype type) {
  int size = -1;
  EXPECT_EQ(MPI_Type_size(type, &size), MPI_SUCCESS);
  return size;
}
MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint lb = -1, extent = -1;
  EXPECT_EQ(MPI_Type_get_extent(type, &lb, &extent), MPI_SUCCESS);
  return extent;
}

TEST_F(Types, PredefinedOnesHaveTheSizesOfTheLanguages) {
  struct {
    MPI_Datatype type;
    std::size_t size, extent;
  } const rows[] = {
      {MPI_AINT, sizeof(MPI_Aint), sizeof(MPI_Aint)},
      {MPI_CHAR, 1, 1},
      {MPI_WCHAR, sizeof(wchar_t), sizeof(wchar_t)},
      {MPI_LONG, sizeof(long), sizeof(long)},
      {MPI_LONG_DOUBLE, sizeof(long double), sizeof(long double)},
      {MPI_C_LONG_DOUBLE_COMPLEX, 2 * sizeof(long double), 2 * sizeof(long double)},
      {MPI_CXX_BOOL, sizeof(bool), sizeof(bool)},
      {MPI_LOGICAL, 4, 4},
      {MPI_DOUBLE_COMPLEX, 16, 16},
      {MPI_FLOAT_INT, 8, 8},
      {MPI_DOUBLE_INT, 12, 16},
      {MPI_LONG_INT, 12, 16},
      {MPI_SHORT_INT, 6, 8},
      {MPI_2INT, 8, 8},
      {MPI_LONG_DOUBLE_INT, 20, 32},
      {MPI_2DOUBLE_PRECISION, 16, 16},
      {MPI_INTEGER16, 16, 16},
      {MPI_COMPLEX32, 32, 32},
      {MPI_PACKED, 1, 1},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(size_of(row.type), static_cast<int>(row.size)) << vmpi::number_of(row.type);
    EXPECT_EQ(extent_of(row.type), static_cast<MPI_Aint>(row.extent)) << vmpi::number_of(row.type);
  }
}

TEST_F(Types, PredefinedOnesHaveTheirNamesAndNoContents) {
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  EXPECT_EQ(MPI_Type_get_name(MPI_DOUBLE_PRECISION, name, &length), MPI_SUCCESS);
  EXPECT_STREQ(name, "MPI_DOUBLE_PRECISION");
  EXPECT_EQ(length, 20);
  EXPECT_EQ(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length), MPI_SUCCESS);
  EXPECT_STREQ(name, "MPI_DATATYPE_NULL");
  int integers = 0;
  MPI_Aint address = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  EXPECT_EQ(MPI_Type_get_contents(MPI_INT, 1, 1, 1, &integers, &address, &type), MPI_ERR_TYPE);
}

TEST_F(Types, AbsoluteAddressesStartAtBottom) {
  int first = 7;
  double second = 2.5;
  int lengths[] = {1, 1};
  MPI_Aint places[2];
  MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  EXPECT_EQ(MPI_Get_address(&first, &places[0]), MPI_SUCCESS);
  EXPECT_EQ(MPI_Get_address(&second, &places[1]), MPI_SUCCESS);
  EXPECT_EQ(MPI_Aint_diff(places[0], places[1]),
            reinterpret_cast<char*>(&first) - reinterpret_cast<char*>(&second));
  EXPECT_EQ(MPI_Aint_add(places[1], MPI_Aint_diff(places[0], places[1])), places[0]);
  MPI_Datatype type;
  ASSERT_EQ(MPI_Type_create_struct(2, lengths, places, types, &type), MPI_SUCCESS);
  unsigned char packed[12];
  int position = 0;
  ASSERT_EQ(MPI_Pack(MPI_BOTTOM, 1, type, packed, 12, &position, MPI_COMM_SELF), MPI_SUCCESS);
  EXPECT_EQ(std::memcmp(packed, &first, 4), 0);
  EXPECT_EQ(std::memcmp(packed + 4, &second, 8), 0);
  first = 0;
  second = 0;
  position = 0;
  ASSERT_EQ(MPI_Unpack(packed, 12, &position, MPI_BOTTOM, 1, type, MPI_COMM_SELF), MPI_SUCCESS);
  EXPECT_EQ(first, 7);
  EXPECT_EQ(second, 2.5);
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
}

TEST_F(Types, AFreedOneIsNoTypeButLivesInOthers) {
  MPI_Datatype inner, outer;
  ASSERT_EQ(MPI_Type_vector(3, 1, 2, MPI_INT, &inner), MPI_SUCCESS);
  ASSERT_EQ(MPI_Type_contiguous(2, inner, &outer), MPI_SUCCESS);
  const MPI_Datatype freed = inner;
  ASSERT_EQ(MPI_Type_free(&inner), MPI_SUCCESS);
  EXPECT_EQ(inner, MPI_DATATYPE_NULL);
  int size = -1;
  EXPECT_EQ(MPI_Type_size(freed, &size), MPI_ERR_TYPE);
  EXPECT_EQ(size, -1);
  inner = freed;
  EXPECT_EQ(MPI_Type_free(&inner), MPI_ERR_TYPE);
  EXPECT_EQ(size_of(outer), 24);
  // Its maker's argument is a handle again.
  int count = 0;
  MPI_Datatype part = MPI_DATATYPE_NULL;
  ASSERT_EQ(MPI_Type_get_contents(outer, 1, 0, 1, &count, nullptr, &part), MPI_SUCCESS);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(size_of(part), 12);
  EXPECT_EQ(MPI_Type_free(&outer), MPI_SUCCESS);
  EXPECT_EQ(size_of(part), 12);
  EXPECT_EQ(MPI_Type_free(&part), MPI_SUCCESS);
}

TEST_F(Types, PredefinedOnesAreNotFreed) {
  MPI_Datatype type = MPI_INT;
  EXPECT_EQ(MPI_Type_free(&type), MPI_ERR_TYPE);
  EXPECT_EQ(type, MPI_INT);
}

TEST_F(Types, BadArgumentsAreRefusedByTheirClasses) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const int one[] = {1}, minus[] = {-1};
  const MPI_Aint far[] = {LONG_MAX};
  EXPECT_EQ(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
  EXPECT_EQ(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE);
  EXPECT_EQ(MPI_Type_contiguous(1, reinterpret_cast<MPI_Datatype>(&type), &type), MPI_ERR_TYPE);
  EXPECT_EQ(MPI_Type_contiguous(1, MPI_INT, nullptr), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_vector(1, -1, 1, MPI_INT, &type), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_indexed(1, minus, one, MPI_INT, &type), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_indexed(1, nullptr, one, MPI_INT, &type), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_create_struct(1, one, far, nullptr, &type), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_create_hindexed(1, one, far, MPI_INT, &type), MPI_ERR_VALUE_TOO_LARGE);
  EXPECT_EQ(MPI_Type_create_subarray(1, one, one, one, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_create_subarray(1, one, one, nullptr, MPI_ORDER_C, MPI_INT, &type),
            MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_create_subarray(0, one, one, one, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
  EXPECT_EQ(type, MPI_DATATYPE_NULL);
  int class_of_code = 0;
  EXPECT_EQ(MPI_Error_class(MPI_ERR_VALUE_TOO_LARGE, &class_of_code), MPI_SUCCESS);
}

TEST_F(Types, NumbersThatDoNotFitAreRefused) {
  MPI_Datatype huge, type = MPI_DATATYPE_NULL;
  ASSERT_EQ(MPI_Type_contiguous_c(LONG_MAX / 16, MPI_DOUBLE, &huge), MPI_SUCCESS);
  EXPECT_EQ(size_of(huge), MPI_UNDEFINED);
  MPI_Count size = 0;
  EXPECT_EQ(MPI_Type_size_c(huge, &size), MPI_SUCCESS);
  EXPECT_EQ(size, LONG_MAX / 16 * 8);
  EXPECT_EQ(MPI_Type_contiguous(3, huge, &type), MPI_ERR_VALUE_TOO_LARGE);
  EXPECT_EQ(MPI_Type_vector(2, 1, INT_MAX, huge, &type), MPI_ERR_VALUE_TOO_LARGE);
  EXPECT_EQ(MPI_Type_create_hvector(INT_MAX, 1, LONG_MAX / 2, MPI_INT, &type),
            MPI_ERR_VALUE_TOO_LARGE);
  const int lengths[] = {1, 1};
  const MPI_Aint apart[] = {-(LONG_MAX / 4 * 3), LONG_MAX / 4 * 3};
  EXPECT_EQ(MPI_Type_create_hindexed(2, lengths, apart, MPI_INT, &type), MPI_ERR_VALUE_TOO_LARGE);
  EXPECT_EQ(MPI_Type_create_resized(MPI_INT, LONG_MAX, LONG_MAX, &type), MPI_ERR_VALUE_TOO_LARGE);
  MPI_Count bytes = 0;
  EXPECT_EQ(MPI_Pack_size_c(1 << 20, huge, MPI_COMM_SELF, &bytes), MPI_ERR_VALUE_TOO_LARGE);
  EXPECT_EQ(type, MPI_DATATYPE_NULL);
  EXPECT_EQ(MPI_Type_free(&huge), MPI_SUCCESS);
}

TEST_F(Types, EmptyOnesHaveNoBytesAndNoBounds) {
  MPI_Datatype empty, holder;
  ASSERT_EQ(MPI_Type_contiguous(0, MPI_DOUBLE, &empty), MPI_SUCCESS);
  const int lengths[] = {1, 3};
  const MPI_Aint places[] = {1000, 8};
  const MPI_Datatype types[] = {empty, MPI_INT};
  ASSERT_EQ(MPI_Type_create_struct(2, lengths, places, types, &holder), MPI_SUCCESS);
  EXPECT_EQ(size_of(empty), 0);
  EXPECT_EQ(extent_of(empty), 0);
  EXPECT_EQ(extent_of(holder), 12);
  MPI_Status status = {};
  int count = -1;
  EXPECT_EQ(MPI_Get_count(&status, empty, &count), MPI_SUCCESS);
  EXPECT_EQ(count, 0);
  vmpi::set_bytes(status, 4);
  EXPECT_EQ(MPI_Get_count(&status, empty, &count), MPI_SUCCESS);
  EXPECT_EQ(count, MPI_UNDEFINED);
  EXPECT_EQ(MPI_Type_free(&empty), MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_free(&holder), MPI_SUCCESS);
}

TEST_F(Types, ABoxOfAMillionRowsIsAFewBlocks) {
  const int sizes[] = {1000, 1000, 1000}, part[] = {900, 900, 900}, starts[] = {50, 50, 50};
  MPI_Datatype box;
  ASSERT_EQ(MPI_Type_create_subarray(3, sizes, part, starts, MPI_ORDER_C, MPI_DOUBLE, &box),
            MPI_SUCCESS);
  EXPECT_EQ(vmpi::find_datatype(box)->blocks.size(), 1u);
  MPI_Datatype inner = MPI_INT;
  for (int i = 0; i < 6; ++i) {
    MPI_Datatype outer;
    ASSERT_EQ(MPI_Type_create_hvector(100, 1, 8L << (8 * i), inner, &outer), MPI_SUCCESS);
    const auto blocks = static_cast<std::int64_t>(vmpi::find_datatype(outer)->blocks.size());
    EXPECT_LE(blocks, vmpi::TypeBuilder::kWrittenOut);
    if (i > 0) {
      EXPECT_EQ(MPI_Type_free(&inner), MPI_SUCCESS);
    }
    inner = outer;
  }
  MPI_Count size = 0;
  EXPECT_EQ(MPI_Type_size_x(inner, &size), MPI_SUCCESS);
  EXPECT_EQ(size, 4'000'000'000'000);
  EXPECT_EQ(MPI_Type_free(&inner), MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_free(&box), MPI_SUCCESS);
}

TEST_F(Types, DenseOnesThatAreShuffledStayShuffled) {
  std::vector<int> places, lengths(256, 1), values(3 * 256), expected;
  for (int i = 0; i < 256; ++i) places.push_back(i * 77 % 256);
  for (int i = 0; i < 3 * 256; ++i) {
    values[static_cast<std::size_t>(i)] = i;
    expected.push_back(i / 256 * 256 + places[static_cast<std::size_t>(i % 256)]);
  }
  MPI_Datatype shuffled, copy, row;
  ASSERT_EQ(MPI_Type_indexed(256, lengths.data(), places.data(), MPI_INT, &shuffled), MPI_SUCCESS);
  ASSERT_EQ(MPI_Type_dup(shuffled, &copy), MPI_SUCCESS);
  ASSERT_EQ(MPI_Type_contiguous(3, copy, &row), MPI_SUCCESS);
  for (const MPI_Datatype type : {copy, row})
    EXPECT_FALSE(vmpi::find_datatype(type)->is_contiguous);
  std::vector<int> packed(3 * 256);
  int position = 0;
  ASSERT_EQ(MPI_Pack(values.data(), 1, row, packed.data(), 3072, &position, MPI_COMM_SELF),
            MPI_SUCCESS);
  EXPECT_EQ(packed, expected);
  for (MPI_Datatype* const type : {&shuffled, &copy, &row})
    EXPECT_EQ(MPI_Type_free(type), MPI_SUCCESS);
}

TEST_F(Types, DuplicatesAreAsDeepAsWhatTheyCopy) {
  std::vector<int> places, lengths(200, 1);
  for (int i = 0; i < 200; ++i) places.push_back(i * i);
  MPI_Datatype type;
  ASSERT_EQ(MPI_Type_indexed(200, lengths.data(), places.data(), MPI_INT, &type), MPI_SUCCESS);
  for (int i = 0; i < 150; ++i) {
    // Many blocks around the old ones, which a duplicate makes one of again.
    MPI_Datatype copy, outer;
    ASSERT_EQ(MPI_Type_dup(type, &copy), MPI_SUCCESS);
    std::vector<MPI_Datatype> types(200, MPI_SHORT);
    std::vector<MPI_Aint> at;
    types[0] = copy;
    for (int k = 0; k < 200; ++k) at.push_back(k == 0 ? 0 : 500'000 + k * k * 2);
    ASSERT_EQ(MPI_Type_create_struct(200, lengths.data(), at.data(), types.data(), &outer),
              MPI_SUCCESS);
    for (MPI_Datatype* const old : {&type, &copy}) ASSERT_EQ(MPI_Type_free(old), MPI_SUCCESS);
    type = outer;
    ASSERT_LE(vmpi::find_datatype(type)->depth, vmpi::TypeBuilder::kDeepest);
  }
  EXPECT_EQ(vmpi::find_datatype(type)->depth, vmpi::TypeBuilder::kDeepest);
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
}

TEST_F(Types, AreNestedAsDeepAsTheProgramLikes) {
  MPI_Datatype type;
  ASSERT_EQ(MPI_Type_vector(2, 1, 3, MPI_INT, &type), MPI_SUCCESS);
  for (int i = 0; i < 200'000; ++i) {
    const int lengths[] = {1, i % 2000 == 0 ? 1 : 0};
    const MPI_Aint places[] = {0, 1000 + 16 * (i / 2000)};
    const MPI_Datatype types[] = {type, MPI_SHORT};
    MPI_Datatype outer;
    ASSERT_EQ(MPI_Type_create_struct(2, lengths, places, types, &outer), MPI_SUCCESS);
    ASSERT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
    type = outer;
  }
  EXPECT_EQ(size_of(type), 8 + 100 * 2);
  unsigned char memory[4096] = {}, packed[208];
  int position = 0;
  EXPECT_EQ(MPI_Pack(memory, 1, type, packed, 208, &position, MPI_COMM_SELF), MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
}

TEST_F(Types, PackingEndsWhereTheBufferEnds) {
  const int values[] = {1, 2, 3};
  int packed[3], position = 4;
  EXPECT_EQ(MPI_Pack(values, 3, MPI_INT, packed, 12, &position, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
  EXPECT_EQ(position, 4);
  EXPECT_EQ(MPI_Pack(values, 2, MPI_INT, packed, 12, &position, MPI_COMM_SELF), MPI_SUCCESS);
  EXPECT_EQ(position, 12);
  EXPECT_EQ(packed[2], 2);
  EXPECT_EQ(MPI_Pack(values, 1, MPI_INT, packed, 12, &position, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
  position = 13;
  EXPECT_EQ(MPI_Pack(values, 0, MPI_INT, packed, 12, &position, MPI_COMM_SELF), MPI_ERR_ARG);
  position = 0;
  EXPECT_EQ(MPI_Pack(values, 1, MPI_INT, packed, 12, &position, MPI_COMM_NULL), MPI_ERR_COMM);
  int out[3] = {};
  EXPECT_EQ(MPI_Unpack(packed, 4, &position, out, 2, MPI_INT, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
  EXPECT_EQ(out[0], 0);
}

TEST_F(Types, External32TurnsNumbersRound) {
  struct {
    long a;
    short b;
    double c;
    wchar_t d;
  } const in = {-2, 0x1234, 1.0, L'x'};
  auto out = in;
  const int lengths[] = {1, 1, 1, 1};
  const MPI_Aint places[] = {offsetof(decltype(out), a), offsetof(decltype(out), b),
                             offsetof(decltype(out), c), offsetof(decltype(out), d)};
  const MPI_Datatype types[] = {MPI_LONG, MPI_SHORT, MPI_DOUBLE, MPI_WCHAR};
  MPI_Datatype type;
  ASSERT_EQ(MPI_Type_create_struct(4, lengths, places, types, &type), MPI_SUCCESS);
  MPI_Aint size = 0, position = 0;
  ASSERT_EQ(MPI_Pack_external_size("external32", 1, type, &size), MPI_SUCCESS);
  EXPECT_EQ(size, 16);
  unsigned char packed[16];
  ASSERT_EQ(MPI_Pack_external("external32", &in, 1, type, packed, 16, &position), MPI_SUCCESS);
  EXPECT_EQ(position, 16);
  const unsigned char expected[] = {0xff, 0xff, 0xff, 0xfe, 0x12, 0x34, 0x3f, 0xf0,
                                    0,    0,    0,    0,    0,    0,    0,    'x'};
  EXPECT_EQ(std::memcmp(packed, expected, 16), 0);
  std::memset(&out, 0x77, sizeof out);
  position = 0;
  ASSERT_EQ(MPI_Unpack_external("external32", packed, 16, &position, &out, 1, type), MPI_SUCCESS);
  EXPECT_EQ(out.a, -2);
  EXPECT_EQ(out.b, 0x1234);
  EXPECT_EQ(out.c, 1.0);
  EXPECT_EQ(out.d, L'x');
  const long far = 1L << 40;
  position = 0;
  EXPECT_EQ(MPI_Pack_external("external32", &far, 1, MPI_LONG, packed, 16, &position),
            MPI_ERR_CONVERSION);
  EXPECT_EQ(MPI_Pack_external("native", &far, 1, MPI_LONG, packed, 16, &position),
            MPI_ERR_UNSUPPORTED_DATAREP);
  long double third = -1.0L / 3, back = 0;
  EXPECT_EQ(MPI_Pack_external("external32", &third, 1, MPI_LONG_DOUBLE, packed, 16, &position),
            MPI_SUCCESS);
  EXPECT_EQ(packed[0], 0xbf);
  EXPECT_EQ(packed[1], 0xfd);
  position = 0;
  EXPECT_EQ(MPI_Unpack_external("external32", packed, 16, &position, &back, 1, MPI_LONG_DOUBLE),
            MPI_SUCCESS);
  EXPECT_EQ(back, third);
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
}

TEST_F(Types, LargeCountsComeBackAsLargeCounts) {
  MPI_Datatype type;
  ASSERT_EQ(MPI_Type_vector_c(5'000'000'000, 1, 2, MPI_CHAR, &type), MPI_SUCCESS);
  int n = 0, combiner = 0;
  EXPECT_EQ(MPI_Type_get_envelope(type, &n, &n, &n, &combiner), MPI_ERR_TYPE);
  MPI_Count ints = -1, addresses = -1, counts = -1, types = -1;
  ASSERT_EQ(MPI_Type_get_envelope_c(type, &ints, &addresses, &counts, &types, &combiner),
            MPI_SUCCESS);
  EXPECT_EQ(combiner, MPI_COMBINER_VECTOR);
  EXPECT_EQ(ints + addresses, 0);
  EXPECT_EQ(counts, 3);
  EXPECT_EQ(types, 1);
  MPI_Count values[3] = {};
  MPI_Datatype old;
  EXPECT_EQ(MPI_Type_get_contents_c(type, 0, 0, 2, 1, nullptr, nullptr, values, &old), MPI_ERR_ARG);
  ASSERT_EQ(MPI_Type_get_contents_c(type, 0, 0, 3, 1, nullptr, nullptr, values, &old), MPI_SUCCESS);
  EXPECT_EQ(values[0], 5'000'000'000);
  EXPECT_EQ(old, MPI_CHAR);
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
}

TEST_F(Types, AreFoundByPrecisionAndRange) {
  struct {
    int precision, range;
    MPI_Datatype real, complex;
  } const kinds[] = {{6, 37, MPI_REAL4, MPI_COMPLEX8},
                     {1, 38, MPI_REAL8, MPI_COMPLEX16},
                     {15, MPI_UNDEFINED, MPI_REAL8, MPI_COMPLEX16},
                     {19, 1, MPI_REAL16, MPI_COMPLEX32},
                     {MPI_UNDEFINED, 307, MPI_REAL8, MPI_COMPLEX16}};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  for (const auto& kind : kinds) {
    EXPECT_EQ(MPI_Type_create_f90_real(kind.precision, kind.range, &type), MPI_SUCCESS);
    EXPECT_EQ(type, kind.real) << kind.precision;
    EXPECT_EQ(MPI_Type_create_f90_complex(kind.precision, kind.range, &type), MPI_SUCCESS);
    EXPECT_EQ(type, kind.complex) << kind.precision;
  }
  const MPI_Datatype before = type;
  EXPECT_EQ(MPI_Type_create_f90_real(34, 1, &type), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_create_f90_complex(1, 4932, &type), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &type), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_create_f90_integer(39, &type), MPI_ERR_ARG);
  EXPECT_EQ(type, before);
  const MPI_Datatype integers[] = {MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8,
                                   MPI_INTEGER16};
  const int ranges[] = {2, 4, 9, 18, 38};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(MPI_Type_create_f90_integer(ranges[i], &type), MPI_SUCCESS);
    EXPECT_EQ(type, integers[i]);
  }
}

TEST_F(Types, AreFoundByClassAndSize) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  EXPECT_EQ(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type), MPI_SUCCESS);
  EXPECT_EQ(type, MPI_REAL8);
  EXPECT_EQ(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 2, &type), MPI_SUCCESS);
  EXPECT_EQ(type, MPI_INTEGER2);
  EXPECT_EQ(MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &type), MPI_SUCCESS);
  EXPECT_EQ(type, MPI_COMPLEX16);
  EXPECT_EQ(MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &type), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_match_size(1, 4, &type), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type), MPI_SUCCESS);
  EXPECT_EQ(type, MPI_DOUBLE_INT);
  EXPECT_EQ(MPI_Type_get_value_index(MPI_INT, MPI_DOUBLE, &type), MPI_SUCCESS);
  EXPECT_EQ(type, MPI_DATATYPE_NULL);
}

TEST_F(Types, KeepTheirNamesAndGiveThemToDuplicates) {
  MPI_Datatype type, copy;
  ASSERT_EQ(MPI_Type_contiguous(2, MPI_INT, &type), MPI_SUCCESS);
  const std::string longest(MPI_MAX_OBJECT_NAME + 10, 'n');
  ASSERT_EQ(MPI_Type_set_name(type, longest.c_str()), MPI_SUCCESS);
  ASSERT_EQ(MPI_Type_commit(&type), MPI_SUCCESS);
  ASSERT_EQ(MPI_Type_dup(type, &copy), MPI_SUCCESS);
  EXPECT_TRUE(vmpi::find_datatype(copy)->is_committed);
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  ASSERT_EQ(MPI_Type_get_name(copy, name, &length), MPI_SUCCESS);
  EXPECT_EQ(length, MPI_MAX_OBJECT_NAME - 1);
  EXPECT_EQ(name, longest.substr(0, MPI_MAX_OBJECT_NAME - 1));
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_free(&copy), MPI_SUCCESS);
}

TEST_F(Types, HandlesAreNumbersForFortran) {
  EXPECT_EQ(MPI_Type_c2f(MPI_INT), 0x209);
  MPI_Datatype type;
  ASSERT_EQ(MPI_Type_contiguous(2, MPI_INT, &type), MPI_SUCCESS);
  EXPECT_EQ(MPI_Type_f2c(MPI_Type_c2f(type)), type);
  EXPECT_EQ(MPI_Type_fromint(MPI_Type_toint(type)), type);
  MPI_Status status = {1, 2, 3, {4, 5, 6, 7, 8}}, back = {};
  MPI_Fint fortran[MPI_F_STATUS_SIZE] = {};
  EXPECT_EQ(MPI_Status_c2f(&status, fortran), MPI_SUCCESS);
  EXPECT_EQ(fortran[MPI_F_TAG], 2);
  EXPECT_EQ(MPI_Status_f2c(fortran, &back), MPI_SUCCESS);
  EXPECT_EQ(std::memcmp(&status, &back, sizeof back), 0);
  EXPECT_EQ(MPI_Type_free(&type), MPI_SUCCESS);
}

TEST_F(Types, StatusesTellWhatProgramsWroteToThem) {
  MPI_Status status = {};
  int flag = -1, value = 0;
  EXPECT_EQ(MPI_Test_cancelled(&status, &flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 0);
  EXPECT_EQ(MPI_Status_set_cancelled(&status, 1), MPI_SUCCESS);
  EXPECT_EQ(MPI_Test_cancelled(&status, &flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(MPI_Status_set_elements(&status, MPI_DOUBLE_INT, 3), MPI_SUCCESS);
  EXPECT_EQ(MPI_Get_elements(&status, MPI_DOUBLE_INT, &value), MPI_SUCCESS);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(MPI_Get_count(&status, MPI_DOUBLE_INT, &value), MPI_SUCCESS);
  EXPECT_EQ(value, MPI_UNDEFINED);
  vmpi::set_bytes(status, 3ull << 40);
  EXPECT_EQ(MPI_Get_count(&status, MPI_CHAR, &value), MPI_SUCCESS);
  EXPECT_EQ(value, MPI_UNDEFINED);
  EXPECT_EQ(MPI_Status_set_tag(&status, 9), MPI_SUCCESS);
  EXPECT_EQ(MPI_Status_get_tag(&status, &value), MPI_SUCCESS);
  EXPECT_EQ(value, 9);
  EXPECT_EQ(MPI_Get_count(nullptr, MPI_CHAR, &value), MPI_ERR_ARG);
}

}  // namespace
