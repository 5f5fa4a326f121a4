// SPDX-License-Identifier: BSD-2-Clause
// Collectives of ranks that read each other's memory: around every length at which they go another
// way, mixed with what goes by messages, and communicators that come and go.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>

#include "mpi_shim/coll/host_groups.hpp"
#include "mpi_shim/coll/host_team.hpp"
#include "mpi_shim/core/comm.hpp"
#include "tests/mpi/in_ranks.hpp"

namespace verbatim::mpi {
namespace {

bool is_off(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr && std::string(text) == "off";
}
bool is_expected(MPI_Comm comm) {
  return size_of(comm) > 1 && !is_off("VERBATIM_SHM_MAP") && !is_off("VERBATIM_MPI_MAPPED") &&
         !is_off("VERBATIM_COLL_HOST");
}

/// As many as it takes before there is a team.
void make_team(MPI_Comm comm) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(MPI_Barrier(comm), MPI_SUCCESS);
  // Of ranks of several nodes there is none.
  const vmpi::Comm& found = *vmpi::find_comm(comm);
  EXPECT_EQ(found.team != nullptr, is_expected(comm) && found.node_state == vmpi::NodeState::kOne);
  const auto expect_little = [&](const vmpi::HostTeam& team) {
    constexpr std::size_t kMostOfMany = 64u << 10;
    if (size_of(comm) < 16) return;
    EXPECT_LE(sizeof(vmpi::HostBlock) + vmpi::HostTeam::kRooms * team.room(), kMostOfMany);
  };
  if (found.team != nullptr) expect_little(*found.team);
  if (found.node_state != vmpi::NodeState::kComposed) return;
  // But there is one of the ranks of a node.
  ASSERT_NE(found.node, nullptr);
  EXPECT_EQ(found.node->team != nullptr, is_expected(comm) && found.node->size() > 1);
  if (found.node->team != nullptr) expect_little(*found.node->team);
}

/// Bytes at which ways part, and their neighbours, in elements of 4.
std::vector<int> lengths() {
  std::vector<int> found = {0, 1, 2, 13, 14, 15, 16, 100};
  for (int kilobytes : {8, 16, 32, 64, 256})
    for (int more : {-1, 0, 1}) found.push_back(kilobytes * 256 + more);
  found.push_back(2 * 64 * 256 + 3);
  found.push_back(300 * 256);
  return found;
}

int value_of(int rank, int i) { return (rank + 1) * 1000003 + i * 7; }

class Host : public ::testing::Test {
 protected:
  void SetUp() override {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    size_ = size_of(comm_);
    rank_ = rank_in(comm_);
    make_team(comm_);
  }
  void TearDown() override { MPI_Comm_free(&comm_); }

