// SPDX-License-Identifier: BSD-2-Clause
// Every collective against what one process computes plainly (MPI 5.0 chapter 6).
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "tests/mpi/in_ranks.hpp"

namespace verbatim::mpi {
namespace {

/// What rank `rank` contributes at place `i`: small, so that sums fit the narrowest type.
template <class T>
T value(int rank, int i) {
  return static_cast<T>((rank * 7 + i * 3) % 11);
}
template <class T>
std::vector<T> values(int rank, int count) {
  std::vector<T> out(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = value<T>(rank, i);
  return out;
}
template <class T>
std::vector<T> marked(int count) {
  return std::vector<T>(static_cast<std::size_t>(count), static_cast<T>(99));
}
/// Rows of all ranks, one after the other.
template <class T>
std::vector<T> rows(int ranks, int count) {
  std::vector<T> out;
  for (int i = 0; i < ranks; ++i) {
    const auto row = values<T>(i, count);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

template <class T>
class Collective : public ::testing::Test {
 protected:
  const int rank_ = rank_in(MPI_COMM_WORLD);
  const int size_ = size_of(MPI_COMM_WORLD);
  const MPI_Datatype type_ = type_of(T{});
  const std::vector<int> counts_{0, 1, 5, 300, 5000};
};
using Types = ::testing::Types<char, short, int, long long, double>;
TYPED_TEST_SUITE(Collective, Types);

TYPED_TEST(Collective, BcastGivesAllWhatTheRootHas) {
  for (const int count : this->counts_) {
    for (int root = 0; root < this->size_; ++root) {
      auto data = this->rank_ == root ? values<TypeParam>(root, count) : marked<TypeParam>(count);
      EXPECT_EQ(MPI_Bcast(data.data(), count, this->type_, root, MPI_COMM_WORLD), MPI_SUCCESS);
      EXPECT_EQ(data, values<TypeParam>(root, count));
    }
  }
}

TYPED_TEST(Collective, GatherPutsRowsInTheOrderOfRanks) {
  for (const int count : this->counts_) {
    for (int root = 0; root < this->size_; ++root) {
      const auto own = values<TypeParam>(this->rank_, count);
      auto all = marked<TypeParam>(this->size_ * count);
      EXPECT_EQ(MPI_Gather(own.data(), count, this->type_, all.data(), count, this->type_, root,
                           MPI_COMM_WORLD),
                MPI_SUCCESS);
      EXPECT_EQ(all, this->rank_ == root ? rows<TypeParam>(this->size_, count)
                                         : marked<TypeParam>(this->size_ * count));
    }
  }
}

TYPED_TEST(Collective, GatherInPlaceLeavesTheRootsRowWhereItIs) {
  for (int root = 0; root < this->size_; ++root) {
    constexpr int kCount = 40;
    const auto own = values<TypeParam>(this->rank_, kCount);
    auto all = marked<TypeParam>(this->size_ * kCount);
    std::copy(own.begin(), own.end(), all.begin() + this->rank_ * kCount);
    const bool is_root = this->rank_ == root;
    EXPECT_EQ(MPI_Gather(is_root ? MPI_IN_PLACE : own.data(), kCount, this->type_, all.data(),
                         kCount, this->type_, root, MPI_COMM_WORLD),
              MPI_SUCCESS);
    if (is_root) {
      EXPECT_EQ(all, rows<TypeParam>(this->size_, kCount));
    }
  }
}

TYPED_TEST(Collective, ScatterGivesEachItsRow) {
  for (const int count : this->counts_) {
    for (int root = 0; root < this->size_; ++root) {
      const auto all =
          this->rank_ == root ? rows<TypeParam>(this->size_, count) : std::vector<TypeParam>();
      auto own = marked<TypeParam>(count);
      EXPECT_EQ(MPI_Scatter(all.data(), count, this->type_, own.data(), count, this->type_, root,
                            MPI_COMM_WORLD),
                MPI_SUCCESS);
      EXPECT_EQ(own, values<TypeParam>(this->rank_, count));
    }
  }
}

TYPED_TEST(Collective, ScatterInPlaceLeavesTheRootsRowWhereItIs) {
  for (int root = 0; root < this->size_; ++root) {
    auto all = rows<TypeParam>(this->size_, 9);
    auto own = marked<TypeParam>(9);
    const bool is_root = this->rank_ == root;
    EXPECT_EQ(MPI_Scatter(all.data(), 9, this->type_, is_root ? MPI_IN_PLACE : own.data(), 9,
                          this->type_, root, MPI_COMM_WORLD),
              MPI_SUCCESS);
    if (!is_root) {
      EXPECT_EQ(own, values<TypeParam>(this->rank_, 9));
    }
    EXPECT_EQ(all, rows<TypeParam>(this->size_, 9));
  }
}

/// Rows of 0, 1, 2 ... elements with a gap of two between them, the last rank's first.
struct Ragged {
  explicit Ragged(int ranks) {
    for (int i = 0; i < ranks; ++i) counts.push_back(i);
    displacements.resize(counts.size());
    for (int i = ranks; i-- > 0;) {
      displacements[static_cast<std::size_t>(i)] = total;
      total += i + 2;
    }
  }
  template <class T>
  void fill_row(std::vector<T>& out, int rank) const {
    const auto i = static_cast<std::size_t>(rank);
    const auto row = values<T>(rank, counts[i]);
    std::copy(row.begin(), row.end(), out.begin() + displacements[i]);
  }
  template <class T>
  std::vector<T> with_row_of(int rank) const {
    auto out = marked<T>(total);
    fill_row(out, rank);
    return out;
  }
  template <class T>
  std::vector<T> filled() const {
    auto out = marked<T>(total);
    for (int i = 0; i < static_cast<int>(counts.size()); ++i) fill_row(out, i);
    return out;
  }
  std::vector<int> counts, displacements;
  int total = 0;
};

TYPED_TEST(Collective, GathervFillsRowsAndLeavesGaps) {
  const Ragged ragged(this->size_);
  for (int root = 0; root < this->size_; ++root) {
    const auto own = values<TypeParam>(this->rank_, this->rank_);
    auto all = marked<TypeParam>(ragged.total);
    EXPECT_EQ(MPI_Gatherv(own.data(), this->rank_, this->type_, all.data(), ragged.counts.data(),
                          ragged.displacements.data(), this->type_, root, MPI_COMM_WORLD),
              MPI_SUCCESS);
    if (this->rank_ == root) {
      EXPECT_EQ(all, ragged.filled<TypeParam>());
    }
  }
}

TYPED_TEST(Collective, GathervInPlaceLeavesTheRootsRowWhereItIs) {
  const Ragged ragged(this->size_);
  for (int root = 0; root < this->size_; ++root) {
    const auto own = values<TypeParam>(this->rank_, this->rank_);
    auto all = ragged.with_row_of<TypeParam>(this->rank_);
    const bool is_root = this->rank_ == root;
    EXPECT_EQ(MPI_Gatherv(is_root ? MPI_IN_PLACE : own.data(), this->rank_, this->type_, all.data(),
                          ragged.counts.data(), ragged.displacements.data(), this->type_, root,
                          MPI_COMM_WORLD),
              MPI_SUCCESS);
    EXPECT_EQ(all,
              is_root ? ragged.filled<TypeParam>() : ragged.with_row_of<TypeParam>(this->rank_));
  }
}

TYPED_TEST(Collective, ScattervInPlaceLeavesAllRowsWhereTheyAre) {
  const Ragged ragged(this->size_);
  for (int root = 0; root < this->size_; ++root) {
    auto all = ragged.filled<TypeParam>();
    auto own = marked<TypeParam>(this->rank_);
    const bool is_root = this->rank_ == root;
    EXPECT_EQ(MPI_Scatterv(all.data(), ragged.counts.data(), ragged.displacements.data(),
                           this->type_, is_root ? MPI_IN_PLACE : own.data(), this->rank_,
                           this->type_, root, MPI_COMM_WORLD),
              MPI_SUCCESS);
    if (!is_root) {
      EXPECT_EQ(own, values<TypeParam>(this->rank_, this->rank_));
    }
    EXPECT_EQ(all, ragged.filled<TypeParam>());
  }
}

TYPED_TEST(Collective, ScattervGivesEachItsRow) {
  const Ragged ragged(this->size_);
  const auto all = ragged.filled<TypeParam>();
  for (int root = 0; root < this->size_; ++root) {
    auto own = marked<TypeParam>(this->rank_);
    EXPECT_EQ(MPI_Scatterv(all.data(), ragged.counts.data(), ragged.displacements.data(),
                           this->type_, own.data(), this->rank_, this->type_, root, MPI_COMM_WORLD),
              MPI_SUCCESS);
    EXPECT_EQ(own, values<TypeParam>(this->rank_, this->rank_));
  }
}

TYPED_TEST(Collective, AllgatherGivesAllRowsToAll) {
  for (const int count : this->counts_) {
    const auto own = values<TypeParam>(this->rank_, count);
    auto all = marked<TypeParam>(this->size_ * count);
    EXPECT_EQ(MPI_Allgather(own.data(), count, this->type_, all.data(), count, this->type_,
                            MPI_COMM_WORLD),
              MPI_SUCCESS);
    EXPECT_EQ(all, rows<TypeParam>(this->size_, count));
    auto in_place = marked<TypeParam>(this->size_ * count);
    std::copy(own.begin(), own.end(), in_place.begin() + this->rank_ * count);
    EXPECT_EQ(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in_place.data(), count, this->type_,
                            MPI_COMM_WORLD),
              MPI_SUCCESS);
    EXPECT_EQ(in_place, rows<TypeParam>(this->size_, count));
  }
}

TYPED_TEST(Collective, AllgathervFillsRowsAndLeavesGaps) {
  const Ragged ragged(this->size_);
  const auto own = values<TypeParam>(this->rank_, this->rank_);
  auto all = marked<TypeParam>(ragged.total);
  EXPECT_EQ(MPI_Allgatherv(own.data(), this->rank_, this->type_, all.data(), ragged.counts.data(),
                           ragged.displacements.data(), this->type_, MPI_COMM_WORLD),
            MPI_SUCCESS);
  EXPECT_EQ(all, ragged.filled<TypeParam>());
  all = ragged.with_row_of<TypeParam>(this->rank_);
  EXPECT_EQ(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), ragged.counts.data(),
                           ragged.displacements.data(), this->type_, MPI_COMM_WORLD),
            MPI_SUCCESS);
  EXPECT_EQ(all, ragged.filled<TypeParam>());
}

/// What rank `from` has for rank `to`.
template <class T>
std::vector<T> parcel(int from, int to, int count) {
  return values<T>(from * 5 + to, count);
}

TYPED_TEST(Collective, AlltoallGivesEachWhatEachHasForIt) {
  for (const int count : this->counts_) {
    std::vector<TypeParam> send;
    std::vector<TypeParam> expected;
    for (int i = 0; i < this->size_; ++i) {
      const auto to = parcel<TypeParam>(this->rank_, i, count);
      const auto from = parcel<TypeParam>(i, this->rank_, count);
      send.insert(send.end(), to.begin(), to.end());
      expected.insert(expected.end(), from.begin(), from.end());
    }
    auto receive = marked<TypeParam>(this->size_ * count);
    EXPECT_EQ(MPI_Alltoall(send.data(), count, this->type_, receive.data(), count, this->type_,
                           MPI_COMM_WORLD),
              MPI_SUCCESS);
    EXPECT_EQ(receive, expected);
    EXPECT_EQ(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, send.data(), count, this->type_,
                           MPI_COMM_WORLD),
              MPI_SUCCESS);
    EXPECT_EQ(send, expected);
  }
}

TYPED_TEST(Collective, AlltoallvAndAlltoallwMoveRowsOfAnyLength) {
  // From rank i to rank j go (i + 2 j) % 4 elements; in bytes for the w form.
  const auto length = [](int from, int to) { return (from + 2 * to) % 4; };
  std::vector<int> send_counts, send_at, receive_counts, receive_at, send_bytes, receive_bytes;
  std::vector<TypeParam> send, expected;
  for (int i = 0; i < this->size_; ++i) {
    send_counts.push_back(length(this->rank_, i));
    send_at.push_back(static_cast<int>(send.size()));
    send_bytes.push_back(static_cast<int>(send.size() * sizeof(TypeParam)));
    const auto to = parcel<TypeParam>(this->rank_, i, send_counts.back());
    send.insert(send.end(), to.begin(), to.end());
    send.push_back(TypeParam{77});
    receive_counts.push_back(length(i, this->rank_));
    receive_at.push_back(static_cast<int>(expected.size()));
    receive_bytes.push_back(static_cast<int>(expected.size() * sizeof(TypeParam)));
    const auto from = parcel<TypeParam>(i, this->rank_, receive_counts.back());
    expected.insert(expected.end(), from.begin(), from.end());
    expected.push_back(TypeParam{99});
  }
  auto receive = marked<TypeParam>(static_cast<int>(expected.size()));
  EXPECT_EQ(
      MPI_Alltoallv(send.data(), send_counts.data(), send_at.data(), this->type_, receive.data(),
                    receive_counts.data(), receive_at.data(), this->type_, MPI_COMM_WORLD),
      MPI_SUCCESS);
  EXPECT_EQ(receive, expected);

  const std::vector<MPI_Datatype> types(static_cast<std::size_t>(this->size_), this->type_);
  receive = marked<TypeParam>(static_cast<int>(expected.size()));
  EXPECT_EQ(MPI_Alltoallw(send.data(), send_counts.data(), send_bytes.data(), types.data(),
                          receive.data(), receive_counts.data(), receive_bytes.data(), types.data(),
                          MPI_COMM_WORLD),
            MPI_SUCCESS);
  EXPECT_EQ(receive, expected);
}

TYPED_TEST(Collective, AlltoallvAndAlltoallwInPlaceSwapRows) {
  // In place, what goes to a rank is as long as what comes from it.
  const auto length = [](int a, int b) { return (a + b) % 3; };
  std::vector<int> counts, at;
  std::vector<TypeParam> data, expected;
  for (int i = 0; i < this->size_; ++i) {
    counts.push_back(length(i, this->rank_));
    at.push_back(static_cast<int>(data.size()));
    const auto to = parcel<TypeParam>(this->rank_, i, counts.back());
    const auto from = parcel<TypeParam>(i, this->rank_, counts.back());
    data.insert(data.end(), to.begin(), to.end());
    expected.insert(expected.end(), from.begin(), from.end());
  }
  const auto before = data;
  EXPECT_EQ(MPI_Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, data.data(),
                          counts.data(), at.data(), this->type_, MPI_COMM_WORLD),
            MPI_SUCCESS);
  EXPECT_EQ(data, expected);

