// SPDX-License-Identifier: BSD-2-Clause
// Nonblocking collectives, and sends and receives as one (MPI 5.0 sections 6.12 and 3.11): what they
// compute is what the blocking ones do, which collectives_test.cpp holds to the standard.
#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/mpi/in_ranks.hpp"

namespace verbatim::mpi {
namespace {

using Ints = std::vector<int>;

Ints row(int rank, int count, int salt = 0) {
  Ints out(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    out[static_cast<std::size_t>(i)] = (rank * 7 + i * 3 + salt) % 1009;
  return out;
}

/// The ways to wait, one after the other.
void finish(MPI_Request& request, int way) {
  ASSERT_NE(request, MPI_REQUEST_NULL);
  int flag = 0;
  int index = -1;
  switch (way % 4) {
    case 0:
      EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
      break;
    case 1:
      while (flag == 0) EXPECT_EQ(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
      break;
    case 2:
      EXPECT_EQ(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE), MPI_SUCCESS);
      break;
    default:
      EXPECT_EQ(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE), MPI_SUCCESS);
      EXPECT_EQ(index, 0);
  }
  EXPECT_EQ(request, MPI_REQUEST_NULL);
}

class Nonblocking : public ::testing::Test {
 protected:
  const int rank_ = rank_in(MPI_COMM_WORLD);
  const int size_ = size_of(MPI_COMM_WORLD);
  const std::vector<int> counts_{0, 1, 5, 300, 5000, 100'000};
  int way_ = 0;

  using Blocking = std::function<int(Ints& out)>;
  using Started = std::function<int(Ints& out, MPI_Request* request)>;
  /// Both from the same `out`.
  void expect_same(const Ints& out, const Blocking& blocking, const Started& started) {
    Ints expected = out;
    Ints got = out;
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_EQ(started(got, &request), MPI_SUCCESS);
    EXPECT_EQ(blocking(expected), MPI_SUCCESS);  // while the other is under way
    finish(request, way_++);
    EXPECT_EQ(got, expected);
  }
};

TEST_F(Nonblocking, BcastGivesWhatBcastGives) {
  for (const int count : counts_)
    for (int root = 0; root < size_; ++root)
      expect_same(
          rank_ == root ? row(root, count) : Ints(static_cast<std::size_t>(count), -1),
          [&](Ints& out) { return MPI_Bcast(out.data(), count, MPI_INT, root, MPI_COMM_WORLD); },
          [&](Ints& out, MPI_Request* request) {
            return MPI_Ibcast(out.data(), count, MPI_INT, root, MPI_COMM_WORLD, request);
          });
}

TEST_F(Nonblocking, GatherAndScatterGiveWhatTheBlockingOnesGive) {
  for (const int count : {0, 1, 300, 20'000}) {
    const Ints own = row(rank_, count);
    const Ints all = row(0, count * size_);
    const Ints marked(all.size(), -1);
    for (int root = 0; root < size_; ++root) {
      for (const bool is_in_place : {false, true}) {
        const bool at_root = rank_ == root;
        const void* const send = is_in_place && at_root ? MPI_IN_PLACE : own.data();
        expect_same(
            is_in_place && at_root ? all : marked,
            [&](Ints& out) {
              return MPI_Gather(send, count, MPI_INT, out.data(), count, MPI_INT, root,
                                MPI_COMM_WORLD);
            },
            [&](Ints& out, MPI_Request* request) {
              return MPI_Igather(send, count, MPI_INT, out.data(), count, MPI_INT, root,
                                 MPI_COMM_WORLD, request);
            });
        const auto receive = [&](Ints& out) {
          return is_in_place && at_root ? MPI_IN_PLACE : static_cast<void*>(out.data());
        };
        expect_same(
            marked,
            [&](Ints& out) {
              return MPI_Scatter(all.data(), count, MPI_INT, receive(out), count, MPI_INT, root,
                                 MPI_COMM_WORLD);
            },
            [&](Ints& out, MPI_Request* request) {
              return MPI_Iscatter(all.data(), count, MPI_INT, receive(out), count, MPI_INT, root,
                                  MPI_COMM_WORLD, request);
            });
      }
    }
  }
}

TEST_F(Nonblocking, RowsOfManyLengthsGoWhereTheBlockingOnesPutThem) {
  // Rank i gives i * 50 elements; the rows lie in the reverse order.
  Ints counts(static_cast<std::size_t>(size_));
  Ints places(counts.size());
  int total = 0;
  for (int i = size_ - 1; i >= 0; --i) {
    counts[static_cast<std::size_t>(i)] = 50 * i;
    places[static_cast<std::size_t>(i)] = total;
    total += 50 * i;
  }
  const int own_count = 50 * rank_;
  const Ints own = row(rank_, own_count + 1);
  const Ints all = row(3, total + 1);
  const Ints marked(all.size(), -1);
  for (int root = 0; root < size_; ++root) {
    expect_same(
        marked,
        [&](Ints& out) {
          return MPI_Gatherv(own.data(), own_count, MPI_INT, out.data(), counts.data(),
                             places.data(), MPI_INT, root, MPI_COMM_WORLD);
        },
        [&](Ints& out, MPI_Request* request) {
          return MPI_Igatherv(own.data(), own_count, MPI_INT, out.data(), counts.data(),
                              places.data(), MPI_INT, root, MPI_COMM_WORLD, request);
        });
    expect_same(
        marked,
        [&](Ints& out) {
          return MPI_Scatterv(all.data(), counts.data(), places.data(), MPI_INT, out.data(),
                              own_count, MPI_INT, root, MPI_COMM_WORLD);
        },
        [&](Ints& out, MPI_Request* request) {
          return MPI_Iscatterv(all.data(), counts.data(), places.data(), MPI_INT, out.data(),
                               own_count, MPI_INT, root, MPI_COMM_WORLD, request);
        });
  }
  expect_same(
      marked,
      [&](Ints& out) {
        return MPI_Allgatherv(own.data(), own_count, MPI_INT, out.data(), counts.data(),
                              places.data(), MPI_INT, MPI_COMM_WORLD);
      },
      [&](Ints& out, MPI_Request* request) {
        return MPI_Iallgatherv(own.data(), own_count, MPI_INT, out.data(), counts.data(),
                               places.data(), MPI_INT, MPI_COMM_WORLD, request);
      });
  expect_same(
      all,
      [&](Ints& out) {
        return MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.data(), counts.data(),
                              places.data(), MPI_INT, MPI_COMM_WORLD);
      },
      [&](Ints& out, MPI_Request* request) {
        return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.data(), counts.data(),
                               places.data(), MPI_INT, MPI_COMM_WORLD, request);
      });
}

TEST_F(Nonblocking, AllToAllGiveWhatTheBlockingOnesGive) {
  for (const int count : {0, 1, 30, 5000}) {
    const Ints own = row(rank_, count * size_);
    const Ints marked(own.size(), -1);
    for (const bool is_in_place : {false, true}) {
      const void* const send = is_in_place ? MPI_IN_PLACE : own.data();
      const Ints& before = is_in_place ? own : marked;
      expect_same(
          before,
          [&](Ints& out) {
            return MPI_Alltoall(send, count, MPI_INT, out.data(), count, MPI_INT, MPI_COMM_WORLD);
          },
          [&](Ints& out, MPI_Request* request) {
            return MPI_Ialltoall(send, count, MPI_INT, out.data(), count, MPI_INT, MPI_COMM_WORLD,
                                 request);
          });
      Ints counts(static_cast<std::size_t>(size_), count);
      Ints places(counts.size());
      Ints bytes(counts.size());
      for (int i = 0; i < size_; ++i) {
        places[static_cast<std::size_t>(i)] = (size_ - 1 - i) * count;
        bytes[static_cast<std::size_t>(i)] = i * count * static_cast<int>(sizeof(int));
      }
      expect_same(
          before,
          [&](Ints& out) {
            return MPI_Alltoallv(send, counts.data(), places.data(), MPI_INT, out.data(),
                                 counts.data(), places.data(), MPI_INT, MPI_COMM_WORLD);
          },
          [&](Ints& out, MPI_Request* request) {
            return MPI_Ialltoallv(send, counts.data(), places.data(), MPI_INT, out.data(),
                                  counts.data(), places.data(), MPI_INT, MPI_COMM_WORLD, request);
          });
      const std::vector<MPI_Datatype> types(counts.size(), MPI_INT);
      expect_same(
          before,
          [&](Ints& out) {
            return MPI_Alltoallw(send, counts.data(), bytes.data(), types.data(), out.data(),
                                 counts.data(), bytes.data(), types.data(), MPI_COMM_WORLD);
          },
          [&](Ints& out, MPI_Request* request) {
            // The arrays go before it ends.
            Ints numbers = counts;
            Ints offsets = bytes;
            std::vector<MPI_Datatype> kinds = types;
            return MPI_Ialltoallw(send, numbers.data(), offsets.data(), kinds.data(), out.data(),
                                  numbers.data(), offsets.data(), kinds.data(), MPI_COMM_WORLD,
                                  request);
          });
    }
    expect_same(
        Ints(own.size(), -1),
        [&](Ints& out) {
          return MPI_Allgather(own.data(), count, MPI_INT, out.data(), count, MPI_INT,
                               MPI_COMM_WORLD);
        },
        [&](Ints& out, MPI_Request* request) {
          return MPI_Iallgather(own.data(), count, MPI_INT, out.data(), count, MPI_INT,
                                MPI_COMM_WORLD, request);
        });
  }
}

/// Does not commute.
void weigh(void* in, void* inout, int* length, MPI_Datatype*) {
  const int* const first = static_cast<int*>(in);
  int* const second = static_cast<int*>(inout);
  for (int i = 0; i < *length; ++i)
    second[i] = (first[i] * 3 + second[i] * 5 + first[i] / 2) % 10'007;
}

TEST_F(Nonblocking, ReductionsGiveWhatTheBlockingOnesGive) {
  MPI_Op not_commuting;
  // Not associative either: both ways combine in the same tree.
  MPI_Op_create(weigh, 0, &not_commuting);
  for (const MPI_Op op : {MPI_SUM, MPI_MAX, not_commuting}) {
    for (const int count : counts_) {
      const Ints own = row(rank_, count);
      const Ints marked(own.size(), -1);
      for (const bool is_in_place : {false, true}) {
        const void* const send = is_in_place ? MPI_IN_PLACE : own.data();
        const Ints& before = is_in_place ? own : marked;
        for (int root = 0; root < std::min(size_, 3); ++root) {
          const void* const given = rank_ == root ? send : own.data();
          expect_same(
              rank_ == root ? before : marked,
              [&](Ints& out) {
                return MPI_Reduce(given, out.data(), count, MPI_INT, op, root, MPI_COMM_WORLD);
              },
              [&](Ints& out, MPI_Request* request) {
                return MPI_Ireduce(given, out.data(), count, MPI_INT, op, root, MPI_COMM_WORLD,
                                   request);
              });
        }
        expect_same(
            before,
            [&](Ints& out) {
              return MPI_Allreduce(send, out.data(), count, MPI_INT, op, MPI_COMM_WORLD);
            },
            [&](Ints& out, MPI_Request* request) {
              return MPI_Iallreduce(send, out.data(), count, MPI_INT, op, MPI_COMM_WORLD, request);
            });
        expect_same(
            before,
            [&](Ints& out) {
              return MPI_Scan(send, out.data(), count, MPI_INT, op, MPI_COMM_WORLD);
            },
            [&](Ints& out, MPI_Request* request) {
              return MPI_Iscan(send, out.data(), count, MPI_INT, op, MPI_COMM_WORLD, request);
            });
        expect_same(
            before,
            [&](Ints& out) {
              return MPI_Exscan(send, out.data(), count, MPI_INT, op, MPI_COMM_WORLD);
            },
            [&](Ints& out, MPI_Request* request) {
              return MPI_Iexscan(send, out.data(), count, MPI_INT, op, MPI_COMM_WORLD, request);
            });
      }
    }
  }
  MPI_Op_free(&not_commuting);
}

TEST_F(Nonblocking, ReduceScatterGivesWhatTheBlockingOnesGive) {
  for (const int count : {0, 1, 300, 5000}) {
    const Ints own = row(rank_, count * size_ * (size_ + 1) / 2 + 1);
    for (const bool is_in_place : {false, true}) {
      const void* const send = is_in_place ? MPI_IN_PLACE : own.data();
      const Ints before = is_in_place ? own : Ints(own.size(), -1);
      // In place what is not the result is anything.
      const auto only_result = [](Ints& out, int length) {
        std::fill(out.begin() + length, out.end(), 0);
      };
      expect_same(
          before,
          [&](Ints& out) {
            const int error =
                MPI_Reduce_scatter_block(send, out.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            only_result(out, count);
            return error;
          },
          [&](Ints& out, MPI_Request* request) {
            const int error = MPI_Ireduce_scatter_block(send, out.data(), count, MPI_INT, MPI_SUM,
                                                        MPI_COMM_WORLD, request);
            finish(*request, way_);
            only_result(out, count);
            // One that is complete, for the common end.
            MPI_Ibarrier(MPI_COMM_SELF, request);
            return error;
          });
      Ints counts(static_cast<std::size_t>(size_));
      for (int i = 0; i < size_; ++i) counts[static_cast<std::size_t>(i)] = count * i;
      expect_same(
          before,
          [&](Ints& out) {
            const int error = MPI_Reduce_scatter(send, out.data(), counts.data(), MPI_INT, MPI_SUM,
                                                 MPI_COMM_WORLD);
            only_result(out, count * rank_);
            return error;
          },
          [&](Ints& out, MPI_Request* request) {
            const int error = MPI_Ireduce_scatter(send, out.data(), counts.data(), MPI_INT, MPI_SUM,
                                                  MPI_COMM_WORLD, request);
            finish(*request, way_);
            only_result(out, count * rank_);
            MPI_Ibarrier(MPI_COMM_SELF, request);
            return error;
          });
    }
  }
}

TEST_F(Nonblocking, NobodyWaitsAtTheStart) {
  // All others begin when rank 0, which has begun, says so.
  int sum = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  const auto begin = [&] {
    EXPECT_EQ(MPI_Iallreduce(&rank_, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request),
              MPI_SUCCESS);
  };
  if (rank_ == 0) {
    begin();
    for (int i = 1; i < size_; ++i) MPI_Send(nullptr, 0, MPI_INT, i, 1, MPI_COMM_WORLD);
  } else {
    MPI_Recv(nullptr, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    begin();
  }
  finish(request, 0);
  EXPECT_EQ(sum, size_ * (size_ - 1) / 2);
}

TEST_F(Nonblocking, BarrierEndsWhenTheLastHasCome) {
  for (int late = 0; late < size_; ++late) {
    MPI_Request request;
    int flag = 0;
    if (rank_ != late) {
      EXPECT_EQ(MPI_Ibarrier(MPI_COMM_WORLD, &request), MPI_SUCCESS);
      for (int i = 0; i < 100 && size_ > 1; ++i) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        EXPECT_EQ(flag, 0);
      }
      MPI_Send(nullptr, 0, MPI_INT, late, 3, MPI_COMM_WORLD);
    } else {
      // It comes when all others have seen that they wait.
      for (int i = 1; i < size_; ++i)
        MPI_Recv(nullptr, 0, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      EXPECT_EQ(MPI_Ibarrier(MPI_COMM_WORLD, &request), MPI_SUCCESS);
    }
    finish(request, 1);
  }
}

TEST_F(Nonblocking, ManyAreUnderWayAndEndInAnyOrder) {
  constexpr int kRounds = 6;
  constexpr int kEach = 5;
  constexpr int kLong = 30'000;
  const int next = (rank_ + 1) % size_;
  const int before = (rank_ + size_ - 1) % size_;
  struct Round {
    Ints sums = Ints(kLong), said, rows, crossed, given, taken = Ints(kLong);
  };
  std::vector<Round> rounds(kRounds);
  std::vector<MPI_Request> requests;
  const Ints mine = row(rank_, kLong);
  for (int i = 0; i < kRounds; ++i) {
    Round& round = rounds[static_cast<std::size_t>(i)];
    const int root = i % size_;
    round.said = rank_ == root ? row(root, kLong, i) : Ints(kLong, -1);
    round.rows = Ints(static_cast<std::size_t>(size_), -1);
    round.crossed = Ints(static_cast<std::size_t>(size_), -1);
    round.given = row(rank_, kLong, i);
    MPI_Request started[kEach + 2];
    MPI_Iallreduce(mine.data(), round.sums.data(), kLong, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                   &started[0]);
    MPI_Irecv(round.taken.data(), kLong, MPI_INT, before, i, MPI_COMM_WORLD, &started[1]);
    MPI_Ibcast(round.said.data(), kLong, MPI_INT, root, MPI_COMM_WORLD, &started[2]);
    MPI_Iallgather(&rank_, 1, MPI_INT, round.rows.data(), 1, MPI_INT, MPI_COMM_WORLD, &started[3]);
    MPI_Isend(round.given.data(), kLong, MPI_INT, next, i, MPI_COMM_WORLD, &started[4]);
    MPI_Ialltoall(mine.data(), 1, MPI_INT, round.crossed.data(), 1, MPI_INT, MPI_COMM_WORLD,
                  &started[5]);
    MPI_Ibarrier(MPI_COMM_WORLD, &started[6]);
    requests.insert(requests.end(), std::begin(started), std::end(started));
    // A blocking one between them.
    int sum = 0;
    MPI_Allreduce(&rank_, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(sum, size_ * (size_ - 1) / 2);
  }
  const int count = static_cast<int>(requests.size());
  switch (rank_ % 3) {
    case 0:
      std::reverse(requests.begin(), requests.end());
      for (MPI_Request& each : requests) finish(each, way_++);
      break;
    case 1:
      EXPECT_EQ(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE), MPI_SUCCESS);
      break;
    default:
      for (int left = count; left > 0;) {
        Ints indices(requests.size());
        int done = 0;
        EXPECT_EQ(MPI_Waitsome(count, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE),
                  MPI_SUCCESS);
        left -= done;
      }
  }
  for (int i = 0; i < kRounds; ++i) {
    const Round& round = rounds[static_cast<std::size_t>(i)];
    EXPECT_EQ(round.said, row(i % size_, kLong, i));
    EXPECT_EQ(round.taken, row(before, kLong, i));
    for (int k = 0; k < size_; ++k) {
      EXPECT_EQ(round.rows[static_cast<std::size_t>(k)], k);
      EXPECT_EQ(round.crossed[static_cast<std::size_t>(k)], row(k, kLong)[rank_]);
    }
    Ints sums(kLong);
    for (int k = 0; k < size_; ++k) {
      const Ints theirs = row(k, kLong);
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += theirs[j];
    }
    EXPECT_EQ(round.sums, sums);
  }
}

TEST_F(Nonblocking, WhatTheyNameMayGoBeforeTheyEnd) {
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Op op;
  MPI_Op_create(
      [](void* in, void* inout, int* length, MPI_Datatype*) {
        for (int i = 0; i < 2 * *length; ++i)
          static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
      },
      1, &op);
  const Ints own = row(rank_, 2000);
  Ints sum(2000, -1);
  MPI_Request request;
  EXPECT_EQ(MPI_Iallreduce(own.data(), sum.data(), 1000, pair, op, dup, &request), MPI_SUCCESS);
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
  MPI_Comm_free(&dup);
  finish(request, 0);
  Ints expected(2000);
  for (int k = 0; k < size_; ++k) {
    const Ints theirs = row(k, 2000);
    for (std::size_t j = 0; j < expected.size(); ++j) expected[j] += theirs[j];
  }
  EXPECT_EQ(sum, expected);
}

TEST_F(Nonblocking, SendAndReceiveAreOneRequestThatTellsOfTheReceive) {
  const int next = (rank_ + 1) % size_;
  const int before = (rank_ + size_ - 1) % size_;
  for (const int count : counts_) {
    const Ints given = row(rank_, count + 1);
    Ints taken(given.size(), -1);
    MPI_Request request;
    EXPECT_EQ(MPI_Isendrecv(given.data(), count, MPI_INT, next, 5, taken.data(), count + 1, MPI_INT,
                            MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request),
              MPI_SUCCESS);
    MPI_Status status;
    EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    int got = -1;
    MPI_Get_count(&status, MPI_INT, &got);
    EXPECT_EQ(got, count);
    EXPECT_EQ(status.MPI_SOURCE, before);
    EXPECT_EQ(status.MPI_TAG, 5);
    EXPECT_TRUE(std::equal(taken.begin(), taken.end() - 1, row(before, count).begin()));

    Ints replaced = row(rank_, count, 9);
    EXPECT_EQ(MPI_Isendrecv_replace(replaced.data(), count, MPI_INT, next, 6, before, 6,
                                    MPI_COMM_WORLD, &request),
              MPI_SUCCESS);
    finish(request, way_++);
    EXPECT_EQ(replaced, row(before, count, 9));
    // Before a wildcard of the next size may take what is of this one.
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Status status;
  MPI_Request request;
  EXPECT_EQ(MPI_Isendrecv(nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, nullptr, 0, MPI_INT, MPI_PROC_NULL,
                          0, MPI_COMM_WORLD, &request),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
  EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
}

TEST_F(Nonblocking, DuplicatesComeWhenAllHaveAsked) {
  // Rank 0 asks, and says so to the others, who ask then; two at once, in the order of none.
  MPI_Comm even;
  MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, rank_, &even);
  MPI_Comm made[3] = {MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
  MPI_Request requests[3];
  const auto ask = [&] {
    if (rank_ % 3 == 0) MPI_Comm_idup(even, &made[2], &requests[2]);
    EXPECT_EQ(MPI_Comm_idup(MPI_COMM_WORLD, &made[0], &requests[0]), MPI_SUCCESS);
    EXPECT_EQ(MPI_Comm_idup(MPI_COMM_WORLD, &made[1], &requests[1]), MPI_SUCCESS);
    if (rank_ % 3 != 0) MPI_Comm_idup(even, &made[2], &requests[2]);
  };
  if (rank_ == 0) {
    ask();
    for (int i = 1; i < size_; ++i) MPI_Send(nullptr, 0, MPI_INT, i, 1, MPI_COMM_WORLD);
  } else {
    MPI_Recv(nullptr, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ask();
  }
  // One that waits for all contexts, while others are under way.
  MPI_Comm blocking;
  EXPECT_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &blocking), MPI_SUCCESS);
  EXPECT_EQ(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  // Messages of one are none of the others.
  const int next = (rank_ + 1) % size_;
  const int before = (rank_ + size_ - 1) % size_;
  const MPI_Comm all[] = {MPI_COMM_WORLD, made[0], blocking, made[1]};
  int got[4] = {};
  MPI_Request receives[4];
  for (int i = 0; i < 4; ++i) MPI_Irecv(&got[i], 1, MPI_INT, before, 9, all[i], &receives[i]);
  for (int i = 3; i >= 0; --i) {
    const int given = 10 * rank_ + i;
    MPI_Send(&given, 1, MPI_INT, next, 9, all[i]);
  }
  EXPECT_EQ(MPI_Waitall(4, receives, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got[i], 10 * before + i);
  int result = MPI_UNEQUAL;
  MPI_Comm_compare(made[0], MPI_COMM_WORLD, &result);
  EXPECT_EQ(result, MPI_CONGRUENT);
  int sum = 0;
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made[2]);
  EXPECT_EQ(sum, size_of(even));
  for (MPI_Comm& each : made) EXPECT_EQ(MPI_Comm_free(&each), MPI_SUCCESS);
  MPI_Comm_free(&blocking);
  MPI_Comm_free(&even);
}

TEST_F(Nonblocking, ADuplicateThatHasNotComeIsRefused) {
  const ErrorsAreReturned returned(MPI_COMM_WORLD);
  MPI_Comm dup;
  MPI_Request request;
  if (rank_ == 0) {
    // It gives the context, and asks when all others have.
    for (int i = 1; i < size_; ++i)
      MPI_Recv(nullptr, 0, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(MPI_Comm_idup(MPI_COMM_WORLD, &dup, &request), MPI_SUCCESS);
  } else {
    EXPECT_EQ(MPI_Comm_idup(MPI_COMM_WORLD, &dup, &request), MPI_SUCCESS);
    MPI_Request none = MPI_REQUEST_NULL;
    EXPECT_EQ(class_of(MPI_Barrier(dup)), MPI_ERR_COMM);
    EXPECT_EQ(class_of(MPI_Ibarrier(dup, &none)), MPI_ERR_COMM);
    EXPECT_EQ(none, MPI_REQUEST_NULL);
    MPI_Send(nullptr, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
  }
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(MPI_Barrier(dup), MPI_SUCCESS);
  MPI_Comm_free(&dup);
}

TEST_F(Nonblocking, DuplicatesHaveAttributesAndTopology) {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr);
  MPI_Comm ring;
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size_, &periodic, 0, &ring);
  int kept = 5;
  MPI_Comm_set_attr(ring, keyval, &kept);
  MPI_Comm dup;
  MPI_Request request;
  EXPECT_EQ(MPI_Comm_idup(ring, &dup, &request), MPI_SUCCESS);
  finish(request, 1);
  int* value = nullptr;
  int flag = 0;
  MPI_Comm_get_attr(dup, keyval, &value, &flag);
  EXPECT_TRUE(flag != 0 && value == &kept);
  int before = -1;
  int after = -1;
  EXPECT_EQ(MPI_Cart_shift(dup, 0, 1, &before, &after), MPI_SUCCESS);
  EXPECT_EQ(after, (rank_ + 1) % size_);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&ring);
  MPI_Comm_free_keyval(&keyval);
}

TEST_F(Nonblocking, MistakesAreToldAtTheStartOrAtTheEnd) {
  const ErrorsAreReturned returned(MPI_COMM_WORLD);
  int data[8] = {};
  int more[8] = {};
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(class_of(MPI_Ibcast(data, 1, MPI_INT, size_, MPI_COMM_WORLD, &request)), MPI_ERR_ROOT);
  EXPECT_EQ(class_of(MPI_Ibcast(data, -1, MPI_INT, 0, MPI_COMM_WORLD, &request)), MPI_ERR_COUNT);
  EXPECT_EQ(class_of(MPI_Ibarrier(MPI_COMM_WORLD, nullptr)), MPI_ERR_ARG);
  EXPECT_EQ(class_of(MPI_Iallreduce(data, more, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD, &request)),
            MPI_ERR_OP);
  EXPECT_EQ(class_of(MPI_Isendrecv(data, 1, MPI_INT, size_, 0, more, 1, MPI_INT, 0, 0,
                                   MPI_COMM_WORLD, &request)),
            MPI_ERR_RANK);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  EXPECT_EQ(MPI_Ibcast(data, rank_ == 0 ? 8 : 4, MPI_INT, 0, MPI_COMM_WORLD, &request),
            MPI_SUCCESS);
  const int error = MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(class_of(error),
            rank_ != 0 && (rank_ & (rank_ - 1)) == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS)
      << "those whom the root sends to";
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(Nonblocking, ARequestThatIsLetGoEndsByItself) {
  // A rank hands it on after it has come here: so it outlives the test.
  static int value;
  value = rank_ == 0 ? 42 : 0;
  MPI_Request request;
  EXPECT_EQ(MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request), MPI_SUCCESS);
  EXPECT_EQ(MPI_Request_free(&request), MPI_SUCCESS);
  MPI_Request after;
  MPI_Ibarrier(MPI_COMM_WORLD, &after);
  finish(after, 0);
  while (value != 42) {
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
}

}  // namespace
}  // namespace verbatim::mpi
