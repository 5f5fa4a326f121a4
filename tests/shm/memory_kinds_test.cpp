// SPDX-License-Identifier: BSD-2-Clause
//
// Memory that is not an application's own: null memory, device memory, dma-bufs; and advice about
// memory (man ibv_alloc_null_mr, ibv_alloc_dm, ibv_reg_dmabuf_mr, ibv_advise_mr).
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

class MemoryKinds : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(MemoryKinds, each_way());

/// Around the ways that a message can take.
constexpr std::uint64_t kLengths[] = {1, 40, 56, 57, 2000, 100'000, 1_MiB + 1};

TEST_P(MemoryKinds, WhatIsReadFromNullMemoryIsZero) {
  Pair pair(GetParam());
  const RegionInfo nothing = pair.a.call<&Endpoint::allocate_null>();
  const RegionInfo target = pair.b.allocate(GetParam().memory, 2_MiB);
  for (const std::uint64_t length : kLengths) {
    SCOPED_TRACE(length);
    pair.b.set(target, 0, 2_MiB, 0x77);
    expect_posted(pair.a.post_send(pair.qa, write(1, slice(nothing, 12345, length), target)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
    expect_untouched(pair.b, target, 0, length, 0);
    expect_untouched(pair.b, target, length, 100, 0x77);

    pair.b.set(target, 0, 2_MiB, 0x77);
    expect_posted(pair.b.post_receive(pair.qb, receive(2, slice(target, 0, length))));
    expect_posted(pair.a.post_send(pair.qa, send(3, slice(nothing, 0, length))));
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 2, length, pair.qb);
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 3, IBV_WC_SEND, pair.qa);
    expect_untouched(pair.b, target, 0, length, 0);
  }
}

TEST_P(MemoryKinds, WhatIsReceivedIntoNullMemoryVanishes) {
  Pair pair(GetParam());
  const RegionInfo nothing = pair.b.call<&Endpoint::allocate_null>();
  const RegionInfo source = pair.a.allocate(GetParam().memory, 2_MiB);
  const RegionInfo target = pair.b.allocate(GetParam().memory, 2_MiB);
  pair.a.fill(source, 0, 2_MiB, 4);
  const auto pattern = pair.a.peek(source, 0, 2_MiB);
  for (const std::uint64_t length : kLengths) {
    SCOPED_TRACE(length);
    expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(nothing, 1, length))));
    expect_posted(pair.a.post_send(pair.qa, send(2, slice(source, 0, length))));
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, length, pair.qb);
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_SEND, pair.qa);

    // Between two pieces of memory that do remember.
    pair.b.set(target, 0, 2_MiB, 0x77);
    const std::uint64_t third = length / 3;
    expect_posted(pair.b.post_receive(
        pair.qb, receive(3, SliceList{slice(target, 0, third), slice(nothing, 0, third),
                                      slice(target, third, length - 2 * third)})));
    expect_posted(pair.a.post_send(pair.qa, send(4, slice(source, 0, length))));
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 3, length, pair.qb);
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 4, IBV_WC_SEND, pair.qa);
    auto wanted = pattern;
    const auto n = static_cast<std::ptrdiff_t>(third);
    wanted.resize(length);
    wanted.erase(wanted.begin() + n, wanted.begin() + 2 * n);
    EXPECT_EQ(pair.b.peek(target, 0, length - third), wanted);
    expect_untouched(pair.b, target, length - third, 64, 0x77);
  }
}