  const std::vector<MPI_Datatype> types(counts.size(), this->type_);
  for (int& each : at) each *= static_cast<int>(sizeof(TypeParam));
  data = before;
  EXPECT_EQ(MPI_Alltoallw(MPI_IN_PLACE, nullptr, nullptr, nullptr, data.data(), counts.data(),
                          at.data(), types.data(), MPI_COMM_WORLD),
            MPI_SUCCESS);
  EXPECT_EQ(data, expected);
}

/// Sums and maxima of ranks [first, last].
template <class T>
std::vector<T> sums(int first, int last, int count) {
  std::vector<T> out(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    for (int rank = first; rank <= last; ++rank)
      out[static_cast<std::size_t>(i)] =
          static_cast<T>(out[static_cast<std::size_t>(i)] + value<T>(rank, i));
  return out;
}
template <class T>
std::vector<T> maxima(int ranks, int count) {
  auto out = values<T>(0, count);
  for (int rank = 1; rank < ranks; ++rank)
    for (int i = 0; i < count; ++i)
      out[static_cast<std::size_t>(i)] =
          std::max(out[static_cast<std::size_t>(i)], value<T>(rank, i));
  return out;
}
/// MPI_CHAR has no sums.
template <class T>
MPI_Datatype number_type() {
  return std::is_same_v<T, char> ? MPI_SIGNED_CHAR : type_of(T{});
}

TYPED_TEST(Collective, ReduceAndAllreduceAddAndFindTheLargest) {
  const MPI_Datatype type = number_type<TypeParam>();
  for (const int count : this->counts_) {
    const auto own = values<TypeParam>(this->rank_, count);
    for (int root = 0; root < this->size_; ++root) {
      auto sum = marked<TypeParam>(count);
      EXPECT_EQ(MPI_Reduce(own.data(), sum.data(), count, type, MPI_SUM, root, MPI_COMM_WORLD),
                MPI_SUCCESS);
      EXPECT_EQ(sum, this->rank_ == root ? sums<TypeParam>(0, this->size_ - 1, count)
                                         : marked<TypeParam>(count));
      auto in_place = own;
      const bool is_root = this->rank_ == root;
      EXPECT_EQ(MPI_Reduce(is_root ? MPI_IN_PLACE : own.data(), is_root ? in_place.data() : nullptr,
                           count, type, MPI_MAX, root, MPI_COMM_WORLD),
                MPI_SUCCESS);
      if (is_root) {
        EXPECT_EQ(in_place, maxima<TypeParam>(this->size_, count));
      }
    }
    auto sum = marked<TypeParam>(count);
    EXPECT_EQ(MPI_Allreduce(own.data(), sum.data(), count, type, MPI_SUM, MPI_COMM_WORLD),
              MPI_SUCCESS);
    EXPECT_EQ(sum, sums<TypeParam>(0, this->size_ - 1, count));
    auto in_place = own;
    EXPECT_EQ(MPI_Allreduce(MPI_IN_PLACE, in_place.data(), count, type, MPI_MAX, MPI_COMM_WORLD),
              MPI_SUCCESS);
    EXPECT_EQ(in_place, maxima<TypeParam>(this->size_, count));
  }
}

TYPED_TEST(Collective, ScanIncludesTheRankAndExscanDoesNot) {
  const MPI_Datatype type = number_type<TypeParam>();
  for (const int count : this->counts_) {
    const auto own = values<TypeParam>(this->rank_, count);
    auto out = marked<TypeParam>(count);
    EXPECT_EQ(MPI_Scan(own.data(), out.data(), count, type, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
    EXPECT_EQ(out, sums<TypeParam>(0, this->rank_, count));
    out = own;
    EXPECT_EQ(MPI_Scan(MPI_IN_PLACE, out.data(), count, type, MPI_SUM, MPI_COMM_WORLD),
              MPI_SUCCESS);
    EXPECT_EQ(out, sums<TypeParam>(0, this->rank_, count));
    out = marked<TypeParam>(count);
    EXPECT_EQ(MPI_Exscan(own.data(), out.data(), count, type, MPI_SUM, MPI_COMM_WORLD),
              MPI_SUCCESS);
    if (this->rank_ > 0) {
      EXPECT_EQ(out, sums<TypeParam>(0, this->rank_ - 1, count));
    }
    out = own;
    EXPECT_EQ(MPI_Exscan(MPI_IN_PLACE, out.data(), count, type, MPI_SUM, MPI_COMM_WORLD),
              MPI_SUCCESS);
    if (this->rank_ > 0) {
      EXPECT_EQ(out, sums<TypeParam>(0, this->rank_ - 1, count));
    }
  }
}

TYPED_TEST(Collective, ReduceScatterGivesEachItsPartOfTheSum) {
  const MPI_Datatype type = number_type<TypeParam>();
  std::vector<int> counts;
  for (int i = 0; i < this->size_; ++i) counts.push_back((i * 3 + 2) % 5);
  const int total = std::accumulate(counts.begin(), counts.end(), 0);
  const int before = std::accumulate(counts.begin(), counts.begin() + this->rank_, 0);
  const int mine = counts[static_cast<std::size_t>(this->rank_)];
  const auto own = values<TypeParam>(this->rank_, total);
  const auto all = sums<TypeParam>(0, this->size_ - 1, total);
  const std::vector<TypeParam> expected(all.begin() + before, all.begin() + before + mine);
  auto out = marked<TypeParam>(mine);
  EXPECT_EQ(
      MPI_Reduce_scatter(own.data(), out.data(), counts.data(), type, MPI_SUM, MPI_COMM_WORLD),
      MPI_SUCCESS);
  EXPECT_EQ(out, expected);
  auto in_place = own;
  EXPECT_EQ(MPI_Reduce_scatter(MPI_IN_PLACE, in_place.data(), counts.data(), type, MPI_SUM,
                               MPI_COMM_WORLD),
            MPI_SUCCESS);
  in_place.resize(static_cast<std::size_t>(mine));
  EXPECT_EQ(in_place, expected);

  const auto row = values<TypeParam>(this->rank_, 3 * this->size_);
  const auto row_sums = sums<TypeParam>(0, this->size_ - 1, 3 * this->size_);
  auto part = marked<TypeParam>(3);
  EXPECT_EQ(MPI_Reduce_scatter_block(row.data(), part.data(), 3, type, MPI_SUM, MPI_COMM_WORLD),
            MPI_SUCCESS);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), row_sums.begin() + 3 * this->rank_));
  in_place = row;
  EXPECT_EQ(
      MPI_Reduce_scatter_block(MPI_IN_PLACE, in_place.data(), 3, type, MPI_SUM, MPI_COMM_WORLD),
      MPI_SUCCESS);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), in_place.begin()));
}