  std::vector<int> own(int length, int salt = 0) const {
    std::vector<int> made(static_cast<std::size_t>(length) + 1);
    for (int i = 0; i < length; ++i) made[i] = value_of(rank_ + salt, i);
    return made;
  }
  int sum_of(int i, int salt = 0) const {
    int sum = 0;
    for (int r = 0; r < size_; ++r) sum += value_of(r + salt, i);
    return sum;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int size_ = 0;
  int rank_ = 0;
};

TEST_F(Host, AllreduceOfEveryLength) {
  for (int length : lengths()) {
    std::vector<int> in = own(length);
    std::vector<int> out(static_cast<std::size_t>(length) + 1, -1);
    ASSERT_EQ(MPI_Allreduce(in.data(), out.data(), length, MPI_INT, MPI_SUM, comm_), MPI_SUCCESS);
    ASSERT_EQ(MPI_Allreduce(MPI_IN_PLACE, in.data(), length, MPI_INT, MPI_SUM, comm_), MPI_SUCCESS);
    int wrong = out[length] != -1 || in[length] != 0 ? 1 : 0;
    for (int i = 0; i < length; ++i) wrong += out[i] != sum_of(i) || in[i] != out[i] ? 1 : 0;
    EXPECT_EQ(wrong, 0) << length;
  }
}

TEST_F(Host, ReduceToEveryEndOfEveryLength) {
  for (int length : lengths()) {
    for (int root : {0, size_ - 1}) {
      std::vector<int> in = own(length, root);
      std::vector<int> out(static_cast<std::size_t>(length) + 1, -1);
      ASSERT_EQ(MPI_Reduce(in.data(), rank_ == root ? out.data() : nullptr, length, MPI_INT,
                           MPI_SUM, root, comm_),
                MPI_SUCCESS);
      ASSERT_EQ(MPI_Reduce(rank_ == root ? MPI_IN_PLACE : in.data(), in.data(), length, MPI_INT,
                           MPI_SUM, root, comm_),
                MPI_SUCCESS);
      int wrong = 0;
      for (int i = 0; i < length && rank_ == root; ++i)
        wrong += out[i] != sum_of(i, root) || in[i] != out[i] ? 1 : 0;
      for (int i = 0; i < length && rank_ != root; ++i)
        wrong += in[i] != value_of(rank_ + root, i) ? 1 : 0;
      EXPECT_EQ(wrong, 0) << length << " to " << root;
    }
  }
}

TEST_F(Host, BroadcastOfEveryLength) {
  for (int length : lengths()) {
    for (int root : {0, size_ - 1}) {
      std::vector<int> data(static_cast<std::size_t>(length) + 1, -1);
      for (int i = 0; i < length && rank_ == root; ++i) data[i] = value_of(root, i);
      ASSERT_EQ(MPI_Bcast(data.data(), length, MPI_INT, root, comm_), MPI_SUCCESS);
      int wrong = data[length] != -1 ? 1 : 0;
      for (int i = 0; i < length; ++i) wrong += data[i] != value_of(root, i) ? 1 : 0;
      EXPECT_EQ(wrong, 0) << length << " from " << root;
    }
  }
}

TEST_F(Host, AllgatherOfEveryLength) {
  for (int length : lengths()) {
    if (length > 20000 && size_ > 4) continue;
    const std::vector<int> in = own(length);
    std::vector<int> out(static_cast<std::size_t>(length) * size_ + 1, -1);
    std::vector<int> in_place = out;
    std::copy(in.begin(), in.end() - 1, in_place.begin() + rank_ * length);
    ASSERT_EQ(MPI_Allgather(in.data(), length, MPI_INT, out.data(), length, MPI_INT, comm_),
              MPI_SUCCESS);
    ASSERT_EQ(MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, in_place.data(), length, MPI_INT, comm_),
              MPI_SUCCESS);
    int wrong = out.back() != -1 ? 1 : 0;
    for (int r = 0; r < size_; ++r)
      for (int i = 0; i < length; ++i) wrong += out[r * length + i] != value_of(r, i) ? 1 : 0;
    EXPECT_EQ(wrong, 0) << length;
    EXPECT_TRUE(out == in_place) << length;
  }
}

TEST_F(Host, AlltoallOfEveryLength) {
  for (int length : lengths()) {
    if (length > 20000 && size_ > 4) continue;
    std::vector<int> in(static_cast<std::size_t>(length) * size_ + 1);
    for (int r = 0; r < size_; ++r)
      for (int i = 0; i < length; ++i) in[r * length + i] = value_of(rank_ * 64 + r, i);
    std::vector<int> out(in.size(), -1);
    ASSERT_EQ(MPI_Alltoall(in.data(), length, MPI_INT, out.data(), length, MPI_INT, comm_),
              MPI_SUCCESS);
    ASSERT_EQ(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, in.data(), length, MPI_INT, comm_),
              MPI_SUCCESS);
    int wrong = out.back() != -1 ? 1 : 0;
    for (int r = 0; r < size_; ++r)
      for (int i = 0; i < length; ++i)
        wrong += out[r * length + i] != value_of(r * 64 + rank_, i) ||
                         in[r * length + i] != out[r * length + i]
                     ? 1
                     : 0;
    EXPECT_EQ(wrong, 0) << length;
  }
}

