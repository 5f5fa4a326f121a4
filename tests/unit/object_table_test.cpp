// SPDX-License-Identifier: BSD-2-Clause
// The numbers by which events name objects, and the names by which completions do.
#include <gtest/gtest.h>

#include <vector>

#include "providers/uverbs/object_table.hpp"

namespace verbatim::unit {
namespace {

TEST(ObjectTable, NumbersAreNeverUsedTwice) {
  uverbs::ObjectTable table;
  int object = 0;
  const std::uint64_t first = table.add(uverbs::Kind::kCq, &object);
  EXPECT_EQ(table.find(uverbs::Kind::kCq, first), &object);
  EXPECT_EQ(table.find(uverbs::Kind::kQp, first), nullptr);
  table.remove(first);
  EXPECT_EQ(table.find(uverbs::Kind::kCq, first), nullptr);
  const std::uint64_t second = table.add(uverbs::Kind::kCq, &object);
  EXPECT_NE(first, second);
  EXPECT_EQ(table.find(uverbs::Kind::kCq, first), nullptr);
  for (int i = 0; i < 1000; ++i) EXPECT_NE(table.add(uverbs::Kind::kQp, &object), 0u);
  EXPECT_EQ(table.find(uverbs::Kind::kCq, second), &object);
}

// Names are the kernel's numbers: some apart, some the same for another kind, none for ever.
TEST(ObjectTable, KnowsEachByItsNameForAsLongAsItHasIt) {
  uverbs::ObjectTable table;
  const auto named = [&table](uverbs::Kind kind, std::uint32_t name) {
    int found = -1;
    table.find_named(kind, name, [&](void* object) { found = *static_cast<int*>(object); });
    return found;
  };
  EXPECT_EQ(named(uverbs::Kind::kQp, 17), -1) << "of an empty table";
  constexpr int kMany = 1000;
  std::vector<int> objects(kMany);
  std::vector<std::uint64_t> numbers(kMany);
  const auto name_of = [](int i) { return static_cast<std::uint32_t>(17 + i % 500 * 64); };
  for (int i = 0; i < kMany; ++i) {
    const auto at = static_cast<std::size_t>(i);
    objects[at] = i;
    numbers[at] = table.add(i < 500 ? uverbs::Kind::kQp : uverbs::Kind::kSrq, &objects[at]);
    ASSERT_NE(numbers[at], 0u);
    table.name(numbers[at], name_of(i));
  }
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(named(uverbs::Kind::kQp, name_of(i)), i);
    ASSERT_EQ(named(uverbs::Kind::kSrq, name_of(i)), i + 500);
  }
  table.name(numbers[3], 0);
  table.remove(numbers[4]);
  table.name(numbers[4], name_of(4));  // which has gone
  table.name(numbers[5], 1);
  for (const int i : {3, 4, 5}) EXPECT_EQ(named(uverbs::Kind::kQp, name_of(i)), -1) << i;
  EXPECT_EQ(named(uverbs::Kind::kQp, 1), 5);
  EXPECT_EQ(named(uverbs::Kind::kQp, 0), -1) << "no name";
  EXPECT_EQ(named(uverbs::Kind::kSrq, name_of(4)), 504);
  const std::uint64_t next = table.add(uverbs::Kind::kQp, objects.data());
  EXPECT_EQ(named(uverbs::Kind::kQp, name_of(4)), -1) << "names are not inherited";
  table.name(next, name_of(4));
  EXPECT_EQ(named(uverbs::Kind::kQp, name_of(4)), 0);
}

// A queue pair that is being made, or ended, has no name.
TEST(ObjectTable, ShowsEachOfAKindThatHasAName) {
  uverbs::ObjectTable table;
  const auto sum = [&table](uverbs::Kind kind) {
    int all = 0;
    table.each_named(kind, [&](void* object) { all += *static_cast<int*>(object); });
    return all;
  };
  EXPECT_EQ(sum(uverbs::Kind::kQp), 0) << "of an empty table";
  int objects[] = {1, 2, 4, 8};
  table.name(table.add(uverbs::Kind::kQp, &objects[0]), 17);
  table.name(table.add(uverbs::Kind::kSrq, &objects[1]), 17);
  static_cast<void>(table.add(uverbs::Kind::kQp, &objects[2]));
  const std::uint64_t last = table.add(uverbs::Kind::kQp, &objects[3]);
  table.name(last, 18);
  EXPECT_EQ(sum(uverbs::Kind::kQp), 1 + 8);
  table.remove(last);
  EXPECT_EQ(sum(uverbs::Kind::kQp), 1);
}

}  // namespace
}  // namespace verbatim::unit