// Maps x -> a x + b, composed: associative, and not commutative. A program's own operation on a type
// of its own, which has a gap.
struct Map {
  unsigned a;
  int gap;
  unsigned b;
};
Map map_of(int rank, int i) {
  return {static_cast<unsigned>(2 * (rank + i) + 3), -5, static_cast<unsigned>(rank * 17 + i + 1)};
}
/// First `left`, then `right`.
Map then(const Map& left, const Map& right) {
  return {left.a * right.a, -5, left.b * right.a + right.b};
}
void compose(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* const left = static_cast<const Map*>(in);
  auto* const right = static_cast<Map*>(inout);
  for (int i = 0; i < *count; ++i) {
    const Map both = then(left[i], right[i]);
    right[i].a = both.a;
    right[i].b = both.b;
  }
}

class InOrder : public ::testing::Test {
 protected:
  static constexpr int kCount = 6;

  void SetUp() override {
    const int lengths[] = {1, 1};
    const MPI_Aint at[] = {offsetof(Map, a), offsetof(Map, b)};
    const MPI_Datatype types[] = {MPI_UNSIGNED, MPI_UNSIGNED};
    MPI_Type_create_struct(2, lengths, at, types, &type_);
    MPI_Type_commit(&type_);
    MPI_Op_create(compose, 0, &op_);
    for (int i = 0; i < kCount; ++i) own_.push_back(map_of(rank_, i));
    out_.assign(kCount, Map{0, 1234, 0});
  }
  void TearDown() override {
    MPI_Op_free(&op_);
    MPI_Type_free(&type_);
  }
  void expect(const Map* got, int first, int last, int from, int count) const {
    for (int i = 0; i < count; ++i) {
      Map wanted = map_of(first, from + i);
      for (int rank = first + 1; rank <= last; ++rank)
        wanted = then(wanted, map_of(rank, from + i));
      EXPECT_EQ(got[i].a, wanted.a) << i;
      EXPECT_EQ(got[i].b, wanted.b) << i;
      EXPECT_EQ(got[i].gap, 1234) << "gaps are not written";
    }
  }
  const int rank_ = rank_in(MPI_COMM_WORLD);
  const int size_ = size_of(MPI_COMM_WORLD);
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  MPI_Op op_ = MPI_OP_NULL;
  std::vector<Map> own_, out_;
};

