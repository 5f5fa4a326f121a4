// SPDX-License-Identifier: BSD-2-Clause
//
// How many of each object there can be (IBTA 11.2.1.2; man ibv_query_device): as many as the device
// says, and one more is an error that takes nothing away. Where a device has so many that a test
// cannot make them, some thousands are made, and gone again.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/support/device.hpp"
#include "tests/support/scale.hpp"

namespace verbatim::harness {
namespace {

/// A limit beyond this is not gone to.
const auto kFarthestLimit = scaled_rounds<std::size_t>(70'000, 5000);

class Limit : public OnDevice {
 protected:
  void SetUp() override { expect_complaints(); }
  /// `held` are the test's own that count too. `may_be_more`: a device whose memory is the only
  /// limit says how many there are at least; then `make` sees to it that what it made is whole.
  template <class Handle, class Make>
  void expect_room_for(int most, int held, const Make& make, bool may_be_more = false) {
    ASSERT_GT(most, held);
    const auto room = static_cast<std::size_t>(most - held);
    const bool is_reached = room <= kFarthestLimit;
    const std::size_t wanted = is_reached ? room : scaled_rounds<std::size_t>(2000, 300);
    const int rounds = is_reached && room <= 5000 ? 2 : 1;
    for (int round = 0; round < rounds; ++round) {
      std::vector<Handle> made;
      const auto add = [&] {
        errno = 0;
        Handle next(make());
        const bool is_made = next != nullptr;
        if (is_made) made.push_back(std::move(next));
        return is_made;
      };
      while (made.size() < wanted)
        ASSERT_TRUE(add()) << made.size() << " of " << most << ": " << std::strerror(errno);
      if (!is_reached) continue;
      if (add()) {
        EXPECT_TRUE(may_be_more) << "more than " << most;
        continue;
      }
      EXPECT_TRUE(errno == ENOMEM || errno == EINVAL) << std::strerror(errno);
      made.erase(made.begin() + static_cast<std::ptrdiff_t>(made.size() / 2));
      EXPECT_TRUE(add()) << "no room after one has gone: " << std::strerror(errno);
    }
  }
  char bytes_[64] = {};
};
RUN_ON_EVERY_DEVICE(Limit);

TEST_P(Limit, OfProtectionDomains) {
  expect_room_for<PdHandle>(attr().max_pd, 1, [&] { return ibv_alloc_pd(context()); });
}

TEST_P(Limit, OfCompletionQueues) {
  expect_room_for<CqHandle>(attr().max_cq, 0,
                            [&] { return ibv_create_cq(context(), 1, nullptr, nullptr, 0); });
}

TEST_P(Limit, OfQueuePairs) {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = cq(1);
  init.cap = {1, 1, 1, 1, 0};
  expect_room_for<QpHandle>(attr().max_qp, 0, [&] { return ibv_create_qp(pd(), &init); });
}

TEST_P(Limit, OfMemoryRegions) {
  expect_room_for<MrHandle>(attr().max_mr, 0,
                            [&] { return ibv_reg_mr(pd(), bytes_, sizeof bytes_, 0); });
}

TEST_P(Limit, OfMemoryWindows) {
  const MwHandle one(ibv_alloc_mw(pd(), IBV_MW_TYPE_2));
  if (!one) SKIP_IF(unless_unsupported("memory windows of type 2", errno));
  expect_room_for<MwHandle>(attr().max_mw, 1, [&] { return ibv_alloc_mw(pd(), IBV_MW_TYPE_2); });
}

TEST_P(Limit, OfSharedReceiveQueuesEachOfWhichTakesReceives) {
  SKIP_IF(lacks_srq(GetParam()));
  ibv_srq_init_attr init{nullptr, {1, 1, 0}};
  ibv_recv_wr nothing{};
  const auto make_one_that_takes = [&] {
    ibv_srq* const made = ibv_create_srq(pd(), &init);
    ibv_recv_wr* bad = nullptr;
    if (made != nullptr) {
      EXPECT_EQ(ibv_post_srq_recv(made, &nothing, &bad), 0);
    }
    return made;
  };
  expect_room_for<SrqHandle>(attr().max_srq, 0, make_one_that_takes, true);
}

TEST_P(Limit, OfAddressHandles) {
  SKIP_IF(lacks_type(context(), IBV_QPT_UD));
  // man ibv_query_device: not every device counts them.
  if (attr().max_ah == 0) GTEST_SKIP() << "the device says max_ah 0";
  ibv_ah_attr path = path_to_self(session());
  expect_room_for<AhHandle>(attr().max_ah, 0, [&] { return ibv_create_ah(pd(), &path); });
}

TEST_P(Limit, OfXrcDomainsIsNotTold) {
  SKIP_IF(lacks_type(context(), IBV_QPT_XRC_RECV));
  ibv_xrcd_init_attr init{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
  expect_room_for<XrcdHandle>(1 << 20, 0, [&] { return ibv_open_xrcd(context(), &init); });
}

/// Lets this process open so many files more, as long as it lives.
class FilesLeft {
 public:
  explicit FilesLeft(rlim_t more) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    // The lowest number that is free, behind which there may be taken ones.
    const int next = ::dup(STDERR_FILENO);
    EXPECT_GE(next, 0);
    ::close(next);
    rlimit lowered = before_;
    lowered.rlim_cur = static_cast<rlim_t>(next) + more;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &lowered), 0);
  }
  FilesLeft(const FilesLeft&) = delete;
  FilesLeft& operator=(const FilesLeft&) = delete;
  ~FilesLeft() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_P(Limit, OfChannelsIsThatOfTheFilesOfTheProcess) {
  constexpr std::size_t kMore = 40;
  const FilesLeft few(kMore);
  for (int round = 0; round < 2; ++round) {
    std::vector<ChannelHandle> made;
    for (;;) {
      errno = 0;
      ChannelHandle next(ibv_create_comp_channel(context()));
      if (next == nullptr) break;
      made.push_back(std::move(next));
      ASSERT_LE(made.size(), kMore);
    }
    EXPECT_EQ(errno, EMFILE) << std::strerror(errno);
    ASSERT_FALSE(made.empty());
    made.pop_back();
    made.emplace_back(ibv_create_comp_channel(context()));
    EXPECT_NE(made.back(), nullptr) << "no room after one has gone: " << std::strerror(errno);
  }
}

TEST_P(Limit, OfDeviceMemoryIsThatOfAllThatIsAllocated) {
  // man ibv_query_device_ex, ibv_alloc_dm: max_dm_size.
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(context(), nullptr, &extended), 0);
  const std::size_t quarter = extended.max_dm_size / 4;
  std::vector<DmHandle> made;
  const auto add = [&](std::size_t length) {
    ibv_alloc_dm_attr init{};
    init.length = length;
    errno = 0;
    DmHandle next(ibv_alloc_dm(context(), &init));
    const bool is_made = next != nullptr;
    if (is_made) made.push_back(std::move(next));
    return is_made;
  };
  if (!add(std::max<std::size_t>(quarter, 1))) SKIP_IF(unless_unsupported("device memory", errno));
  for (int i = 1; i < 4; ++i) ASSERT_TRUE(add(quarter)) << i << ": " << std::strerror(errno);
  EXPECT_FALSE(add(4096)) << "beyond max_dm_size";
  EXPECT_TRUE(errno == ENOMEM || errno == EINVAL) << std::strerror(errno);
  made.erase(made.begin() + 1);
  EXPECT_TRUE(add(quarter)) << "no room after one has gone: " << std::strerror(errno);
}

TEST_P(Limit, OfARegionsSizeIsKept) {
  // Beyond the limit, or where there is none, beyond the address space.
  const std::uint64_t most = attr().max_mr_size;
  const auto beyond = most == ~std::uint64_t{0} ? most : most + 1;
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd(), bytes_, beyond, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_TRUE(errno == EINVAL || errno == ENOMEM || errno == EFAULT) << std::strerror(errno);
  const MrHandle made(ibv_reg_mr(pd(), bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_NE(made, nullptr) << "the refusal took something";
}

}  // namespace
}  // namespace verbatim::harness
