// SPDX-License-Identifier: BSD-2-Clause
// Communicators, groups, attributes and grids of ranks that are there (MPI 5.0 chapters 7 and 8).
#include <cstring>
#include <string>
#include <vector>

#include "tests/mpi/in_ranks.hpp"

namespace verbatim::mpi {
namespace {

int sum_of_ranks(MPI_Comm comm) {
  const int rank = rank_in(MPI_COMM_WORLD);
  int sum = -1;
  EXPECT_EQ(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  return sum;
}
int compared(MPI_Comm a, MPI_Comm b) {
  int result = -1;
  EXPECT_EQ(MPI_Comm_compare(a, b, &result), MPI_SUCCESS);
  return result;
}
std::string name_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME];
  int length = -1;
  EXPECT_EQ(MPI_Comm_get_name(comm, name, &length), MPI_SUCCESS);
  EXPECT_EQ(static_cast<std::size_t>(length), std::strlen(name));
  return name;
}

class Communicators : public ::testing::Test {
 protected:
  const int rank_ = rank_in(MPI_COMM_WORLD);
  const int size_ = size_of(MPI_COMM_WORLD);
};

TEST_F(Communicators, MessagesOfADuplicateAreApart) {
  MPI_Comm dup;
  ASSERT_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &dup), MPI_SUCCESS);
  EXPECT_EQ(compared(MPI_COMM_WORLD, dup), MPI_CONGRUENT);
  EXPECT_EQ(compared(dup, dup), MPI_IDENT);
  const int next = (rank_ + 1) % size_;
  const int before = (rank_ + size_ - 1) % size_;
  const int in_world = 1, in_dup = 2;
  MPI_Request sends[2];
  MPI_Isend(&in_world, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &sends[0]);
  MPI_Isend(&in_dup, 1, MPI_INT, next, 0, dup, &sends[1]);
  int got = 0;
  MPI_Recv(&got, 1, MPI_INT, before, MPI_ANY_TAG, dup, MPI_STATUS_IGNORE);
  EXPECT_EQ(got, 2);
  MPI_Recv(&got, 1, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(got, 1);
  MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
  EXPECT_EQ(MPI_Comm_free(&dup), MPI_SUCCESS);
  EXPECT_EQ(dup, MPI_COMM_NULL);
}

TEST_F(Communicators, SplitOrdersByKeyAndThenByRank) {
  MPI_Comm half;
  ASSERT_EQ(MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, -rank_, &half), MPI_SUCCESS);
  const int members = (size_ + 1 - rank_ % 2) / 2;
  EXPECT_EQ(size_of(half), members);
  EXPECT_EQ(rank_in(half), members - 1 - rank_ / 2) << "the largest rank has the smallest key";
  int sum = 0;
  for (int i = rank_ % 2; i < size_; i += 2) sum += i;
  EXPECT_EQ(sum_of_ranks(half), sum);
  MPI_Comm_free(&half);
  MPI_Comm same;
  ASSERT_EQ(MPI_Comm_split(MPI_COMM_WORLD, 3, 7, &same), MPI_SUCCESS);
  EXPECT_EQ(compared(MPI_COMM_WORLD, same), MPI_CONGRUENT) << "equal keys keep the order";
  MPI_Comm_free(&same);
}

TEST_F(Communicators, WhoHasNoColorGetsNone) {
  MPI_Comm some;
  const int color = rank_ == 0 ? 5 : MPI_UNDEFINED;
  ASSERT_EQ(MPI_Comm_split(MPI_COMM_WORLD, color, 0, &some), MPI_SUCCESS);
  if (rank_ == 0) {
    EXPECT_EQ(compared(some, MPI_COMM_SELF), MPI_CONGRUENT);
    MPI_Comm_free(&some);
  } else {
    EXPECT_EQ(some, MPI_COMM_NULL);
  }
}