TEST_F(Host, DataWithGapsMeetDataWithout) {
  for (int length : {1, 7, 14, 15, 3000, 70000}) {
    MPI_Datatype gaps;
    MPI_Type_vector(length, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    const bool has_gaps = rank_ % 2 == 0;
    const int step = has_gaps ? 2 : 1;
    std::vector<int> data(2 * static_cast<std::size_t>(length), -1);
    for (int i = 0; i < length && rank_ == 0; ++i) data[i * step] = value_of(0, i);
    ASSERT_EQ(MPI_Bcast(data.data(), has_gaps ? 1 : length, has_gaps ? gaps : MPI_INT, 0, comm_),
              MPI_SUCCESS);
    std::vector<int> all(static_cast<std::size_t>(length) * size_, -1);
    ASSERT_EQ(MPI_Allgather(data.data(), has_gaps ? 1 : length, has_gaps ? gaps : MPI_INT,
                            all.data(), length, MPI_INT, comm_),
              MPI_SUCCESS);
    int wrong = 0;
    for (int i = 0; i < length; ++i) {
      wrong += data[i * step] != value_of(0, i) ? 1 : 0;
      wrong += has_gaps && data[2 * i + 1] != -1 ? 1 : 0;
      for (int r = 0; r < size_; ++r) wrong += all[r * length + i] != value_of(0, i) ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0) << length;
    MPI_Type_free(&gaps);
  }
}

/// Sums of these depend on their order.
TEST_F(Host, AllRanksComputeOneResult) {
  for (int length : {1, 3, 7, 100, 3000, 40000}) {
    std::vector<double> in(length);
    std::vector<double> out(length);
    for (int i = 0; i < length; ++i)
      in[i] = 1.0 / (3 + i + 17 * rank_) * (rank_ % 3 == 0 ? 1e9 : 1);
    ASSERT_EQ(MPI_Allreduce(in.data(), out.data(), length, MPI_DOUBLE, MPI_SUM, comm_),
              MPI_SUCCESS);
    std::vector<double> first = out;
    ASSERT_EQ(MPI_Bcast(first.data(), length, MPI_DOUBLE, 0, comm_), MPI_SUCCESS);
    EXPECT_EQ(std::memcmp(first.data(), out.data(), sizeof(double) * length), 0) << length;
  }
}

/// Types whose elements want more than 8 bytes of alignment, or have a gap at their ends.
TEST_F(Host, ReducesLargeElements) {
  for (int length : {1, 2, 3, 5, 1000, 20000}) {
    std::vector<long double> in(length, 1.5L * (rank_ + 1));
    std::vector<long double> out(length);
    ASSERT_EQ(MPI_Allreduce(in.data(), out.data(), length, MPI_LONG_DOUBLE, MPI_SUM, comm_),
              MPI_SUCCESS);
    EXPECT_EQ(out.front(), 1.5L * size_ * (size_ + 1) / 2);
    EXPECT_EQ(out.back(), out.front());
    struct Pair {
      double value;
      int index;
    };
    std::vector<Pair> mine(length, {static_cast<double>(rank_ % 2), rank_});
    std::vector<Pair> most(length);
    ASSERT_EQ(MPI_Allreduce(mine.data(), most.data(), length, MPI_DOUBLE_INT, MPI_MAXLOC, comm_),
              MPI_SUCCESS);
    EXPECT_EQ(most.back().index, size_ > 1 ? 1 : 0);
  }
}

/// It would be that of programs which this one starts, and threads may read it.
TEST_F(Host, TheEnvironmentStaysAsItWas) {
  std::ifstream file("/proc/self/environ");
  std::size_t variables = 0;
  for (std::string line; std::getline(file, line, '\0');) ++variables;
  std::size_t found = 0;
  while (environ[found] != nullptr) ++found;
  EXPECT_EQ(found, variables);
}

/// How many groups the ranks are in is said by who starts them; nothing: they are in none.
TEST_F(Host, RanksAreInAsManyGroupsAsAreToldOrFound) {
  const vmpi::HostTeam* const team = vmpi::find_comm(comm_)->team;
  if (team == nullptr) GTEST_SKIP() << "there is no team";
  const char* const groups = std::getenv("VERBATIM_TEST_GROUPS");
  const char* const nodes = std::getenv("VERBATIM_TEST_GROUPS_OF_NODES");
  if (groups == nullptr) {
    EXPECT_EQ(team->groups(), nullptr);
    return;
  }
  ASSERT_NE(team->groups(), nullptr);
  EXPECT_EQ(team->groups()->groups.count(), std::atoi(groups));
  EXPECT_EQ(team->groups()->nodes.count(), std::atoi(nodes != nullptr ? nodes : groups));
}

/// What depends on the order is bit by bit the sum in the order of ranks, wherever they run.
TEST_F(Host, ShortOnesOfEveryNumberOfRanks) {
  const bool is_in_order = vmpi::find_comm(comm_)->team != nullptr;
  const auto term = [](int rank, int i) {
    return 1.0 / (3 + i + 17 * rank) * (rank % 3 == 0 ? 1e9 : 1);
  };
  for (int ranks = 1; ranks <= size_; ++ranks) {
    MPI_Comm first;
    MPI_Comm_split(comm_, rank_ < ranks ? 0 : MPI_UNDEFINED, 0, &first);
    if (first == MPI_COMM_NULL) continue;
    make_team(first);
    // Longer than the lines are many, so that each is used again.
    for (int round = 0; round < 20; ++round) {
      const int length = 1 + round % 7;
      const int root = round * 5 % ranks;
      double mine[7];
      double sum[7] = {};
      double at_root[7] = {};
      double right[7] = {};
      for (int i = 0; i < length; ++i) {
        mine[i] = term(rank_, i);
        right[i] = term(0, i);
        for (int r = 1; r < ranks; ++r) right[i] += term(r, i);
      }
      ASSERT_EQ(MPI_Allreduce(mine, sum, length, MPI_DOUBLE, MPI_SUM, first), MPI_SUCCESS);
      ASSERT_EQ(MPI_Reduce(mine, at_root, length, MPI_DOUBLE, MPI_SUM, root, first), MPI_SUCCESS);
      if (round % 3 == 0) {
        ASSERT_EQ(MPI_Barrier(first), MPI_SUCCESS);
      }
      const auto is_right = [&](const double* found) {
        for (int i = 0; i < length; ++i)
          if (is_in_order ? found[i] != right[i] : std::abs(found[i] / right[i] - 1) > 1e-12)
            return false;
        return true;
      };
      EXPECT_TRUE(is_right(sum)) << ranks << " ranks, " << length;
      EXPECT_TRUE(rank_ != root || is_right(at_root)) << ranks << " ranks, " << length;
      int said[14];
      for (int i = 0; i < 14; ++i) said[i] = rank_ == root ? value_of(round, i) : -1;
      ASSERT_EQ(MPI_Bcast(said, round % 15, MPI_INT, root, first), MPI_SUCCESS);
      for (int i = 0; i < 14; ++i) {
        EXPECT_EQ(said[i], i < round % 15 || rank_ == root ? value_of(round, i) : -1) << ranks;
      }
    }
    MPI_Comm_free(&first);
  }
}

void take_the_left(void* in, void* inout, int* length, MPI_Datatype*) {
  std::memcpy(inout, in, sizeof(int) * *length);
}

/// An operation of the program that does not commute goes by messages, between those that do not.
TEST_F(Host, GoesOnAfterWhatGoesByMessages) {
  MPI_Op left;
  MPI_Op_create(take_the_left, 0, &left);
  for (int round = 0; round < 20; ++round) {
    int mine = rank_ + round;
    int first = -1;
    ASSERT_EQ(MPI_Allreduce(&mine, &first, 1, MPI_INT, left, comm_), MPI_SUCCESS);
    EXPECT_EQ(first, round);
    int sum = 0;
    ASSERT_EQ(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm_), MPI_SUCCESS);
    EXPECT_EQ(sum, size_ * round + size_ * (size_ - 1) / 2);
    int next = -1;
    MPI_Request requests[2];
    MPI_Irecv(&next, 1, MPI_INT, (rank_ + 1) % size_, 3, comm_, &requests[0]);
    MPI_Iallreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_MAX, comm_, &requests[1]);
    ASSERT_EQ(MPI_Barrier(comm_), MPI_SUCCESS);
    MPI_Send(&rank_, 1, MPI_INT, (rank_ + size_ - 1) % size_, 3, comm_);
    int all[64] = {};
    ASSERT_EQ(MPI_Allgather(&rank_, 1, MPI_INT, all, 1, MPI_INT, comm_), MPI_SUCCESS);
    EXPECT_EQ(all[size_ - 1], size_ - 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQ(next, (rank_ + 1) % size_);
    EXPECT_EQ(mine, size_ - 1 + round);
  }
  MPI_Op_free(&left);
}