TEST_P(MemoryKinds, NullMemoryAmongOthersTakesItsShareOfAMessageAndForgetsIt) {
  Pair pair(GetParam());
  const RegionInfo nothing = pair.a.call<&Endpoint::allocate_null>();
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
  pair.b.fill(remote, 0, 1_MiB, 4);
  const auto pattern = pair.b.peek(remote, 0, 1_MiB);
  for (const std::uint64_t third :
       {std::uint64_t{10}, std::uint64_t{1000}, std::uint64_t{300'000}}) {
    SCOPED_TRACE(third);
    pair.a.set(local, 0, 1_MiB, 0);
    const SliceList into{slice(local, 0, third), slice(nothing, 0, third),
                         slice(local, third, third)};
    expect_posted(pair.a.post_send(pair.qa, read(1, into, remote)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_READ, pair.qa);
    const auto found = pair.a.peek(local, 0, 2 * third);
    const auto n = static_cast<std::ptrdiff_t>(third);
    EXPECT_TRUE(std::equal(found.begin(), found.begin() + n, pattern.begin()));
    EXPECT_TRUE(std::equal(found.begin() + n, found.end(), pattern.begin() + 2 * n));
    // And the other way about: what comes of it is zero again.
    const RegionInfo target = pair.b.allocate(GetParam().memory, 3 * third);
    expect_posted(pair.a.post_send(pair.qa, write(2, into, target)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_WRITE, pair.qa);
    expect_untouched(pair.b, target, third, third, 0);
  }
}

TEST_P(MemoryKinds, OfNullMemoryOnlyTheLocalKeyIsOne) {
  Pair pair(GetParam());
  RegionInfo nothing = pair.a.call<&Endpoint::allocate_null>();
  const RegionInfo local = pair.b.allocate(GetParam().memory, 64);
  for (const std::uint32_t key : {nothing.rkey, nothing.lkey}) {
    nothing.rkey = key;
    expect_posted(pair.b.post_send(pair.qb, write(1, slice(local, 0, 8), nothing, 64)));
    expect_error(pair.b.poll_sends(pair.qb, 1)[0], 1, IBV_WC_REM_ACCESS_ERR, pair.qb);
    pair.reconnect();
  }
}

TEST_P(MemoryKinds, DeviceMemoryIsReachedByPeersFromZeroOnAndByCopies) {
  constexpr std::uint64_t kSize = 10'000;
  Pair pair(GetParam());
  const RegionInfo device = pair.a.call<&Endpoint::allocate_device>(kSize, kAllAccess);
  EXPECT_EQ(device.address, 0u);
  const RegionInfo local = pair.b.allocate(GetParam().memory, kSize);
  pair.b.fill(local, 0, kSize, 2);
  expect_posted(pair.b.post_send(pair.qb, write(1, slice(local, 0, kSize), device)));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qb);
  EXPECT_EQ(pair.a.call<&Endpoint::copy_from_device>(device.id, 0u, kSize),
            pair.b.peek(local, 0, kSize));
  EXPECT_EQ(
      pair.a.call<&Endpoint::copy_to_device>(device.id, 100u, std::vector<std::uint8_t>(52, 0xAB)),
      0);
  expect_posted(pair.b.post_send(pair.qb, read(2, slice(local, 0, 50), device, 100)));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 2, IBV_WC_RDMA_READ, pair.qb);
  expect_untouched(pair.b, local, 0, 50, 0xAB);
  expect_posted(pair.b.post_send(pair.qb, write(3, slice(local, 0, 9), device, kSize - 8)));
  expect_error(pair.b.poll_sends(pair.qb, 1)[0], 3, IBV_WC_REM_ACCESS_ERR, pair.qb);
}

TEST(DeviceMemory, CopiesStayWithinIt) {
  const AllowedLog says_why("_dm: ");
  Session session;
  ibv_alloc_dm_attr attr{};
  attr.length = 100;
  attr.log_align_req = 6;
  const DmHandle dm(ibv_alloc_dm(session.context.get(), &attr));
  ASSERT_NE(dm, nullptr);
  unsigned char host[128] = {};
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 0, host, 100), 0);
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 100, host, 0), 0);
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 0, host, 101), EINVAL);
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 1, host, 100), EINVAL);
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), ~std::uint64_t{0}, host, 2), EINVAL);
  EXPECT_EQ(ibv_memcpy_from_dm(host, dm.get(), 0, 101), EINVAL);
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 4, host, 100), EINVAL);
  EXPECT_EQ(ibv_memcpy_from_dm(host, dm.get(), 96, 4), 0);
}