TEST_F(InOrder, ReduceComposesInTheOrderOfRanksToAnyRoot) {
  for (int root = 0; root < size_; ++root) {
    out_.assign(kCount, Map{0, 1234, 0});
    EXPECT_EQ(MPI_Reduce(own_.data(), out_.data(), kCount, type_, op_, root, MPI_COMM_WORLD),
              MPI_SUCCESS);
    if (rank_ == root) expect(out_.data(), 0, size_ - 1, 0, kCount);
  }
}

TEST_F(InOrder, AllreduceComposesInTheOrderOfRanks) {
  EXPECT_EQ(MPI_Allreduce(own_.data(), out_.data(), kCount, type_, op_, MPI_COMM_WORLD),
            MPI_SUCCESS);
  expect(out_.data(), 0, size_ - 1, 0, kCount);
}

TEST_F(InOrder, ScanAndExscanComposeInTheOrderOfRanks) {
  EXPECT_EQ(MPI_Scan(own_.data(), out_.data(), kCount, type_, op_, MPI_COMM_WORLD), MPI_SUCCESS);
  expect(out_.data(), 0, rank_, 0, kCount);
  out_.assign(kCount, Map{0, 1234, 0});
  EXPECT_EQ(MPI_Exscan(own_.data(), out_.data(), kCount, type_, op_, MPI_COMM_WORLD), MPI_SUCCESS);
  if (rank_ > 0) expect(out_.data(), 0, rank_ - 1, 0, kCount);
}

