// SPDX-License-Identifier: BSD-2-Clause
// Graphs, and collectives with neighbours (MPI 5.0 sections 8.5.3, 8.5.4 and 8.6). Grids themselves
// are in communicators_test.cpp.
#include <algorithm>

#include "tests/mpi/in_ranks.hpp"

namespace verbatim::mpi {
namespace {

using Ints = std::vector<int>;

class Topologies : public ::testing::Test {
 protected:
  const int rank_ = rank_in(MPI_COMM_WORLD);
  const int size_ = size_of(MPI_COMM_WORLD);
  const int next_ = (rank_ + 1) % size_;
  const int before_ = (rank_ + size_ - 1) % size_;
};

TEST_F(Topologies, GraphsSayWhatTheyWereMadeOf) {
  // Node i has edges to all nodes below it; the last rank is no node, if there are more.
  const int nodes = size_ > 1 ? size_ - 1 : 1;
  Ints index;
  Ints edges;
  for (int i = 0; i < nodes; ++i) {
    for (int k = 0; k < i; ++k) edges.push_back(k);
    index.push_back(static_cast<int>(edges.size()));
  }
  edges.reserve(1);
  MPI_Comm graph = MPI_COMM_WORLD;
  EXPECT_EQ(MPI_Graph_create(MPI_COMM_WORLD, nodes, index.data(), edges.data(), 1, &graph),
            MPI_SUCCESS);
  int place = -1;
  EXPECT_EQ(MPI_Graph_map(MPI_COMM_WORLD, nodes, index.data(), edges.data(), &place), MPI_SUCCESS);
  EXPECT_EQ(place, rank_ < nodes ? rank_ : MPI_UNDEFINED);
  if (rank_ >= nodes) {
    EXPECT_EQ(graph, MPI_COMM_NULL);
    return;
  }
  // A duplicate is one too.
  MPI_Comm dup;
  MPI_Comm_dup(graph, &dup);
  for (const MPI_Comm each : {graph, dup}) {
    int kind = 0;
    MPI_Topo_test(each, &kind);
    EXPECT_EQ(kind, MPI_GRAPH);
    int node_count = 0;
    int edge_count = -1;
    EXPECT_EQ(MPI_Graphdims_get(each, &node_count, &edge_count), MPI_SUCCESS);
    EXPECT_EQ(node_count, nodes);
    EXPECT_EQ(edge_count, static_cast<int>(edges.size()));
    Ints index_got(index.size());
    Ints edges_got(edges.size());
    EXPECT_EQ(MPI_Graph_get(each, nodes, edge_count, index_got.data(), edges_got.data()),
              MPI_SUCCESS);
    EXPECT_EQ(index_got, index);
    EXPECT_EQ(edges_got, edges);
    for (int i = 0; i < nodes; ++i) {
      int count = -1;
      EXPECT_EQ(MPI_Graph_neighbors_count(each, i, &count), MPI_SUCCESS);
      EXPECT_EQ(count, i);
      Ints neighbours(static_cast<std::size_t>(i));
      EXPECT_EQ(MPI_Graph_neighbors(each, i, i, neighbours.data()), MPI_SUCCESS);
      for (int k = 0; k < i; ++k) EXPECT_EQ(neighbours[static_cast<std::size_t>(k)], k);
    }
  }
  MPI_Comm_free(&dup);
  MPI_Comm_free(&graph);
}

struct Neighbours {
  Ints sources, source_weights, destinations, destination_weights;
  int is_weighted = -1;
};

Neighbours neighbours_in(MPI_Comm comm) {
  Neighbours out;
  int in_degree = -1;
  int out_degree = -1;
  EXPECT_EQ(MPI_Dist_graph_neighbors_count(comm, &in_degree, &out_degree, &out.is_weighted),
            MPI_SUCCESS);
  out.sources.resize(static_cast<std::size_t>(in_degree));
  out.source_weights.assign(out.sources.size(), -1);
  out.destinations.resize(static_cast<std::size_t>(out_degree));
  out.destination_weights.assign(out.destinations.size(), -1);
  EXPECT_EQ(
      MPI_Dist_graph_neighbors(comm, in_degree, out.sources.data(), out.source_weights.data(),
                               out_degree, out.destinations.data(), out.destination_weights.data()),
      MPI_SUCCESS);
  return out;
}

TEST_F(Topologies, DistributedGraphsKeepWhatEachRankSaysOfItself) {
  const Ints sources = {before_, rank_};
  const Ints destinations = {next_, rank_};
  const Ints in_weights = {10 + before_, 3};
  const Ints out_weights = {10 + rank_, 3};
  for (const bool is_weighted : {true, false}) {
    MPI_Comm graph;
    EXPECT_EQ(MPI_Dist_graph_create_adjacent(
                  MPI_COMM_WORLD, 2, sources.data(),
                  is_weighted ? in_weights.data() : MPI_UNWEIGHTED, 2, destinations.data(),
                  is_weighted ? out_weights.data() : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph),
              MPI_SUCCESS);
    int kind = 0;
    MPI_Topo_test(graph, &kind);
    EXPECT_EQ(kind, MPI_DIST_GRAPH);
    MPI_Comm dup;
    MPI_Comm_dup(graph, &dup);
    const Neighbours got = neighbours_in(dup);
    EXPECT_EQ(got.sources, sources);
    EXPECT_EQ(got.destinations, destinations);
    EXPECT_EQ(got.is_weighted, is_weighted ? 1 : 0);
    EXPECT_EQ(got.source_weights, is_weighted ? in_weights : Ints({-1, -1}));
    EXPECT_EQ(got.destination_weights, is_weighted ? out_weights : Ints({-1, -1}));
    MPI_Comm_free(&dup);
    MPI_Comm_free(&graph);
  }
}

TEST_F(Topologies, DistributedGraphsAreWhatAnyRankSaysOfAny) {
  // Each says of its neighbour above: it sends to the first rank, and to the one above itself.
  const int source = next_;
  const int degree = 2;
  const Ints destinations = {0, (source + 1) % size_};
  const Ints weights = {source, 100 + source};
  MPI_Comm graph;
  EXPECT_EQ(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, destinations.data(),
                                  weights.data(), MPI_INFO_NULL, 0, &graph),
            MPI_SUCCESS);
  Neighbours got = neighbours_in(graph);
  EXPECT_EQ(got.is_weighted, 1);
  EXPECT_EQ(got.destinations, Ints({0, next_}));
  EXPECT_EQ(got.destination_weights, Ints({rank_, 100 + rank_}));
  Ints sources;
  if (rank_ == 0)
    for (int i = 0; i < size_; ++i) sources.push_back(i);
  sources.push_back(before_);
  std::sort(sources.begin(), sources.end());
  for (std::size_t i = 0; i < got.sources.size(); ++i)
    EXPECT_EQ(got.source_weights[i] % 100, got.sources[i]);
  std::sort(got.sources.begin(), got.sources.end());
  EXPECT_EQ(got.sources, sources);
  MPI_Comm_free(&graph);
  // Nobody says anything.
  EXPECT_EQ(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, nullptr, nullptr, nullptr, MPI_UNWEIGHTED,
                                  MPI_INFO_NULL, 0, &graph),
            MPI_SUCCESS);
  got = neighbours_in(graph);
  EXPECT_TRUE(got.sources.empty() && got.destinations.empty());
  EXPECT_EQ(MPI_Neighbor_alltoall(nullptr, 1, MPI_INT, nullptr, 1, MPI_INT, graph), MPI_SUCCESS);
  EXPECT_EQ(MPI_Neighbor_alltoallv(nullptr, nullptr, nullptr, MPI_INT, nullptr, nullptr, nullptr,
                                   MPI_INT, graph),
            MPI_SUCCESS);
  MPI_Comm_free(&graph);
}