TEST_F(Communicators, RanksOfOneHostShare) {
  MPI_Comm host;
  ASSERT_EQ(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
            MPI_SUCCESS);
  EXPECT_EQ(size_of(host), size_);
  MPI_Comm_free(&host);
}

TEST_F(Communicators, CreateTakesTheGroupsOrder) {
  MPI_Group world, reversed;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int all[1][3] = {{size_ - 1, 0, -1}};
  ASSERT_EQ(MPI_Group_range_incl(world, 1, all, &reversed), MPI_SUCCESS);
  MPI_Comm comm;
  ASSERT_EQ(MPI_Comm_create(MPI_COMM_WORLD, reversed, &comm), MPI_SUCCESS);
  EXPECT_EQ(rank_in(comm), size_ - 1 - rank_);
  EXPECT_EQ(compared(MPI_COMM_WORLD, comm), size_ == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
  MPI_Comm_free(&comm);
  MPI_Group_free(&reversed);
  MPI_Group_free(&world);
}

TEST_F(Communicators, CreateGroupAsksTheMembersAlone) {
  // Ranks 0, 2, 4 ...; the others do not call.
  MPI_Group world, even;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int range[1][3] = {{0, size_ - 1, 2}};
  ASSERT_EQ(MPI_Group_range_incl(world, 1, range, &even), MPI_SUCCESS);
  if (rank_ % 2 == 0) {
    MPI_Comm comm;
    EXPECT_EQ(MPI_Comm_create_group(MPI_COMM_WORLD, even, 9, &comm), MPI_SUCCESS);
    EXPECT_EQ(rank_in(comm), rank_ / 2);
    EXPECT_EQ(size_of(comm), (size_ + 1) / 2);
    MPI_Comm_free(&comm);
  }
  MPI_Group_free(&even);
  MPI_Group_free(&world);
}

TEST_F(Communicators, ContextsAreUsedAgain) {
  for (int i = 0; i < 9000; ++i) {
    MPI_Comm dup;
    if (MPI_Comm_dup(MPI_COMM_SELF, &dup) != MPI_SUCCESS) FAIL() << "at " << i;
    MPI_Comm_free(&dup);
  }
}

TEST_F(Communicators, GetAContextThatEachOfTheirRanksHasFree) {
  // Each rank has others in use before: rank 0 none, rank 1 one, rank 2 two.
  std::vector<MPI_Comm> own(static_cast<std::size_t>(rank_));
  for (MPI_Comm& each : own) MPI_Comm_dup(MPI_COMM_SELF, &each);
  MPI_Comm dup;
  ASSERT_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &dup), MPI_SUCCESS);
  EXPECT_EQ(sum_of_ranks(dup), size_ * (size_ - 1) / 2);
  for (MPI_Comm& each : own) {
    EXPECT_EQ(sum_of_ranks(each), rank_);
    MPI_Comm_free(&each);
  }
  MPI_Comm_free(&dup);
}

TEST_F(Communicators, GoByDisconnectToo) {
  MPI_Comm dup;
  ASSERT_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &dup), MPI_SUCCESS);
  const int next = (rank_ + 1) % size_;
  const int before = (rank_ + size_ - 1) % size_;
  int got = -1;
  MPI_Request request;
  EXPECT_EQ(MPI_Irecv(&got, 1, MPI_INT, before, 0, dup, &request), MPI_SUCCESS);
  EXPECT_EQ(MPI_Send(&rank_, 1, MPI_INT, next, 0, dup), MPI_SUCCESS);
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(got, before);
  EXPECT_EQ(MPI_Comm_disconnect(&dup), MPI_SUCCESS);
  EXPECT_EQ(dup, MPI_COMM_NULL);
}

TEST_F(Communicators, NobodyWasStartedByAnother) {
  MPI_Comm parent = MPI_COMM_WORLD;
  EXPECT_EQ(MPI_Comm_get_parent(&parent), MPI_SUCCESS);
  EXPECT_EQ(parent, MPI_COMM_NULL);
}

