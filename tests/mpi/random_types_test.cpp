// SPDX-License-Identifier: BSD-2-Clause
// Datatypes against their definition: some thousand random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "mpi_shim/core/datatype.hpp"
#include "mpi_shim/core/status.hpp"
#include "tests/mpi/no_ranks.hpp"
#include "tests/mpi/type_model.hpp"

namespace {

constexpr int kTypes = 2500;

class RandomTypes : public ::testing::Test {
 protected:
  void SetUp() override { no_ranks::begin(); }
  void TearDown() override { no_ranks::end(); }

  /// check(type, random) of each.
  template <class Check>
  void each(Check check) {
    for (int i = 0; i < kTypes; ++i) {
      std::mt19937 random(static_cast<unsigned>(i));
      model::Both both = model::random_type(random, 1 + i % 5);
      SCOPED_TRACE("type " + std::to_string(i));
      check(both, random);
      if (both.is_ours) {
        ASSERT_EQ(MPI_Type_free(&both.handle), MPI_SUCCESS);
      }
      if (HasFailure()) return;
    }
  }
};

/// Memory around all that `count` elements touch.
class Memory {
 public:
  Memory(const model::Type& type, int count, std::mt19937& random)
      : type_(type), count_(count), extent_(type.extent()) {
    std::int64_t low = 0, high = 0;
    for (int i = 0; i < count; ++i) {
      low = std::min(low, i * extent_ + type.true_lb());
      high = std::max(high, i * extent_ + type.true_ub());
    }
    bytes_.resize(static_cast<std::size_t>(high - low) + 1);
    for (unsigned char& byte : bytes_) byte = static_cast<unsigned char>(random());
    origin_ = -low;
  }
  [[nodiscard]] unsigned char* origin() { return bytes_.data() + origin_; }
  [[nodiscard]] std::vector<unsigned char>& bytes() { return bytes_; }

  /// visit(byte) in the order of the map.
  template <class Visit>
  void each_byte(Visit visit) {
    for (int i = 0; i < count_; ++i)
      for (const model::Entry& entry : type_.map)
        for (int k = 0; k < entry.bytes; ++k) visit(origin()[i * extent_ + entry.at + k]);
  }
  [[nodiscard]] std::vector<unsigned char> packed() {
    std::vector<unsigned char> out;
    each_byte([&](unsigned char& byte) { out.push_back(byte); });
    return out;
  }