/// What `from` has for its edge `edge`.
int value(int from, int edge, int i) { return 1000 * from + 100 * edge + i; }

constexpr int kCount = 3;

/// All ten functions: slice i of the sender's is for its edge i, and comes from edge
/// `edge_at_source[i]` of source i; MPI_PROC_NULL leaves its slice as it was.
void expect_exchanged(MPI_Comm comm, const Ints& sources, const Ints& edge_at_source,
                      int out_degree) {
  const int rank = rank_in(comm);
  const auto in_degree = static_cast<int>(sources.size());
  Ints given;
  for (int edge = 0; edge < out_degree; ++edge)
    for (int i = 0; i < kCount; ++i) given.push_back(value(rank, edge, i));
  Ints crossed;
  Ints gathered;
  for (std::size_t k = 0; k < sources.size(); ++k)
    for (int i = 0; i < kCount; ++i) {
      const bool is_nobody = sources[k] == MPI_PROC_NULL;
      crossed.push_back(is_nobody ? -1 : value(sources[k], edge_at_source[k], i));
      gathered.push_back(is_nobody ? -1 : value(sources[k], 7, i));
    }
  Ints own;
  for (int i = 0; i < kCount; ++i) own.push_back(value(rank, 7, i));
  const Ints marked(crossed.size(), -1);
  Ints counts(static_cast<std::size_t>(std::max(in_degree, out_degree)), kCount);
  Ints places;
  std::vector<MPI_Aint> bytes;
  for (int i = 0; i < static_cast<int>(counts.size()); ++i) {
    places.push_back(kCount * i);
    bytes.push_back(static_cast<MPI_Aint>(sizeof(int)) * kCount * i);
  }
  const std::vector<MPI_Datatype> types(counts.size(), MPI_INT);
  MPI_Request request;
  const auto waited = [&request](int error) {
    EXPECT_EQ(error, MPI_SUCCESS);
    EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  };

  Ints got = marked;
  EXPECT_EQ(MPI_Neighbor_allgather(own.data(), kCount, MPI_INT, got.data(), kCount, MPI_INT, comm),
            MPI_SUCCESS);
  EXPECT_EQ(got, gathered);
  got = marked;
  EXPECT_EQ(MPI_Neighbor_allgatherv(own.data(), kCount, MPI_INT, got.data(), counts.data(),
                                    places.data(), MPI_INT, comm),
            MPI_SUCCESS);
  EXPECT_EQ(got, gathered);
  got = marked;
  EXPECT_EQ(MPI_Neighbor_alltoall(given.data(), kCount, MPI_INT, got.data(), kCount, MPI_INT, comm),
            MPI_SUCCESS);
  EXPECT_EQ(got, crossed);
  got = marked;
  EXPECT_EQ(MPI_Neighbor_alltoallv(given.data(), counts.data(), places.data(), MPI_INT, got.data(),
                                   counts.data(), places.data(), MPI_INT, comm),
            MPI_SUCCESS);
  EXPECT_EQ(got, crossed);
  got = marked;
  EXPECT_EQ(MPI_Neighbor_alltoallw(given.data(), counts.data(), bytes.data(), types.data(),
                                   got.data(), counts.data(), bytes.data(), types.data(), comm),
            MPI_SUCCESS);
  EXPECT_EQ(got, crossed);

  got = marked;
  waited(MPI_Ineighbor_allgather(own.data(), kCount, MPI_INT, got.data(), kCount, MPI_INT, comm,
                                 &request));
  EXPECT_EQ(got, gathered);
  got = marked;
  waited(MPI_Ineighbor_allgatherv(own.data(), kCount, MPI_INT, got.data(), counts.data(),
                                  places.data(), MPI_INT, comm, &request));
  EXPECT_EQ(got, gathered);
  got = marked;
  waited(MPI_Ineighbor_alltoall(given.data(), kCount, MPI_INT, got.data(), kCount, MPI_INT, comm,
                                &request));
  EXPECT_EQ(got, crossed);
  got = marked;
  waited(MPI_Ineighbor_alltoallv(given.data(), counts.data(), places.data(), MPI_INT, got.data(),
                                 counts.data(), places.data(), MPI_INT, comm, &request));
  EXPECT_EQ(got, crossed);
  got = marked;
  waited(MPI_Ineighbor_alltoallw(given.data(), counts.data(), bytes.data(), types.data(),
                                 got.data(), counts.data(), bytes.data(), types.data(), comm,
                                 &request));
  EXPECT_EQ(got, crossed);
}