TEST_F(Communicators, HaveNames) {
  EXPECT_EQ(name_of(MPI_COMM_WORLD), "MPI_COMM_WORLD");
  EXPECT_EQ(name_of(MPI_COMM_SELF), "MPI_COMM_SELF");
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  EXPECT_EQ(name_of(dup), "");
  MPI_Comm_set_name(dup, std::string(500, 'x').c_str());
  EXPECT_EQ(name_of(dup), std::string(MPI_MAX_OBJECT_NAME - 1, 'x'));
  MPI_Comm_free(&dup);
}

TEST_F(Communicators, ThatWereFreedAreFoundOut) {
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  const ErrorsAreReturned world(MPI_COMM_WORLD);
  const ErrorsAreReturned self(MPI_COMM_SELF);
  const MPI_Comm stale = dup;
  MPI_Comm_free(&dup);
  int size = 0;
  EXPECT_EQ(class_of(MPI_Comm_size(stale, &size)), MPI_ERR_COMM);
  EXPECT_EQ(class_of(MPI_Comm_size(MPI_COMM_NULL, &size)), MPI_ERR_COMM);
  MPI_Comm again = stale;
  EXPECT_EQ(class_of(MPI_Comm_free(&again)), MPI_ERR_COMM);
  MPI_Comm predefined = MPI_COMM_WORLD;
  EXPECT_EQ(class_of(MPI_Comm_free(&predefined)), MPI_ERR_COMM);
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Group twice = group;
  EXPECT_EQ(MPI_Group_free(&group), MPI_SUCCESS);
  EXPECT_EQ(class_of(MPI_Group_free(&twice)), MPI_ERR_GROUP);
  EXPECT_EQ(size_of(MPI_COMM_WORLD), size_) << "its own group is not the program's to free";
}

TEST_F(Communicators, TwoHalvesTalkThroughAnIntercommunicator) {
  if (size_ < 2) GTEST_SKIP() << "two ranks are needed";
  MPI_Comm half, inter, merged;
  const int side = rank_ % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
  ASSERT_EQ(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 3, &inter), MPI_SUCCESS);
  int is_inter = 0, remote = 0;
  MPI_Comm_test_inter(inter, &is_inter);
  EXPECT_EQ(is_inter, 1);
  MPI_Comm_remote_size(inter, &remote);
  EXPECT_EQ(remote, size_ - size_of(half));
  EXPECT_EQ(size_of(inter), size_of(half));
  // The first of each side talk.
  if (rank_in(half) == 0) {
    int other = -1;
    EXPECT_EQ(
        MPI_Sendrecv(&rank_, 1, MPI_INT, 0, 1, &other, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE),
        MPI_SUCCESS);
    EXPECT_EQ(other, 1 - side);
  }
  MPI_Comm dup;
  ASSERT_EQ(MPI_Comm_dup(inter, &dup), MPI_SUCCESS);
  EXPECT_EQ(compared(inter, dup), MPI_CONGRUENT);
  // The odd half goes first.
  ASSERT_EQ(MPI_Intercomm_merge(dup, side == 0, &merged), MPI_SUCCESS);
  const int odd = size_ / 2;
  EXPECT_EQ(rank_in(merged), side == 1 ? rank_ / 2 : odd + rank_ / 2);
  EXPECT_EQ(sum_of_ranks(merged), size_ * (size_ - 1) / 2);
  for (MPI_Comm* each : {&merged, &dup, &inter, &half}) EXPECT_EQ(MPI_Comm_free(each), MPI_SUCCESS);
}