TEST_F(InOrder, ReduceScatterBlockComposesInTheOrderOfRanks) {
  std::vector<Map> row;
  for (int i = 0; i < 2 * size_; ++i) row.push_back(map_of(rank_, i));
  EXPECT_EQ(MPI_Reduce_scatter_block(row.data(), out_.data(), 2, type_, op_, MPI_COMM_WORLD),
            MPI_SUCCESS);
  expect(out_.data(), 0, size_ - 1, 2 * rank_, 2);
}

TEST(DerivedTypes, AColumnIsBroadcastIntoAColumn) {
  const int rank = rank_in(MPI_COMM_WORLD);
  MPI_Datatype column;
  MPI_Type_vector(5, 1, 3, MPI_INT, &column);
  MPI_Type_commit(&column);
  std::vector<int> matrix(15, rank == 0 ? 4 : -1);
  EXPECT_EQ(MPI_Bcast(matrix.data() + 1, 1, column, 0, MPI_COMM_WORLD), MPI_SUCCESS);
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(matrix[i], rank == 0 || i % 3 == 1 ? 4 : -1);
  MPI_Type_free(&column);
}

TEST(DerivedTypes, RowsAreGatheredIntoColumns) {
  const int rank = rank_in(MPI_COMM_WORLD);
  const int size = size_of(MPI_COMM_WORLD);
  MPI_Datatype column, next_column;
  MPI_Type_vector(4, 1, size, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &next_column);
  MPI_Type_commit(&next_column);
  const int row[] = {rank, rank + 10, rank + 20, rank + 30};
  std::vector<int> matrix(static_cast<std::size_t>(4 * size), -1);
  EXPECT_EQ(MPI_Gather(row, 4, MPI_INT, matrix.data(), 1, next_column, size - 1, MPI_COMM_WORLD),
            MPI_SUCCESS);
  const auto expect_columns = [&] {
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < size; ++j)
        EXPECT_EQ(matrix[static_cast<std::size_t>(i * size + j)], j + 10 * i);
  };
  if (rank == size - 1) expect_columns();
  std::fill(matrix.begin(), matrix.end(), -1);
  EXPECT_EQ(MPI_Allgather(row, 4, MPI_INT, matrix.data(), 1, next_column, MPI_COMM_WORLD),
            MPI_SUCCESS);
  expect_columns();
  MPI_Type_free(&column);
  MPI_Type_free(&next_column);
}