TEST_F(Topologies, NeighboursInAGridExchangeAlongEachDimension) {
  // Also of one or two places, where both neighbours are one rank: what went down comes from above.
  for (const int periodic : {1, 0}) {
    for (const int columns : {1, 2}) {
      if (size_ % columns != 0) continue;
      const int dims[] = {size_ / columns, columns};
      const int periods[] = {periodic, 1};
      MPI_Comm grid;
      MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
      Ints sources;
      for (int i = 0; i < 2; ++i) {
        int below = 0;
        int above = 0;
        MPI_Cart_shift(grid, i, 1, &below, &above);
        sources.push_back(below);
        sources.push_back(above);
      }
      expect_exchanged(grid, sources, {1, 0, 3, 2}, 4);
      MPI_Comm_free(&grid);
    }
  }
}

TEST_F(Topologies, NeighboursInAGraphExchange) {
  // A ring in which each also has itself: of the edges of a node the first is the one before.
  Ints index;
  Ints edges;
  for (int i = 0; i < size_; ++i) {
    edges.insert(edges.end(), {(i + size_ - 1) % size_, i, (i + 1) % size_});
    index.push_back(3 * (i + 1));
  }
  MPI_Comm graph;
  EXPECT_EQ(MPI_Graph_create(MPI_COMM_WORLD, size_, index.data(), edges.data(), 0, &graph),
            MPI_SUCCESS);
  // With three ranks or more each pair has one edge; below, edges of a pair match in their order.
  const Ints at_source = size_ > 2    ? Ints({2, 1, 0})
                         : size_ == 2 ? Ints({0, 1, 2})
                                      : Ints({0, 1, 2});
  expect_exchanged(graph, {before_, rank_, next_}, at_source, 3);
  MPI_Comm_free(&graph);
}