/// Of MPI_Alloc_mem: others read it where it lies.
class Mapped {
 public:
  explicit Mapped(std::size_t length) {
    MPI_Alloc_mem(static_cast<MPI_Aint>(length * sizeof(int)), MPI_INFO_NULL, &at_);
  }
  ~Mapped() { MPI_Free_mem(at_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  int& operator[](std::size_t i) { return at_[i]; }
  int* data() { return at_; }

 private:
  int* at_ = nullptr;
};

TEST_F(Host, LongOnesOfMemoryThatOthersMap) {
  for (int length : {8191, 8192, 8193, 16384, 65537, 100'003}) {
    const auto ranks = static_cast<std::size_t>(size_);
    Mapped in(length * ranks);
    Mapped out(length * ranks);
    std::vector<int> elsewhere(length * ranks);
    // Some ranks, all but one, or all use memory that can be mapped.
    for (int who : {-1, 0, size_ - 1}) {
      for (bool is_in_place : {false, true}) {
        int* const send = rank_ == who ? elsewhere.data() : in.data();
        int* const receive = out.data();
        const auto fill = [&](int* at) {
          for (int i = 0; i < length; ++i) at[i] = value_of(rank_, i);
        };
        int wrong = 0;
        fill(is_in_place ? receive : send);
        ASSERT_EQ(MPI_Allreduce(is_in_place ? MPI_IN_PLACE : send, receive, length, MPI_INT,
                                MPI_SUM, comm_),
                  MPI_SUCCESS);
        for (int i = 0; i < length; ++i) wrong += receive[i] != sum_of(i) ? 1 : 0;
        EXPECT_EQ(wrong, 0) << "allreduce " << length << " " << who << is_in_place;

        const int root = size_ - 1;
        fill(send);
        if (rank_ == root) fill(receive);
        ASSERT_EQ(MPI_Reduce(rank_ == root && is_in_place ? MPI_IN_PLACE : send, receive, length,
                             MPI_INT, MPI_SUM, root, comm_),
                  MPI_SUCCESS);
        for (int i = 0; i < length && rank_ == root; ++i) wrong += receive[i] != sum_of(i) ? 1 : 0;
        EXPECT_EQ(wrong, 0) << "reduce " << length << " " << who << is_in_place;

        fill(send);
        ASSERT_EQ(MPI_Bcast(send, length, MPI_INT, root, comm_), MPI_SUCCESS);
        for (int i = 0; i < length; ++i) wrong += send[i] != value_of(root, i) ? 1 : 0;
        EXPECT_EQ(wrong, 0) << "bcast " << length << " " << who;

        if (size_ > 8) continue;
        fill(is_in_place ? receive + static_cast<std::ptrdiff_t>(rank_) * length : send);
        ASSERT_EQ(MPI_Allgather(is_in_place ? MPI_IN_PLACE : send, length, MPI_INT, receive, length,
                                MPI_INT, comm_),
                  MPI_SUCCESS);
        for (int r = 0; r < size_; ++r)
          for (int i = 0; i < length; ++i)
            wrong += receive[r * length + i] != value_of(r, i) ? 1 : 0;
        EXPECT_EQ(wrong, 0) << "allgather " << length << " " << who << is_in_place;

        for (int r = 0; r < size_; ++r)
          for (int i = 0; i < length; ++i)
            (is_in_place ? receive : send)[r * length + i] = value_of(rank_ * 64 + r, i);
        ASSERT_EQ(MPI_Alltoall(is_in_place ? MPI_IN_PLACE : send, length, MPI_INT, receive, length,
                               MPI_INT, comm_),
                  MPI_SUCCESS);
        for (int r = 0; r < size_; ++r)
          for (int i = 0; i < length; ++i)
            wrong += receive[r * length + i] != value_of(r * 64 + rank_, i) ? 1 : 0;
        EXPECT_EQ(wrong, 0) << "alltoall " << length << " " << who << is_in_place;
      }
    }
  }
}

/// A long message to one who waits in a collective arrives.
TEST_F(Host, MessagesGoOnWhileItWaits) {
  constexpr int kLong = 300'000;
  std::vector<char> data(kLong, static_cast<char>('a' + rank_));
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank_ == 1) MPI_Irecv(data.data(), kLong, MPI_CHAR, 0, 4, comm_, &request);
  if (rank_ == 0 && size_ > 1) MPI_Ssend(data.data(), kLong, MPI_CHAR, 1, 4, comm_);
  ASSERT_EQ(MPI_Barrier(comm_), MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank_ == 1) {
    EXPECT_EQ(data.back(), 'a');
  }
}

/// Roots run ahead of those that hear them, as far as there is room, and no further.
TEST_F(Host, ManyFromOneRootThenFromAnother) {
  std::vector<int> long_one(5000);
  for (int root : {0, size_ - 1, size_ / 2}) {
    for (int round = 0; round < 100; ++round) {
      int said = rank_ == root ? round : -1;
      ASSERT_EQ(MPI_Bcast(&said, 1, MPI_INT, root, comm_), MPI_SUCCESS);
      ASSERT_EQ(said, round);
      if (round % 5 == 0) {
        long_one[4999] = rank_ == root ? round : -1;
        ASSERT_EQ(MPI_Bcast(long_one.data(), 5000, MPI_INT, root, comm_), MPI_SUCCESS);
        ASSERT_EQ(long_one[4999], round);
      }
      int sum = 0;
      ASSERT_EQ(MPI_Reduce(&round, &sum, 1, MPI_INT, MPI_SUM, root, comm_), MPI_SUCCESS);
      if (rank_ == root) {
        ASSERT_EQ(sum, round * size_);
      }
    }
  }
}

TEST_F(Host, CommunicatorsAtOnce) {
  MPI_Comm halves;
  MPI_Comm_split(comm_, rank_ % 2, -rank_, &halves);
  make_team(halves);
  for (int round = 0; round < 50; ++round) {
    int counts[2] = {1, 1};
    ASSERT_EQ(MPI_Allreduce(MPI_IN_PLACE, &counts[0], 1, MPI_INT, MPI_SUM, halves), MPI_SUCCESS);
    ASSERT_EQ(MPI_Allreduce(MPI_IN_PLACE, &counts[1], 1, MPI_INT, MPI_SUM, comm_), MPI_SUCCESS);
    EXPECT_EQ(counts[0], size_of(halves));
    EXPECT_EQ(counts[1], size_);
  }
  MPI_Comm_free(&halves);
}

/// Blocks are used again, and only when nobody reads them for the communicator before.
TEST_F(Host, CommunicatorsThatComeAndGo) {
  for (int round = 0; round < 12; ++round) {
    MPI_Comm dup;
    MPI_Comm_dup(comm_, &dup);
    make_team(dup);
    int said = rank_ == 0 ? round : -1;
    // The root leaves at once.
    ASSERT_EQ(MPI_Bcast(&said, 1, MPI_INT, 0, dup), MPI_SUCCESS);
    MPI_Comm_free(&dup);
    EXPECT_EQ(said, round);
  }
}

TEST_F(Host, ThreadsOfCommunicatorsOfTheirOwn) {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE) GTEST_SKIP() << "it takes MPI_THREAD_MULTIPLE";
  constexpr int kThreads = 3;
  MPI_Comm comms[kThreads];
  for (MPI_Comm& each : comms) MPI_Comm_dup(comm_, &each);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([comm = comms[thread], thread, this] {
      for (int round = 0; round < 60; ++round) {
        const int mine = thread * 1000 + round;
        int sum = 0;
        EXPECT_EQ(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
        EXPECT_EQ(sum, mine * size_);
        std::vector<int> more(3000, mine);
        EXPECT_EQ(MPI_Bcast(more.data(), 3000, MPI_INT, round % size_, comm), MPI_SUCCESS);
        EXPECT_EQ(more[2999], mine);
        EXPECT_EQ(MPI_Barrier(comm), MPI_SUCCESS);
      }
    });
  for (std::thread& each : threads) each.join();
  for (MPI_Comm& each : comms) MPI_Comm_free(&each);
}

/// All are told, wherever lengths are seen to differ, and what follows is right.
/// Whoever it is, and whatever it calls: a longer one, one that goes through rooms, or a barrier.
TEST_F(Host, OneThatIsElsewhereIsToldOfToAll) {
  if (!is_expected(comm_)) GTEST_SKIP() << "without mapped memory messages are truncated, or not";
  const ErrorsAreReturned returned(comm_);
  int in[15] = {};
  int out[15] = {};
  for (int odd = 0; odd < size_; ++odd) {
    for (const int length : {2, 15, 0}) {
      const int mine = rank_ == odd ? length : 1;
      const int error =
          mine != 0 ? MPI_Allreduce(in, out, mine, MPI_INT, MPI_SUM, comm_) : MPI_Barrier(comm_);
      EXPECT_EQ(class_of(error), MPI_ERR_TRUNCATE) << odd << ", " << length;
      ASSERT_EQ(MPI_Barrier(comm_), MPI_SUCCESS);
    }
    // Of a broadcast those hear of it who hear the odd one.
    const int error =
        class_of(rank_ == odd ? MPI_Barrier(comm_) : MPI_Bcast(in, 1, MPI_INT, 0, comm_));
    EXPECT_TRUE(error == MPI_ERR_TRUNCATE || (rank_ != odd && odd != 0 && error == MPI_SUCCESS))
        << odd << ", " << error;
    ASSERT_EQ(MPI_Barrier(comm_), MPI_SUCCESS);
  }
}

TEST_F(Host, LengthsThatDifferAreTold) {
  if (!is_expected(comm_)) GTEST_SKIP() << "without mapped memory messages are truncated, or not";
  const ErrorsAreReturned returned(comm_);
  std::vector<int> in(100'000);
  std::vector<int> out(in.size() * size_);
  const int lengths[] = {1, 14, 15, 9000, 70'000, 100'000};
  for (int a : lengths) {
    for (int b : lengths) {
      if (a == b || (size_ > 4 && a + b > 10'000)) continue;
      const int mine = rank_ == 0 ? a : b;
      EXPECT_EQ(class_of(MPI_Allreduce(in.data(), out.data(), mine, MPI_INT, MPI_SUM, comm_)),
                MPI_ERR_TRUNCATE)
          << a << " and " << b;
      EXPECT_EQ(class_of(MPI_Allgather(in.data(), mine, MPI_INT, out.data(), mine, MPI_INT, comm_)),
                MPI_ERR_TRUNCATE)
          << a << " and " << b;
      const int share = std::min<int>(mine, static_cast<int>(in.size()) / size_);
      if (a <= 15) {
        EXPECT_EQ(
            class_of(MPI_Alltoall(in.data(), share, MPI_INT, out.data(), share, MPI_INT, comm_)),
            MPI_ERR_TRUNCATE)
            << a << " and " << b;
      }
      const int error = MPI_Bcast(in.data(), mine, MPI_INT, 0, comm_);
      if (rank_ != 0 && a > b) {
        EXPECT_EQ(class_of(error), MPI_ERR_TRUNCATE) << a << " and " << b;
      }
      const int reduced = MPI_Reduce(in.data(), out.data(), mine, MPI_INT, MPI_SUM, 0, comm_);
      if (rank_ == 0) {
        EXPECT_EQ(class_of(reduced), MPI_ERR_TRUNCATE) << a << " and " << b;
      }
      int sum = 0;
      const int one = 1;
      ASSERT_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm_), MPI_SUCCESS);
      ASSERT_EQ(sum, size_) << a << " and " << b;
    }
  }
}

}  // namespace
}  // namespace verbatim::mpi