TEST_F(Communicators, WhatIsMergedAndItsCopyHearNothingOfEachOther) {
  if (size_ < 2) GTEST_SKIP() << "it takes 2 ranks";
  const int side = rank_ % 2;
  MPI_Comm half, inter, merged, copy;
  MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
  ASSERT_EQ(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 3, &inter), MPI_SUCCESS);
  ASSERT_EQ(MPI_Intercomm_merge(inter, side, &merged), MPI_SUCCESS);
  EXPECT_EQ(MPI_Comm_free(&inter), MPI_SUCCESS);
  ASSERT_EQ(MPI_Comm_dup(merged, &copy), MPI_SUCCESS);
  constexpr int kCount = 300;
  std::vector<int> ones(kCount, rank_in(merged) == 0 ? 1 : 0);
  std::vector<int> twos(kCount, rank_in(merged) == 0 ? 2 : 0);
  // Every rank begins them in an order of its own.
  MPI_Request requests[2];
  for (const int which : {rank_ % 2, 1 - rank_ % 2})
    EXPECT_EQ(MPI_Ibcast(which == 0 ? ones.data() : twos.data(), kCount, MPI_INT, 0,
                         which == 0 ? merged : copy, &requests[which]),
              MPI_SUCCESS);
  EXPECT_EQ(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(ones, std::vector<int>(kCount, 1));
  EXPECT_EQ(twos, std::vector<int>(kCount, 2));
  for (MPI_Comm* each : {&copy, &merged, &half}) EXPECT_EQ(MPI_Comm_free(each), MPI_SUCCESS);
}

// Attributes.

int copies = 0;
int deletions = 0;
int copy_and_add(MPI_Comm, int, void* extra, void* in, void* out, int* flag) {
  ++copies;
  EXPECT_EQ(extra, &copies);
  *static_cast<void**>(out) = static_cast<char*>(in) + 1;
  *flag = 1;
  return MPI_SUCCESS;
}
int count_deletion(MPI_Comm, int, void*, void*) {
  ++deletions;
  return MPI_SUCCESS;
}
int refuse_deletion(MPI_Comm, int, void*, void*) { return MPI_ERR_OTHER; }

TEST_F(Communicators, AttributesAreCopiedAndDeletedByTheirFunctions) {
  copies = deletions = 0;
  int key = MPI_KEYVAL_INVALID, kept = MPI_KEYVAL_INVALID, dropped = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(copy_and_add, count_deletion, &key, &copies);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &kept, nullptr);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_deletion, &dropped, nullptr);
  MPI_Comm from, to;
  char text[] = "attribute";
  MPI_Comm_dup(MPI_COMM_SELF, &from);
  for (const int each : {key, kept, dropped}) MPI_Comm_set_attr(from, each, text);
  MPI_Comm_dup(from, &to);
  EXPECT_EQ(copies, 1);
  char* value = nullptr;
  int flag = -1;
  MPI_Comm_get_attr(to, key, &value, &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(value, text + 1);
  MPI_Comm_get_attr(to, kept, &value, &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(value, text);
  MPI_Comm_get_attr(to, dropped, &value, &flag);
  EXPECT_EQ(flag, 0);
  // The keyval that is freed first lives as long as values under it.
  const int freed = key;
  MPI_Comm_free_keyval(&key);
  EXPECT_EQ(key, MPI_KEYVAL_INVALID);
  MPI_Comm_free(&to);
  EXPECT_EQ(deletions, 1);
  MPI_Comm_free(&from);
  EXPECT_EQ(deletions, 3);
  const ErrorsAreReturned returned(MPI_COMM_SELF);
  EXPECT_EQ(class_of(MPI_Comm_set_attr(MPI_COMM_SELF, freed, text)), MPI_ERR_KEYVAL);
  EXPECT_EQ(class_of(MPI_Comm_set_attr(MPI_COMM_SELF, MPI_TAG_UB, text)), MPI_ERR_KEYVAL);
  MPI_Comm_free_keyval(&kept);
  MPI_Comm_free_keyval(&dropped);
}

TEST_F(Communicators, AnAttributeThatWillNotGoKeepsTheCommunicator) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Keyval_create(MPI_NULL_COPY_FN, refuse_deletion, &key, nullptr);
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
  MPI_Attr_put(dup, key, nullptr);
  EXPECT_EQ(class_of(MPI_Comm_free(&dup)), MPI_ERR_OTHER);
  EXPECT_EQ(size_of(dup), 1);
}

