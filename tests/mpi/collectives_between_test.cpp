// SPDX-License-Identifier: BSD-2-Clause
// Collectives of intercommunicators (MPI 5.0 section 6.2.3): what one group has comes to the other.
// The first rank alone is one group, and then the even ranks, against the rest.
#include "tests/mpi/in_ranks.hpp"

namespace verbatim::mpi {
namespace {

using Ints = std::vector<int>;
constexpr int kCount = 7;

class Between : public ::testing::Test {
 protected:
  void SetUp() override {
    if (size_of(MPI_COMM_WORLD) < 2) GTEST_SKIP() << "it takes 2 ranks";
  }

  /// test(inter, local rank, local size, remote size, whether this is the first group), for each way
  /// to divide the ranks.
  template <class Test>
  void for_groups(Test test) {
    const int rank = rank_in(MPI_COMM_WORLD);
    for (const bool is_first : {rank == 0, rank % 2 == 0}) {
      const int other_leader = is_first ? 1 : 0;
      MPI_Comm local;
      MPI_Comm inter;
      MPI_Comm_split(MPI_COMM_WORLD, is_first ? 1 : 2, rank, &local);
      EXPECT_EQ(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, other_leader, 8, &inter),
                MPI_SUCCESS);
      int remote = 0;
      MPI_Comm_remote_size(inter, &remote);
      test(inter, rank_in(local), size_of(local), remote, is_first);
      MPI_Comm_free(&inter);
      MPI_Comm_free(&local);
    }
  }
};

/// What rank `rank` of the first or the second group has at place `i`.
int value(bool is_first, int rank, int i) { return (is_first ? 1000 : 5000) + 50 * rank + i; }
Ints values(bool is_first, int rank, int count) {
  Ints out;
  for (int i = 0; i < count; ++i) out.push_back(value(is_first, rank, i));
  return out;
}
Ints marked(int count) { return Ints(static_cast<std::size_t>(count), -1); }

/// Blocking, or started and waited for.
int done(int error, MPI_Request& request) {
  EXPECT_EQ(error, MPI_SUCCESS);
  return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

TEST_F(Between, BcastOfOneGroupComesToTheOther) {
  for_groups([](MPI_Comm inter, int rank, int, int, bool is_first) {
    for (const bool is_started : {false, true}) {
      for (const bool from_first : {true, false}) {
        const bool gives = from_first == is_first;
        const int root = !gives ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
        Ints data = gives && rank == 0 ? values(is_first, 0, 3000) : marked(3000);
        MPI_Request request = MPI_REQUEST_NULL;
        const int error = is_started ? MPI_Ibcast(data.data(), 3000, MPI_INT, root, inter, &request)
                                     : MPI_Bcast(data.data(), 3000, MPI_INT, root, inter);
        EXPECT_EQ(done(error, request), MPI_SUCCESS);
        if (!gives || rank == 0) {
          EXPECT_EQ(data, values(from_first, 0, 3000));
        } else {
          EXPECT_EQ(data, marked(3000));
        }
      }
    }
  });
}

TEST_F(Between, RowsOfOneGroupComeToTheRootOfTheOtherAndBack) {
  for_groups([](MPI_Comm inter, int rank, int size, int remote, bool is_first) {
    // The last rank of each group in turn is the root.
    for (const bool at_first : {true, false}) {
      const bool is_roots = at_first == is_first;
      const int root = !is_roots ? remote - 1 : rank == size - 1 ? MPI_ROOT : MPI_PROC_NULL;
      const bool at_root = root == MPI_ROOT;
      Ints own = values(is_first, rank, kCount);
      Ints all = marked(kCount * remote);
      Ints expected;
      for (int i = 0; i < remote; ++i)
        for (const int each : values(!is_first, i, kCount)) expected.push_back(each);
      EXPECT_EQ(MPI_Gather(own.data(), kCount, MPI_INT, all.data(), kCount, MPI_INT, root, inter),
                MPI_SUCCESS);
      EXPECT_EQ(all, at_root ? expected : marked(kCount * remote));
      // With room between the rows.
      Ints counts(static_cast<std::size_t>(remote), kCount);
      Ints places;
      for (int i = 0; i < remote; ++i) places.push_back(i * (kCount + 1));
      Ints spaced = marked((kCount + 1) * remote);
      EXPECT_EQ(MPI_Gatherv(own.data(), kCount, MPI_INT, spaced.data(), counts.data(),
                            places.data(), MPI_INT, root, inter),
                MPI_SUCCESS);
      for (int i = 0; at_root && i < remote; ++i)
        EXPECT_EQ(spaced[static_cast<std::size_t>(i * (kCount + 1) + kCount - 1)],
                  value(!is_first, i, kCount - 1));
      Ints back = marked(kCount);
      EXPECT_EQ(MPI_Scatter(all.data(), kCount, MPI_INT, back.data(), kCount, MPI_INT, root, inter),
                MPI_SUCCESS);
      EXPECT_EQ(back, is_roots ? marked(kCount) : own);
      back = marked(kCount);
      EXPECT_EQ(MPI_Scatterv(spaced.data(), counts.data(), places.data(), MPI_INT, back.data(),
                             kCount, MPI_INT, root, inter),
                MPI_SUCCESS);
      EXPECT_EQ(back, is_roots ? marked(kCount) : own);
    }
  });
}

TEST_F(Between, AllOfOneGroupGetTheRowsOfTheOther) {
  for_groups([](MPI_Comm inter, int rank, int, int remote, bool is_first) {
    Ints own = values(is_first, rank, kCount);
    Ints expected;
    Ints counts(static_cast<std::size_t>(remote), kCount);
    Ints places;
    for (int i = 0; i < remote; ++i) {
      places.push_back(i * kCount);
      for (const int each : values(!is_first, i, kCount)) expected.push_back(each);
    }
    Ints all = marked(kCount * remote);
    EXPECT_EQ(MPI_Allgather(own.data(), kCount, MPI_INT, all.data(), kCount, MPI_INT, inter),
              MPI_SUCCESS);
    EXPECT_EQ(all, expected);
    all = marked(kCount * remote);
    MPI_Request request;
    EXPECT_EQ(done(MPI_Iallgatherv(own.data(), kCount, MPI_INT, all.data(), counts.data(),
                                   places.data(), MPI_INT, inter, &request),
                   request),
              MPI_SUCCESS);
    EXPECT_EQ(all, expected);
  });
}

TEST_F(Between, EachGivesEachOfTheOtherGroupItsSlice) {
  for_groups([](MPI_Comm inter, int rank, int, int remote, bool is_first) {
    Ints own = values(is_first, rank, remote);
    Ints expected;
    Ints ones(static_cast<std::size_t>(remote), 1);
    Ints places;
    Ints bytes;
    for (int i = 0; i < remote; ++i) {
      expected.push_back(value(!is_first, i, rank));
      places.push_back(i);
      bytes.push_back(i * static_cast<int>(sizeof(int)));
    }
    const std::vector<MPI_Datatype> types(ones.size(), MPI_INT);
    Ints got = marked(remote);
    EXPECT_EQ(MPI_Alltoall(own.data(), 1, MPI_INT, got.data(), 1, MPI_INT, inter), MPI_SUCCESS);
    EXPECT_EQ(got, expected);
    got = marked(remote);
    EXPECT_EQ(MPI_Alltoallv(own.data(), ones.data(), places.data(), MPI_INT, got.data(),
                            ones.data(), places.data(), MPI_INT, inter),
              MPI_SUCCESS);
    EXPECT_EQ(got, expected);
    got = marked(remote);
    EXPECT_EQ(MPI_Alltoallw(own.data(), ones.data(), bytes.data(), types.data(), got.data(),
                            ones.data(), bytes.data(), types.data(), inter),
              MPI_SUCCESS);
    EXPECT_EQ(got, expected);
  });
}

TEST_F(Between, ReductionsOfOneGroupComeToTheOther) {
  for (const int count : {1, 600, 40'000}) {
    for_groups([count](MPI_Comm inter, int rank, int size, int remote, bool is_first) {
      const Ints own = values(is_first, rank, count);
      Ints theirs(static_cast<std::size_t>(count));
      for (int k = 0; k < remote; ++k)
        for (int i = 0; i < count; ++i)
          theirs[static_cast<std::size_t>(i)] += value(!is_first, k, i);
      Ints got = marked(count);
      EXPECT_EQ(MPI_Allreduce(own.data(), got.data(), count, MPI_INT, MPI_SUM, inter), MPI_SUCCESS);
      EXPECT_EQ(got, theirs);
      for (const bool at_first : {true, false}) {
        const bool is_roots = at_first == is_first;
        const int root = !is_roots ? remote - 1 : rank == size - 1 ? MPI_ROOT : MPI_PROC_NULL;
        got = marked(count);
        EXPECT_EQ(MPI_Reduce(own.data(), got.data(), count, MPI_INT, MPI_SUM, root, inter),
                  MPI_SUCCESS);
        EXPECT_EQ(got, root == MPI_ROOT ? theirs : marked(count));
      }
      // Both groups together have as many elements: each rank of one gets as many as the other has.
      const int total = count * size * remote;
      const Ints wide = values(is_first, rank, total);
      Ints part = marked(count * remote);
      EXPECT_EQ(MPI_Reduce_scatter_block(wide.data(), part.data(), count * remote, MPI_INT, MPI_SUM,
                                         inter),
                MPI_SUCCESS);
      int first = 0;
      for (int k = 0; k < remote; ++k) first += value(!is_first, k, rank * count * remote);
      EXPECT_EQ(part[0], first);
      Ints counts(static_cast<std::size_t>(size), count * remote);
      part = marked(count * remote);
      MPI_Request request;
      EXPECT_EQ(done(MPI_Ireduce_scatter(wide.data(), part.data(), counts.data(), MPI_INT, MPI_SUM,
                                         inter, &request),
                     request),
                MPI_SUCCESS);
      EXPECT_EQ(part[0], first);
    });
  }
}

TEST_F(Between, BarrierEndsWhenTheLastOfTheOtherGroupHasCome) {
  for_groups([](MPI_Comm inter, int rank, int size, int remote, bool is_first) {
    for (const bool late_first : {true, false}) {
      const bool is_of_late_group = late_first == is_first;
      MPI_Request request = MPI_REQUEST_NULL;
      if (is_of_late_group && rank == size - 1) {
        // It comes when all of the other group have seen that they wait.
        for (int i = 0; i < remote; ++i)
          MPI_Recv(nullptr, 0, MPI_INT, MPI_ANY_SOURCE, 2, inter, MPI_STATUS_IGNORE);
        EXPECT_EQ(MPI_Barrier(inter), MPI_SUCCESS);
        continue;
      }
      EXPECT_EQ(MPI_Ibarrier(inter, &request), MPI_SUCCESS);
      int flag = 0;
      for (int i = 0; !is_of_late_group && i < 100; ++i) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        EXPECT_EQ(flag, 0);
      }
      if (!is_of_late_group) MPI_Send(nullptr, 0, MPI_INT, remote - 1, 2, inter);
      EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
  });
}

TEST_F(Between, DuplicatesComeToBothGroups) {
  for_groups([](MPI_Comm inter, int rank, int size, int remote, bool is_first) {
    MPI_Comm dup;
    MPI_Request request;
    EXPECT_EQ(MPI_Comm_idup(inter, &dup, &request), MPI_SUCCESS);
    EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    // In the old one and in the new one, with one tag.
    int got[2] = {-1, -1};
    const int given[2] = {rank, 100 + rank};
    MPI_Request requests[4];
    const int peer = rank < remote ? rank : MPI_PROC_NULL;
    for (int i = 0; i < 2; ++i)
      MPI_Irecv(&got[i], 1, MPI_INT, peer, 1, i == 0 ? inter : dup, &requests[i]);
    for (int i = 1; i >= 0; --i)
      MPI_Isend(&given[i], 1, MPI_INT, peer, 1, i == 0 ? inter : dup, &requests[2 + i]);
    EXPECT_EQ(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    if (peer != MPI_PROC_NULL) {
      EXPECT_EQ(got[0], rank);
      EXPECT_EQ(got[1], 100 + rank);
    }
    int sum = 0;
    const int one = 1;
    EXPECT_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, dup), MPI_SUCCESS);
    EXPECT_EQ(sum, remote) << size << is_first;
    // Collectives of two duplicates at once, which each rank starts in its own order.
    MPI_Comm dups[2];
    for (const int i : {0, 1}) {
      EXPECT_EQ(MPI_Comm_idup(inter, &dups[i], &request), MPI_SUCCESS);
      EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    const int ones[2] = {1, 1000};
    int sums[2] = {};
    for (const int i : {rank % 2, 1 - rank % 2})
      EXPECT_EQ(MPI_Iallreduce(&ones[i], &sums[i], 1, MPI_INT, MPI_SUM, dups[i], &requests[i]),
                MPI_SUCCESS);
    EXPECT_EQ(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    for (const int i : {0, 1}) {
      EXPECT_EQ(sums[i], ones[i] * remote);
      MPI_Comm_free(&dups[i]);
    }
    MPI_Comm_free(&dup);
  });
}

TEST_F(Between, SplitMakesOneOfEachColorThatBothGroupsHave) {
  for_groups([](MPI_Comm inter, int rank, int size, int remote, bool is_first) {
    // Colors 0 and 1 in the order of the keys, from the last; the last rank of a group has none.
    const int color = rank == size - 1 && size > 1 ? MPI_UNDEFINED : rank % 2;
    MPI_Comm part = MPI_COMM_WORLD;
    EXPECT_EQ(MPI_Comm_split(inter, color, -rank, &part), MPI_SUCCESS);
    const auto count_of = [](int ranks, int with) {
      int count = 0;
      for (int i = 0; i < (ranks > 1 ? ranks - 1 : 1); ++i) count += i % 2 == with ? 1 : 0;
      return count;
    };
    if (color == MPI_UNDEFINED || count_of(remote, color) == 0) {
      EXPECT_EQ(part, MPI_COMM_NULL);
      return;
    }
    const int others = count_of(remote, color);
    EXPECT_EQ(size_of(part), count_of(size, color));
    EXPECT_EQ(rank_in(part), count_of(size, color) - 1 - rank / 2);
    int remote_size = 0;
    MPI_Comm_remote_size(part, &remote_size);
    EXPECT_EQ(remote_size, others);
    Ints all = marked(others);
    EXPECT_EQ(MPI_Allgather(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, part), MPI_SUCCESS);
    for (int i = 0; i < others; ++i)
      EXPECT_EQ(all[static_cast<std::size_t>(i)], 2 * (others - 1 - i) + color) << is_first;
    MPI_Comm_free(&part);
  });
}

TEST_F(Between, CreateMakesOneOfThePartsOfBothGroups) {
  for_groups([](MPI_Comm inter, int rank, int size, int remote, bool is_first) {
    MPI_Group local;
    MPI_Group last;
    MPI_Comm_group(inter, &local);
    const int chosen = size - 1;
    MPI_Group_incl(local, 1, &chosen, &last);
    MPI_Comm pair = MPI_COMM_WORLD;
    EXPECT_EQ(MPI_Comm_create(inter, last, &pair), MPI_SUCCESS);
    if (rank == size - 1) {
      int theirs = -1;
      EXPECT_EQ(MPI_Allreduce(&rank, &theirs, 1, MPI_INT, MPI_SUM, pair), MPI_SUCCESS);
      EXPECT_EQ(theirs, remote - 1);
      EXPECT_EQ(size_of(pair), 1);
      MPI_Comm_free(&pair);
    } else {
      EXPECT_EQ(pair, MPI_COMM_NULL);
    }
    // Of nobody of one group, nobody of the other gets one.
    MPI_Comm none = MPI_COMM_WORLD;
    EXPECT_EQ(MPI_Comm_create(inter, is_first ? MPI_GROUP_EMPTY : local, &none), MPI_SUCCESS);
    EXPECT_EQ(none, MPI_COMM_NULL);
    MPI_Group_free(&last);
    MPI_Group_free(&local);
  });
}

TEST_F(Between, MistakesHaveTheErrorClassesOfTheStandard) {
  for_groups([](MPI_Comm inter, int, int, int remote, bool) {
    const ErrorsAreReturned returned(inter);
    int data[2] = {};
    int more[2] = {};
    EXPECT_EQ(class_of(MPI_Scan(data, more, 1, MPI_INT, MPI_SUM, inter)), MPI_ERR_COMM);
    EXPECT_EQ(class_of(MPI_Exscan(data, more, 1, MPI_INT, MPI_SUM, inter)), MPI_ERR_COMM);
    EXPECT_EQ(class_of(MPI_Bcast(data, 1, MPI_INT, remote, inter)), MPI_ERR_ROOT);
    EXPECT_EQ(class_of(MPI_Allreduce(MPI_IN_PLACE, more, 1, MPI_INT, MPI_SUM, inter)),
              MPI_ERR_BUFFER);
    EXPECT_EQ(class_of(MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, more, 1, MPI_INT, inter)),
              MPI_ERR_BUFFER);
    MPI_Barrier(inter);
  });
}

}  // namespace
}  // namespace verbatim::mpi
