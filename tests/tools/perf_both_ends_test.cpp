// SPDX-License-Identifier: BSD-2-Clause
// Which two processors the ends of a test are bound to.
#include "perf/cli/perf_both_ends.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace verbatim::cli {
namespace {

using Pair = std::optional<std::pair<int, int>>;

TEST(NearProcessors, AreTheFirstTwoWhereNothingIsKnown) {
  EXPECT_EQ(near_processors({}, {}), Pair{});
  EXPECT_EQ(near_processors({}, {7}), Pair{});
  EXPECT_EQ(near_processors({}, {3, 5, 8}), Pair({3, 5}));
}

/// A machine of four cores in two groups, and of eight processors: each core's two are `cores` apart.
class FourCores {
 public:
  FourCores() {
    topo::MachineHead head = {};
    head.origin = topo::Origin::kThisHost;
    head.node_count = 1;
    head.group_count = 2;
    head.core_count = 4;
    head.pu_count = head.cpu_end = 8;
    const topo::MachineTables tables(head);
    bytes_.resize(tables.end);
    put(0, head);
    for (std::uint32_t pu = 0; pu < 8; ++pu) {
      const std::uint32_t cpu = pu / 2 + (pu % 2) * 4;
      put(tables.pus + pu * sizeof(topo::Pu), topo::Pu{cpu, pu / 2, pu / 4, 0});
      put(tables.pu_of_cpu + cpu * 4, pu);
    }
  }
  topo::Machine machine() const {
    return topo::Machine(reinterpret_cast<const unsigned char*>(bytes_.data()));
  }

 private:
  template <class T>
  void put(std::uint64_t at, const T& what) {
    std::memcpy(bytes_.data() + at, &what, sizeof what);
  }
  std::vector<char> bytes_;
};

TEST(NearProcessors, ShareACacheButNotACore) {
  const FourCores four;
  EXPECT_EQ(near_processors(four.machine(), {0, 1, 2, 3, 4, 5, 6, 7}), Pair({0, 1}));
  EXPECT_EQ(near_processors(four.machine(), {0, 4, 3, 7, 6}), Pair({3, 6}));  // 0 and 4: one core
  EXPECT_EQ(near_processors(four.machine(), {0, 4, 2}), Pair({0, 2}));        // of two groups
  EXPECT_EQ(near_processors(four.machine(), {0, 4}), Pair({0, 4}));           // there is no other
}

}  // namespace
}  // namespace verbatim::cli