TEST_F(Communicators, TheWorldTellsTheLibrarysLimits) {
  int* value = nullptr;
  int flag = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_GE(*value, 32767);
  MPI_Attr_get(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag);
  EXPECT_EQ(flag, 1);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_GE(*value, MPI_ERR_LASTCODE);
}

// Grids.

TEST_F(Communicators, AGridKnowsNeighboursRowsAndColumns) {
  int dims[2] = {0, 0};
  MPI_Dims_create(size_, 2, dims);
  const int periods[2] = {1, 0};
  MPI_Comm grid;
  ASSERT_EQ(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid), MPI_SUCCESS);
  int status = 0, ndims = 0;
  MPI_Topo_test(grid, &status);
  EXPECT_EQ(status, MPI_CART);
  MPI_Cartdim_get(grid, &ndims);
  EXPECT_EQ(ndims, 2);
  int at[2] = {-1, -1}, got_dims[2] = {}, got_periods[2] = {};
  MPI_Cart_get(grid, 2, got_dims, got_periods, at);
  EXPECT_EQ(at[0], rank_ / dims[1]);
  EXPECT_EQ(at[1], rank_ % dims[1]);
  EXPECT_EQ(got_dims[0], dims[0]);
  EXPECT_EQ(got_periods[0], 1);
  EXPECT_EQ(got_periods[1], 0);
  int from = -9, to = -9;
  MPI_Cart_shift(grid, 0, 1, &from, &to);
  EXPECT_EQ(to, (at[0] + 1) % dims[0] * dims[1] + at[1]);
  EXPECT_EQ(from, (at[0] + dims[0] - 1) % dims[0] * dims[1] + at[1]);
  MPI_Cart_shift(grid, 1, 1, &from, &to);
  EXPECT_EQ(to, at[1] + 1 < dims[1] ? rank_ + 1 : MPI_PROC_NULL);
  EXPECT_EQ(from, at[1] > 0 ? rank_ - 1 : MPI_PROC_NULL);
  const int beyond[2] = {at[0] + 3 * dims[0], at[1]};
  int there = -1;
  MPI_Cart_rank(grid, beyond, &there);
  EXPECT_EQ(there, rank_);

  const int columns[2] = {1, 0};
  MPI_Comm column;
  ASSERT_EQ(MPI_Cart_sub(grid, columns, &column), MPI_SUCCESS);
  EXPECT_EQ(size_of(column), dims[0]);
  EXPECT_EQ(rank_in(column), at[0]);
  MPI_Cartdim_get(column, &ndims);
  EXPECT_EQ(ndims, 1);
  MPI_Comm copy;
  MPI_Comm_dup(column, &copy);
  MPI_Topo_test(copy, &status);
  EXPECT_EQ(status, MPI_CART);
  for (MPI_Comm* each : {&copy, &column, &grid}) MPI_Comm_free(each);
}

TEST_F(Communicators, WhoIsOutsideOfASmallGridGetsNone) {
  const int dims[1] = {1}, periods[1] = {0};
  MPI_Comm grid;
  ASSERT_EQ(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &grid), MPI_SUCCESS);
  EXPECT_EQ(grid == MPI_COMM_NULL, rank_ != 0);
  if (grid != MPI_COMM_NULL) MPI_Comm_free(&grid);
  const ErrorsAreReturned returned(MPI_COMM_WORLD);
  const int large[1] = {size_ + 1};
  EXPECT_EQ(class_of(MPI_Cart_create(MPI_COMM_WORLD, 1, large, periods, 1, &grid)), MPI_ERR_DIMS);
  int ndims = 0;
  EXPECT_EQ(class_of(MPI_Cartdim_get(MPI_COMM_WORLD, &ndims)), MPI_ERR_TOPOLOGY);
}

}  // namespace
}  // namespace verbatim::mpi