 private:
  const model::Type& type_;
  int count_;
  std::int64_t extent_;
  std::vector<unsigned char> bytes_;
  std::int64_t origin_ = 0;
};

void expect_as_model(const model::Type& model, MPI_Datatype handle) {
  MPI_Count size = -1, lb = -1, extent = -1;
  EXPECT_EQ(MPI_Type_size_x(handle, &size), MPI_SUCCESS);
  EXPECT_EQ(size, model.size());
  EXPECT_EQ(MPI_Type_get_extent_x(handle, &lb, &extent), MPI_SUCCESS);
  EXPECT_EQ(lb, model.lb());
  EXPECT_EQ(extent, model.extent());
  EXPECT_EQ(MPI_Type_get_true_extent_x(handle, &lb, &extent), MPI_SUCCESS);
  EXPECT_EQ(lb, model.true_lb());
  EXPECT_EQ(extent, model.true_ub() - model.true_lb());
}

void expect_packs(const model::Both& both, MPI_Datatype handle, std::mt19937& random) {
  const int count = static_cast<int>(random() % 4);
  Memory memory(both.model, count, random);
  const std::vector<unsigned char> expected = memory.packed();
  std::vector<unsigned char> packed(expected.size() + 1);
  int position = 0;
  ASSERT_EQ(MPI_Pack(memory.origin(), count, handle, packed.data(), static_cast<int>(packed.size()),
                     &position, MPI_COMM_SELF),
            MPI_SUCCESS);
  packed.resize(expected.size());
  ASSERT_EQ(position, static_cast<int>(expected.size()));
  ASSERT_EQ(packed, expected);
}

TEST_F(RandomTypes, HaveTheSizesAndBoundsOfTheirMaps) {
  each([](const model::Both& both, std::mt19937&) { expect_as_model(both.model, both.handle); });
}

TEST_F(RandomTypes, PackAndUnpackInTheOrderOfTheirMaps) {
  each([](const model::Both& both, std::mt19937& random) {
    expect_packs(both, both.handle, random);
    const int count = static_cast<int>(random() % 4);
    Memory memory(both.model, count, random);
    std::vector<unsigned char> packed(static_cast<std::size_t>(count * both.model.size()));
    for (unsigned char& byte : packed) byte = static_cast<unsigned char>(random());
    // What the model writes, byte for byte; all else stays.
    const std::vector<unsigned char> before = memory.bytes();
    std::size_t next = 0;
    memory.each_byte([&](unsigned char& byte) { byte = packed[next++]; });
    const std::vector<unsigned char> expected = memory.bytes();
    memory.bytes() = before;
    packed.push_back(0);
    int position = 0;
    ASSERT_EQ(MPI_Unpack(packed.data(), static_cast<int>(packed.size()), &position, memory.origin(),
                         count, both.handle, MPI_COMM_SELF),
              MPI_SUCCESS);
    ASSERT_EQ(memory.bytes(), expected);
  });
}

TEST_F(RandomTypes, PackFromAnyByteOn) {
  each([](const model::Both& both, std::mt19937& random) {
    const vmpi::Datatype& type = *vmpi::find_datatype(both.handle);
    const int count = 1 + static_cast<int>(random() % 3);
    Memory memory(both.model, count, random);
    const std::vector<unsigned char> expected = memory.packed();
    for (int i = 0; i < 20; ++i) {
      const std::size_t from = random() % (expected.size() + 2);
      const std::size_t room = random() % (i % 2 == 0 ? 50 : expected.size() + 2);
      std::vector<unsigned char> piece(room + 1, 0x5a);
      const std::size_t got = vmpi::pack(type, count, memory.origin(), from, piece.data(), room);
      const std::size_t left = from < expected.size() ? expected.size() - from : 0;
      ASSERT_EQ(got, std::min(room, left));
      ASSERT_TRUE(std::equal(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(got),
                             expected.begin() + static_cast<std::ptrdiff_t>(left == 0 ? 0 : from)));
      ASSERT_EQ(piece[got], 0x5a);
    }
  });
}

TEST_F(RandomTypes, UnpackPieceAfterPiece) {
  each([](const model::Both& both, std::mt19937& random) {
    const vmpi::Datatype& type = *vmpi::find_datatype(both.handle);
    const int count = 1 + static_cast<int>(random() % 3);
    Memory memory(both.model, count, random);
    std::vector<unsigned char> packed(static_cast<std::size_t>(count * both.model.size()));
    for (unsigned char& byte : packed) byte = static_cast<unsigned char>(random());
    const std::vector<unsigned char> before = memory.bytes();
    std::size_t next = 0;
    memory.each_byte([&](unsigned char& byte) { byte = packed[next++]; });
    const std::vector<unsigned char> expected = memory.bytes();
    memory.bytes() = before;
    for (std::size_t from = 0; from < packed.size();) {
      const std::size_t some = std::min<std::size_t>(1 + random() % 60, packed.size() - from);
      vmpi::unpack(type, count, memory.origin(), from, packed.data() + from, some);
      from += some;
    }
    ASSERT_EQ(memory.bytes(), expected);
  });
}

TEST_F(RandomTypes, CountTheirElementsInAnyNumberOfBytes) {
  each([](const model::Both& both, std::mt19937& random) {
    std::vector<std::int64_t> ends{0};  // bytes after so many entries of two elements
    for (int i = 0; i < 2; ++i)
      for (const model::Entry& entry : both.model.map) ends.push_back(ends.back() + entry.bytes);
    for (int i = 0; i < 20; ++i) {
      const auto bytes =
          static_cast<std::int64_t>(random() % static_cast<unsigned>(ends.back() + 1));
      const auto at = std::lower_bound(ends.begin(), ends.end(), bytes);
      const MPI_Count expected = *at == bytes ? at - ends.begin() : MPI_UNDEFINED;
      MPI_Status status = {};
      vmpi::set_bytes(status, static_cast<std::uint64_t>(bytes));
      MPI_Count got = 0;
      ASSERT_EQ(MPI_Get_elements_x(&status, both.handle, &got), MPI_SUCCESS);
      ASSERT_EQ(got, expected);
      if (expected == MPI_UNDEFINED) continue;
      MPI_Status made = {};
      ASSERT_EQ(MPI_Status_set_elements_x(&made, both.handle, expected), MPI_SUCCESS);
      ASSERT_EQ(vmpi::bytes_of(made), static_cast<std::uint64_t>(bytes));
    }
  });
}

TEST_F(RandomTypes, MoveFromOneTypeToAnother) {
  each([](const model::Both& both, std::mt19937& random) {
    model::Both other = model::random_type(random, 2);
    const int from_count = static_cast<int>(random() % 4),
              to_count = static_cast<int>(random() % 4);
    Memory from(both.model, from_count, random);
    Memory to(other.model, to_count, random);
    const std::vector<unsigned char> packed = from.packed();
    const std::vector<unsigned char> before = to.bytes();
    std::size_t next = 0;
    to.each_byte([&](unsigned char& byte) {
      if (next < packed.size()) byte = packed[next++];
    });
    const std::vector<unsigned char> expected = to.bytes();
    to.bytes() = before;
    const std::uint64_t moved =
        vmpi::copy_typed(*vmpi::find_datatype(both.handle), from_count, from.origin(),
                         *vmpi::find_datatype(other.handle), to_count, to.origin());
    EXPECT_EQ(moved, next);
    EXPECT_EQ(to.bytes(), expected);
    if (other.is_ours) {
      EXPECT_EQ(MPI_Type_free(&other.handle), MPI_SUCCESS);
    }
  });
}

/// Makes a type again of what MPI_Type_get_contents says.
MPI_Datatype make_again(MPI_Datatype type) {
  MPI_Count n_ints = 0, n_addresses = 0, n_counts = 0, n_types = 0;
  int combiner = 0;
  EXPECT_EQ(MPI_Type_get_envelope_c(type, &n_ints, &n_addresses, &n_counts, &n_types, &combiner),
            MPI_SUCCESS);
  if (combiner == MPI_COMBINER_NAMED) return type;
  std::vector<int> i(static_cast<std::size_t>(n_ints) + 1);
  std::vector<MPI_Aint> a(static_cast<std::size_t>(n_addresses) + 1);
  std::vector<MPI_Count> c(static_cast<std::size_t>(n_counts) + 1);
  std::vector<MPI_Datatype> t(static_cast<std::size_t>(n_types) + 1);
  EXPECT_EQ(MPI_Type_get_contents_c(type, n_ints, n_addresses, n_counts, n_types, i.data(),
                                    a.data(), c.data(), t.data()),
            MPI_SUCCESS);
  std::vector<MPI_Datatype> parts;
  for (MPI_Count k = 0; k < n_types; ++k)
    parts.push_back(make_again(t[static_cast<std::size_t>(k)]));
  MPI_Datatype made = MPI_DATATYPE_NULL;
  const int n = i[0];
  const int* const rest = i.data() + 1;
  int error = MPI_ERR_OTHER;
  switch (combiner) {
    case MPI_COMBINER_DUP:
      error = MPI_Type_dup(parts[0], &made);
      break;
    case MPI_COMBINER_CONTIGUOUS:
      error = MPI_Type_contiguous(n, parts[0], &made);
      break;
    case MPI_COMBINER_VECTOR:
      error = MPI_Type_vector(n, rest[0], rest[1], parts[0], &made);
      break;
    case MPI_COMBINER_HVECTOR:
      error = n_counts != 0 ? MPI_Type_create_hvector_c(c[0], c[1], c[2], parts[0], &made)
                            : MPI_Type_create_hvector(n, rest[0], a[0], parts[0], &made);
      break;
    case MPI_COMBINER_INDEXED:
      error = MPI_Type_indexed(n, rest, rest + n, parts[0], &made);
      break;
    case MPI_COMBINER_HINDEXED:
      error = MPI_Type_create_hindexed(n, rest, a.data(), parts[0], &made);
      break;
    case MPI_COMBINER_INDEXED_BLOCK:
      error = MPI_Type_create_indexed_block(n, rest[0], rest + 1, parts[0], &made);
      break;
    case MPI_COMBINER_HINDEXED_BLOCK:
      error = MPI_Type_create_hindexed_block(n, rest[0], a.data(), parts[0], &made);
      break;
    case MPI_COMBINER_STRUCT:
      error = MPI_Type_create_struct(n, rest, a.data(), parts.data(), &made);
      break;
    case MPI_COMBINER_SUBARRAY:
      error =
          MPI_Type_create_subarray(n, rest, rest + n, rest + 2 * n, rest[3 * n], parts[0], &made);
      break;
    case MPI_COMBINER_DARRAY: {
      const int d = i[2];
      const int* const first = i.data() + 3;
      error = MPI_Type_create_darray(n, i[1], d, first, first + d, first + 2 * d, first + 3 * d,
                                     first[4 * d], parts[0], &made);
      break;
    }
    case MPI_COMBINER_RESIZED:
      error = MPI_Type_create_resized(parts[0], a[0], a[1], &made);
      break;
    default:
      ADD_FAILURE() << "combiner " << combiner;
  }
  EXPECT_EQ(error, MPI_SUCCESS);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    int kind = 0, ints = 0, addresses = 0, types = 0;
    if (MPI_Type_get_envelope(t[k], &ints, &addresses, &types, &kind) == MPI_SUCCESS &&
        kind == MPI_COMBINER_NAMED)
      continue;
    EXPECT_EQ(MPI_Type_free(&parts[k]), MPI_SUCCESS);
    EXPECT_EQ(MPI_Type_free(&t[k]), MPI_SUCCESS);
  }
  return made;
}

TEST_F(RandomTypes, AreMadeAgainOfTheirContents) {
  each([](const model::Both& both, std::mt19937& random) {
    MPI_Datatype again = make_again(both.handle);
    expect_as_model(both.model, again);
    expect_packs(both, again, random);
    if (both.is_ours) {
      EXPECT_EQ(MPI_Type_free(&again), MPI_SUCCESS);
    }
  });
}

}  // namespace