TEST(Barrier, HoldsBackUntilTheLastHasCome) {
  // Each rank in turn comes last; what it had said before is then there for all.
  const int rank = rank_in(MPI_COMM_WORLD);
  const int size = size_of(MPI_COMM_WORLD);
  for (int late = 0; late < size; ++late) {
    if (rank == late)
      for (int i = 0; i < size; ++i)
        if (i != rank) MPI_Send(&late, 1, MPI_INT, i, 5, MPI_COMM_WORLD);
    EXPECT_EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
    if (rank == late) continue;
    int said = -1;
    MPI_Recv(&said, 1, MPI_INT, late, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(said, late);
  }
}

class Mistakes : public ::testing::Test {
 protected:
  ErrorsAreReturned returned_{MPI_COMM_WORLD};
  ErrorsAreReturned returned_too_{MPI_COMM_SELF};
  int data_[16] = {};
  int more_[16] = {};
};

TEST_F(Mistakes, HaveTheErrorClassesOfTheStandard) {
  const int size = size_of(MPI_COMM_WORLD);
  EXPECT_EQ(class_of(MPI_Bcast(data_, -1, MPI_INT, 0, MPI_COMM_WORLD)), MPI_ERR_COUNT);
  EXPECT_EQ(class_of(MPI_Bcast(data_, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD)), MPI_ERR_TYPE);
  EXPECT_EQ(class_of(MPI_Bcast(data_, 1, MPI_INT, size, MPI_COMM_WORLD)), MPI_ERR_ROOT);
  EXPECT_EQ(class_of(MPI_Bcast(data_, 1, MPI_INT, -1, MPI_COMM_WORLD)), MPI_ERR_ROOT);
  EXPECT_EQ(class_of(MPI_Bcast(nullptr, 1, MPI_INT, 0, MPI_COMM_WORLD)), MPI_ERR_BUFFER);
  EXPECT_EQ(class_of(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD)), MPI_ERR_BUFFER);
  EXPECT_EQ(class_of(MPI_Barrier(MPI_COMM_NULL)), MPI_ERR_COMM);
  EXPECT_EQ(class_of(MPI_Allreduce(data_, more_, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD)),
            MPI_ERR_OP);
  EXPECT_EQ(class_of(MPI_Allreduce(data_, more_, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD)),
            MPI_ERR_OP);
  EXPECT_EQ(class_of(MPI_Allreduce(data_, data_, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD)),
            MPI_ERR_BUFFER);
  EXPECT_EQ(class_of(MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, nullptr, 1, MPI_INT, MPI_COMM_WORLD)),
            MPI_ERR_BUFFER);
  MPI_Datatype raw;
  MPI_Type_contiguous(2, MPI_INT, &raw);
  EXPECT_EQ(class_of(MPI_Bcast(data_, 1, raw, 0, MPI_COMM_WORLD)), MPI_ERR_TYPE);
  MPI_Type_free(&raw);
  // None of them has sent anything: what comes next is right.
  int sum = 0;
  const int one = 1;
  EXPECT_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
  EXPECT_EQ(sum, size);
}