TEST_F(Topologies, NeighboursInADistributedGraphExchangeEveryEdge) {
  // Two edges to the one above, one to rank 0.
  const Ints destinations = {next_, 0, next_};
  Ints sources = {before_, before_};
  Ints at_source = {0, 2};
  if (rank_ == 0) {
    // Its own edges to itself, and those of the one before it to it, are in the order of edges.
    sources.clear();
    at_source.clear();
    for (int from = 0; from < size_; ++from)
      for (int edge = 0; edge < 3; ++edge)
        if (edge == 1 || (from + 1) % size_ == 0) {
          sources.push_back(from);
          at_source.push_back(edge);
        }
  }
  MPI_Comm graph;
  EXPECT_EQ(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(sources.size()),
                                           sources.data(), MPI_UNWEIGHTED, 3, destinations.data(),
                                           MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph),
            MPI_SUCCESS);
  expect_exchanged(graph, sources, at_source, 3);
  MPI_Comm_free(&graph);
}

TEST_F(Topologies, MistakesHaveTheErrorClassesOfTheStandard) {
  const ErrorsAreReturned returned(MPI_COMM_WORLD);
  MPI_Comm graph = MPI_COMM_NULL;
  int number = 0;
  int more = 0;
  const int backwards[] = {1, 0};
  const int far = size_;
  const int one = 1;
  EXPECT_EQ(class_of(MPI_Graph_create(MPI_COMM_WORLD, size_ + 1, &one, &one, 0, &graph)),
            MPI_ERR_ARG);
  if (size_ > 1) {
    EXPECT_EQ(class_of(MPI_Graph_create(MPI_COMM_WORLD, 2, backwards, &number, 0, &graph)),
              MPI_ERR_ARG);
  }
  EXPECT_EQ(class_of(MPI_Graph_create(MPI_COMM_WORLD, 1, &one, &far, 0, &graph)), MPI_ERR_ARG);
  EXPECT_EQ(class_of(MPI_Graph_neighbors_count(MPI_COMM_WORLD, 0, &number)), MPI_ERR_TOPOLOGY);
  EXPECT_EQ(class_of(MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &number, &number, &number)),
            MPI_ERR_TOPOLOGY);
  EXPECT_EQ(class_of(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &far, &one, &number, MPI_UNWEIGHTED,
                                           MPI_INFO_NULL, 0, &graph)),
            MPI_ERR_RANK);
  EXPECT_EQ(class_of(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &number, MPI_WEIGHTS_EMPTY,
                                                    0, nullptr, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0,
                                                    &graph)),
            MPI_ERR_ARG);
  EXPECT_EQ(
      class_of(MPI_Neighbor_allgather(&number, 1, MPI_INT, &more, 1, MPI_INT, MPI_COMM_WORLD)),
      MPI_ERR_TOPOLOGY);
  EXPECT_EQ(graph, MPI_COMM_NULL);
}

}  // namespace
}  // namespace verbatim::mpi
