// SPDX-License-Identifier: BSD-2-Clause
// A message and the SGEs that its bytes come from or go to.
#include "runtime/verbs/software/scatter_gather.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace verbatim {
namespace {

/// Three SGEs, of 3, 0 and 5 bytes of two buffers; keys from 100 on are refused.
class Message : public ::testing::Test {
 protected:
  static ibv_sge sge(char* at, std::uint32_t length, std::uint32_t lkey) {
    return {reinterpret_cast<std::uint64_t>(at), length, lkey};
  }
  ibv_wc_status find(std::uint64_t bytes) {
    asked_.clear();
    return find_places(list_, 3, bytes, places_,
                       [&](const ibv_sge& sge, std::uint64_t used, MemoryPlace& place) {
                         asked_.emplace_back(sge.lkey, used);
                         place = {reinterpret_cast<unsigned char*>(sge.addr), used};
                         return sge.lkey < 100;
                       });
  }
  std::string gather(std::uint64_t from, std::uint64_t length) {
    std::string bytes(8, '.');
    EXPECT_TRUE(
        verbatim::gather(reinterpret_cast<unsigned char*>(bytes.data()), places_, 3, from, length));
    return bytes;
  }
  void scatter(std::uint64_t from, const std::string& bytes) {
    EXPECT_TRUE(verbatim::scatter(
        places_, 3, from, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
  }
  using Asked = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

  char first_[4] = {'a', 'b', 'c', '|'};
  char last_[6] = {'d', 'e', 'f', 'g', 'h', '|'};
  ibv_sge list_[3] = {sge(first_, 3, 1), sge(first_, 0, 2), sge(last_, 5, 3)};
  MemoryPlace places_[3];
  Asked asked_;
};

TEST_F(Message, HasTheBytesOfAllItsSges) {
  EXPECT_EQ(bytes_of(list_, 3), 8u);
  EXPECT_EQ(bytes_of(list_, 0), 0u);
  const ibv_sge longest[] = {sge(first_, ~0u, 0), sge(first_, ~0u, 0)};
  EXPECT_EQ(bytes_of(longest, 2), 2 * std::uint64_t{~0u}) << "more than 32 bits";
}

TEST_F(Message, AsksOnlyForTheKeysOfTheBytesThatItTakes) {
  EXPECT_EQ(find(8), IBV_WC_SUCCESS);
  EXPECT_EQ(asked_, (Asked{{1, 3}, {3, 5}})) << "an empty SGE has no key";
  EXPECT_EQ(find(4), IBV_WC_SUCCESS);
  EXPECT_EQ(asked_, (Asked{{1, 3}, {3, 1}}));
  EXPECT_EQ(find(3), IBV_WC_SUCCESS);
  EXPECT_EQ(asked_, (Asked{{1, 3}}));
  EXPECT_EQ(places_[2].length, 0u) << "nothing is copied from or to where it does not reach";
  EXPECT_EQ(find(0), IBV_WC_SUCCESS);
  EXPECT_EQ(asked_, Asked{});
}

TEST_F(Message, IsNotLongerThanItsList) { EXPECT_EQ(find(9), IBV_WC_LOC_LEN_ERR); }

TEST_F(Message, HasAFaultyKeyOnlyWhereItReachesIt) {
  list_[2].lkey = 100;
  EXPECT_EQ(find(3), IBV_WC_SUCCESS);
  EXPECT_EQ(find(4), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(find(9), IBV_WC_LOC_PROT_ERR) << "the key comes before the end of the list";
}

TEST_F(Message, IsGatheredFromAnyByteOn) {
  ASSERT_EQ(find(8), IBV_WC_SUCCESS);
  EXPECT_EQ(gather(0, 8), "abcdefgh");
  EXPECT_EQ(gather(2, 3), "cde.....");
  EXPECT_EQ(gather(3, 2), "de......") << "where an SGE begins";
  EXPECT_EQ(gather(7, 1), "h.......");
  EXPECT_EQ(gather(4, 0), "........");
  EXPECT_EQ(gather(6, 8), "gh......") << "no more than there are";
  EXPECT_EQ(gather(8, 8), "........");
}

TEST_F(Message, IsScatteredFromAnyByteOnAndNoFurther) {
  ASSERT_EQ(find(8), IBV_WC_SUCCESS);
  scatter(2, "XYZ");
  EXPECT_EQ(std::string(first_, 4), "abX|");
  EXPECT_EQ(std::string(last_, 6), "YZfgh|");
  scatter(6, "12345");
  EXPECT_EQ(std::string(last_, 6), "YZf12|");
}

TEST_F(Message, StopsWhereMemoryIsMissing) {
  struct MissingPlace : MemoryPlace {
    MissingPlace part(std::uint64_t from, std::uint64_t bytes) const {
      return {MemoryPlace::part(from, bytes)};
    }
    bool read(unsigned char* to) const { return *at != 'd' && MemoryPlace::read(to); }
    bool write(const unsigned char* from) const { return *at != 'd' && MemoryPlace::write(from); }
  };
  const auto place = [](char* at, std::uint64_t length) {
    return MissingPlace{{reinterpret_cast<unsigned char*>(at), length}};
  };
  const MissingPlace places[] = {place(first_, 3), place(last_, 5), place(first_, 3)};
  unsigned char bytes[12] = {};
  EXPECT_FALSE(verbatim::gather(bytes, places, 3, 0, 11));
  EXPECT_EQ(bytes[0], 'a');
  EXPECT_EQ(bytes[8], 0) << "nothing behind it";
  EXPECT_TRUE(verbatim::gather(bytes, places, 3, 0, 3));
  EXPECT_TRUE(verbatim::gather(bytes, places, 3, 4, 7)) << "its first byte is not asked for";
  const unsigned char marks[12] = {'1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C'};
  EXPECT_FALSE(verbatim::scatter(places, 3, 0, marks, 11));
  EXPECT_EQ(std::string(first_, 4), "123|");
  EXPECT_EQ(std::string(last_, 6), "defgh|");
}

}  // namespace
}  // namespace verbatim