/// Of each call that is given one buffer twice where MPI_IN_PLACE is meant: at the ranks that give and
/// take.
TEST_F(Mistakes, OneBufferForBothIsRefused) {
  const int rank = rank_in(MPI_COMM_WORLD);
  const int size = size_of(MPI_COMM_WORLD);
  std::vector<int> both(static_cast<std::size_t>(size));
  const std::vector<int> ones(both.size(), 1);
  std::vector<int> places;
  for (int i = 0; i < size; ++i) places.push_back(i);
  std::vector<int> bytes;
  for (int i = 0; i < size; ++i) bytes.push_back(i * static_cast<int>(sizeof(int)));
  const std::vector<MPI_Datatype> types(both.size(), MPI_INT);
  int* const at = both.data();
  int* const own = at + rank;
  MPI_Request request = MPI_REQUEST_NULL;
  const auto world = MPI_COMM_WORLD;
  const int errors[] = {
      MPI_Allreduce(at, at, size, MPI_INT, MPI_SUM, world),
      MPI_Scan(at, at, size, MPI_INT, MPI_SUM, world),
      MPI_Exscan(at, at, size, MPI_INT, MPI_SUM, world),
      MPI_Reduce_scatter_block(at, at, 1, MPI_INT, MPI_SUM, world),
      MPI_Reduce_scatter(at, at, ones.data(), MPI_INT, MPI_SUM, world),
      MPI_Allgather(own, 1, MPI_INT, at, 1, MPI_INT, world),
      MPI_Allgatherv(own, 1, MPI_INT, at, ones.data(), places.data(), MPI_INT, world),
      MPI_Alltoall(at, 1, MPI_INT, at, 1, MPI_INT, world),
      MPI_Alltoallv(at, ones.data(), places.data(), MPI_INT, at, ones.data(), places.data(),
                    MPI_INT, world),
      MPI_Alltoallw(at, ones.data(), bytes.data(), types.data(), at, ones.data(), bytes.data(),
                    types.data(), world),
      MPI_Iallreduce(at, at, size, MPI_INT, MPI_SUM, world, &request),
      MPI_Iscan(at, at, size, MPI_INT, MPI_SUM, world, &request),
      MPI_Iallgather(own, 1, MPI_INT, at, 1, MPI_INT, world, &request),
      MPI_Ialltoall(at, 1, MPI_INT, at, 1, MPI_INT, world, &request),
  };
  for (const int& error : errors)
    EXPECT_EQ(class_of(error), MPI_ERR_BUFFER) << "call " << &error - errors;
  // The root alone has both; the others would wait for it, so it asks itself.
  const auto self = MPI_COMM_SELF;
  const int at_root[] = {
      MPI_Reduce(at, at, 1, MPI_INT, MPI_SUM, 0, self),
      MPI_Gather(at, 1, MPI_INT, at, 1, MPI_INT, 0, self),
      MPI_Gatherv(at, 1, MPI_INT, at, ones.data(), places.data(), MPI_INT, 0, self),
      MPI_Scatter(at, 1, MPI_INT, at, 1, MPI_INT, 0, self),
      MPI_Scatterv(at, ones.data(), places.data(), MPI_INT, at, 1, MPI_INT, 0, self),
      MPI_Ireduce(at, at, 1, MPI_INT, MPI_SUM, 0, self, &request),
  };
  for (const int& error : at_root)
    EXPECT_EQ(class_of(error), MPI_ERR_BUFFER) << "call of the root " << &error - at_root;
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  // Two halves of one buffer are two.
  std::vector<int> halves(2 * both.size(), rank);
  std::vector<int> behind;
  for (int i = 0; i < size; ++i) behind.push_back(size + i);
  EXPECT_EQ(MPI_Alltoallv(halves.data(), ones.data(), places.data(), MPI_INT, halves.data(),
                          ones.data(), behind.data(), MPI_INT, world),
            MPI_SUCCESS);
  for (int i = 0; i < size; ++i) EXPECT_EQ(halves[behind[i]], i);
  // Of no bytes they are none.
  EXPECT_EQ(MPI_Allreduce(at, at, 0, MPI_INT, MPI_SUM, world), MPI_SUCCESS);
  EXPECT_EQ(MPI_Allgather(at, 0, MPI_INT, at, 0, MPI_INT, world), MPI_SUCCESS);
}