TEST(DeviceMemory, ItIsBusyWhileRegisteredAndLimitedByWhatTheDeviceSays) {
  const AllowedLog says_why("_dm");
  Session session;
  ibv_device_attr_ex device{};
  ASSERT_EQ(ibv_query_device_ex(session.context.get(), nullptr, &device), 0);
  ibv_alloc_dm_attr attr{};
  attr.length = device.max_dm_size + 1;
  EXPECT_EQ(ibv_alloc_dm(session.context.get(), &attr), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  attr.length = 0;
  EXPECT_EQ(ibv_alloc_dm(session.context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr.length = 8192;
  ibv_dm* const dm = ibv_alloc_dm(session.context.get(), &attr);
  ASSERT_NE(dm, nullptr);
  constexpr unsigned kAccess = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
  EXPECT_EQ(ibv_reg_dm_mr(session.pd.get(), dm, 0, 8192, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(ibv_reg_dm_mr(session.pd.get(), dm, 1, 8192, kAccess), nullptr);
  EXPECT_EQ(ibv_reg_dm_mr(session.pd.get(), dm, 8192, 1, kAccess), nullptr);
  ibv_mr* const mr = ibv_reg_dm_mr(session.pd.get(), dm, 4096, 4096, kAccess);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

struct Advised {
  Session session;
  void* memory = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MrHandle mr{
      ibv_reg_mr(session.pd.get(), memory, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)};
  int advise(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, std::uint64_t offset,
             std::uint32_t length) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory) + offset, length, mr->lkey};
    return ibv_advise_mr(pd, advice, flags, &sge, 1);
  }
  bool resident() {
    unsigned char pages[2] = {};
    return mincore(memory, 8192, pages) == 0 && (pages[0] & pages[1] & 1) != 0;
  }
};

TEST(Advice, PrefetchingWithFlushBringsThePagesInBeforeItReturns) {
  Advised scene;
  EXPECT_FALSE(scene.resident());
  EXPECT_EQ(scene.advise(scene.session.pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                         IBV_ADVISE_MR_FLAG_FLUSH, 0, 8192),
            0);
  EXPECT_TRUE(scene.resident());
  for (const auto advice : {IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                            IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT})
    for (const std::uint32_t flags : {0u, std::uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}})
      EXPECT_EQ(scene.advise(scene.session.pd.get(), advice, flags, 100, 5000), 0);
}

TEST(Advice, AboutWhatIsNotOursOrNotThereIsRefused) {
  const AllowedLog says_why("advise_mr");
  Advised scene;
  ibv_pd* const pd = scene.session.pd.get();
  constexpr auto kPrefetch = IBV_ADVISE_MR_ADVICE_PREFETCH;
  constexpr auto kWrite = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  constexpr std::uint32_t kFlush = IBV_ADVISE_MR_FLAG_FLUSH;
  EXPECT_EQ(scene.advise(pd, kPrefetch, 0, 1, 8192), EFAULT);
  EXPECT_EQ(scene.advise(pd, kPrefetch, 0, ~std::uint64_t{0}, 8), EFAULT);
  EXPECT_EQ(scene.advise(pd, kPrefetch, 2, 0, 8), EINVAL);
  EXPECT_EQ(scene.advise(pd, static_cast<ibv_advise_mr_advice>(3), 0, 0, 8), EOPNOTSUPP);
  EXPECT_EQ(ibv_advise_mr(pd, kPrefetch, 0, nullptr, 0), EINVAL);
  const PdHandle other(ibv_alloc_pd(scene.session.context.get()));
  EXPECT_EQ(scene.advise(other.get(), kPrefetch, 0, 0, 8), EFAULT);
  ibv_sge wrong{reinterpret_cast<std::uintptr_t>(scene.memory), 8, scene.mr->lkey ^ 0x100u};
  EXPECT_EQ(ibv_advise_mr(pd, kPrefetch, 0, &wrong, 1), EFAULT);
  const MrHandle readable(ibv_reg_mr(pd, scene.memory, 8192, 0));
  ibv_sge to_write{reinterpret_cast<std::uintptr_t>(scene.memory), 8, readable->lkey};
  EXPECT_EQ(ibv_advise_mr(pd, kWrite, kFlush, &to_write, 1), EFAULT);
  ASSERT_EQ(munmap(scene.memory, 8192), 0);
  for (const std::uint32_t flags : {0u, kFlush})
    EXPECT_EQ(scene.advise(pd, kPrefetch, flags, 0, 8192), EFAULT);
}

TEST(DmaBuffer, WhatIsNoneIsRefusedWithTheReason) {
  const AllowedLog says_why("reg_dmabuf_mr");
  Session session;
  errno = 0;
  EXPECT_EQ(ibv_reg_dmabuf_mr(session.pd.get(), 0, 4096, 0, 10'000, IBV_ACCESS_LOCAL_WRITE),
            nullptr);
  EXPECT_EQ(errno, EBADF);
  const int file = memfd_create("no dma-buf", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  errno = 0;
  EXPECT_EQ(ibv_reg_dmabuf_mr(session.pd.get(), 0, 4096, 0, file, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  close(file);
}

TEST_P(MemoryKinds, ADmaBufferThatCanBeMappedIsARegionLikeOthers) {
  constexpr std::uint64_t kSize = 64_KiB;
  const int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
  if (device < 0) GTEST_SKIP() << "no /dev/udmabuf, so there is no dma-buf to be had";
  const int file = memfd_create("pages", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(file, kSize), 0);
  ASSERT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  udmabuf_create create{static_cast<__u32>(file), UDMABUF_FLAGS_CLOEXEC, 0, kSize};
  const int buffer = ioctl(device, UDMABUF_CREATE, &create);
  close(device);
  if (buffer < 0) GTEST_SKIP() << "udmabuf gives no buffer: " << strerror(errno);
  Pair pair(GetParam());
  const MrHandle mr(ibv_reg_dmabuf_mr(pair.a.here().pd(), 4096, 8192, 0x1000, buffer, kAllAccess));
  ASSERT_NE(mr, nullptr);
  RegionInfo target;
  target.rkey = mr->rkey;
  target.address = 0x1000;
  const RegionInfo local = pair.b.allocate(GetParam().memory, 8192);
  pair.b.fill(local, 0, 8192, 1);
  expect_posted(pair.b.post_send(pair.qb, write(1, slice(local, 0, 8192), target)));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qb);
  std::vector<std::uint8_t> found(8192);
  ASSERT_EQ(pread(file, found.data(), 8192, 4096), 8192);
  EXPECT_EQ(found, pair.b.peek(local, 0, 8192));
  close(buffer);
  close(file);
}

}  // namespace
}  // namespace verbatim::harness