/// Counts by which all ranks together would have more bytes than an address space.
TEST_F(Mistakes, CountsOfMoreBytesThanThereAreAreRefused) {
  constexpr int kMost = 2147483647;
  MPI_Datatype raw, huge;
  // Bytes that overlap: a type may have more of them than there is memory.
  MPI_Type_create_hvector(kMost, 1, 0, MPI_INT, &raw);
  MPI_Type_create_hvector(1 << 20, 1, 0, raw, &huge);
  MPI_Type_commit(&huge);
  const std::vector<int> counts(size_of(MPI_COMM_WORLD), kMost);
  const std::vector<int> places(counts.size(), 0);
  const std::vector<MPI_Datatype> types(counts.size(), huge);
  MPI_Request request = MPI_REQUEST_NULL;
  const auto world = MPI_COMM_WORLD;
  const int errors[] = {
      MPI_Bcast(data_, kMost, huge, 0, world),
      MPI_Gather(data_, kMost, huge, more_, kMost, huge, 0, world),
      MPI_Scatter(data_, kMost, huge, more_, kMost, huge, 0, world),
      MPI_Allgather(data_, kMost, huge, more_, kMost, huge, world),
      MPI_Allgatherv(data_, kMost, huge, more_, counts.data(), places.data(), huge, world),
      MPI_Alltoall(data_, kMost, huge, more_, kMost, huge, world),
      MPI_Alltoallv(data_, counts.data(), places.data(), huge, more_, counts.data(), places.data(),
                    huge, world),
      MPI_Alltoallw(data_, counts.data(), places.data(), types.data(), more_, counts.data(),
                    places.data(), types.data(), world),
      MPI_Ibcast(data_, kMost, huge, 0, world, &request),
      MPI_Iallgather(data_, kMost, huge, more_, kMost, huge, world, &request),
      MPI_Ialltoall(data_, kMost, huge, more_, kMost, huge, world, &request),
  };
  for (const int& error : errors)
    EXPECT_EQ(class_of(error), MPI_ERR_COUNT) << "call " << &error - errors;
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  MPI_Op op;
  MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &op);
  EXPECT_EQ(class_of(MPI_Allreduce(data_, more_, kMost, huge, op, world)), MPI_ERR_COUNT);
  EXPECT_EQ(class_of(MPI_Reduce(data_, more_, kMost, huge, op, 0, world)), MPI_ERR_COUNT);
  EXPECT_EQ(class_of(MPI_Scan(data_, more_, kMost, huge, op, world)), MPI_ERR_COUNT);
  EXPECT_EQ(class_of(MPI_Reduce_scatter_block(data_, more_, kMost, huge, op, world)),
            MPI_ERR_COUNT);
  EXPECT_EQ(class_of(MPI_Reduce_scatter(data_, more_, counts.data(), huge, op, world)),
            MPI_ERR_COUNT);
  MPI_Op_free(&op);
  MPI_Type_free(&raw);
  MPI_Type_free(&huge);
}

TEST_F(Mistakes, ARowThatIsTooLongIsNotTheEndOfOthers) {
  constexpr int kLong = 100'000;
  const int rank = rank_in(MPI_COMM_WORLD);
  const int size = size_of(MPI_COMM_WORLD);
  if (size < 3) GTEST_SKIP() << "it takes 3 ranks";
  const std::vector<char> own(kLong + (rank == 1 ? 1 : 0), static_cast<char>('a' + rank));
  std::vector<char> all(rank == 0 ? static_cast<std::size_t>(kLong) * size : 1);
  std::vector<int> counts(size, kLong);
  std::vector<int> displacements;
  for (int i = 0; i < size; ++i) displacements.push_back(i * kLong);
  // Others send when the root has seen that the row of rank 1 is too long.
  if (rank > 1) MPI_Recv(nullptr, 0, MPI_CHAR, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const int error = MPI_Gatherv(own.data(), static_cast<int>(own.size()), MPI_CHAR, all.data(),
                                counts.data(), displacements.data(), MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int i = 2; i < size && rank == 1; ++i) MPI_Send(nullptr, 0, MPI_CHAR, i, 9, MPI_COMM_WORLD);
  EXPECT_EQ(class_of(error), rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
  if (rank == 0) {
    EXPECT_EQ(all.back(), static_cast<char>('a' + size - 1));
  }
}

TEST_F(Mistakes, ARootThatSendsMoreThanOthersTakeIsTruncated) {
  const int rank = rank_in(MPI_COMM_WORLD);
  const int error = MPI_Bcast(data_, rank == 0 ? 8 : 4, MPI_INT, 0, MPI_COMM_WORLD);
  // Those whom the root sends to; what they pass on is as long as they take.
  if (rank == 0) {
    EXPECT_EQ(error, MPI_SUCCESS);
  } else if (rank == 1 || rank == 2) {
    EXPECT_EQ(class_of(error), MPI_ERR_TRUNCATE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace verbatim::mpi
