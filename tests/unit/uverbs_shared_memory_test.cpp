// SPDX-License-Identifier: BSD-2-Clause
// Memory of vbt_alloc's, registered with a kernel device: it stays for as long as a region has it,
// and no longer, whatever the kernel answers (HeldShared in providers/uverbs/memory.hpp).
#include <gtest/gtest.h>

#include <cerrno>

#include "providers/uverbs/context.hpp"
#include "providers/uverbs/memory.hpp"
#include "runtime/memory/arena.hpp"
#include "tests/unit/over_kernel.hpp"

namespace verbatim::unit {
namespace {

class SharedMemoryOfAKernel : public EachKernel {
 protected:
  static constexpr std::size_t kBytes = 64 * 1024;

  void SetUp() override {
    EachKernel::SetUp();
    ASSERT_EQ(make_pd(&pd_), 0);
  }
  void TearDown() override {
    EXPECT_EQ(uverbs::dealloc_pd(*pd_), 0);
    EachKernel::TearDown();
  }
  static void* shared() {
    int error = 0;
    void* const memory = alloc_shared(kBytes, error);
    EXPECT_NE(memory, nullptr) << error;
    return memory;
  }
  int make(void* memory, unsigned access, verbatim::Mr** out) {
    const int error = uverbs::reg_mr(*pd_, memory, kBytes, 0, access, out);
    if (error != 0) return error;
    (*out)->plain.context = context->handle();
    (*out)->plain.addr = memory;
    (*out)->plain.length = kBytes;
    return 0;
  }

  Pd* pd_ = nullptr;
};
INSTANTIATE_FOR_EACH_KERNEL(SharedMemoryOfAKernel);

TEST_P(SharedMemoryOfAKernel, StaysUntilItsRegionIsGone) {
  void* const memory = shared();
  verbatim::Mr* mr = nullptr;
  ASSERT_EQ(make(memory, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
  EXPECT_EQ(free_shared(memory), EBUSY);
  EXPECT_EQ(uverbs::dereg_mr(*mr), 0);
  EXPECT_EQ(free_shared(memory), 0);
}

TEST_P(SharedMemoryOfAKernel, IsNotKeptByRegionsThatWereRefusedOrNotBelieved) {
  void* const memory = shared();
  verbatim::Mr* mr = nullptr;
  kernel.refusal = ENOMEM;
  EXPECT_EQ(make(memory, IBV_ACCESS_LOCAL_WRITE, &mr), ENOMEM);
  kernel.refusal = 0;
  kernel.lie = Lie::kHandleInUse;
  EXPECT_EQ(make(memory, IBV_ACCESS_LOCAL_WRITE, &mr), EPROTO);
  kernel.lie = Lie::kNone;
  EXPECT_EQ(free_shared(memory), 0);
}

TEST_P(SharedMemoryOfAKernel, IsKeptWhereARegionMovesAndFreeWhereItWas) {
  void* const from = shared();
  void* const to = shared();
  verbatim::Mr* mr = nullptr;
  ASSERT_EQ(make(from, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
  const auto moves = [&] {
    return uverbs::rereg_mr(*mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, to, kBytes, 0);
  };
  kernel.refusal = EINVAL;
  EXPECT_EQ(moves(), EINVAL);
  kernel.refusal = 0;
  EXPECT_EQ(free_shared(from), EBUSY) << "a refusal leaves it where it was";
  ASSERT_EQ(moves(), 0);
  EXPECT_EQ(free_shared(from), 0);
  EXPECT_EQ(free_shared(to), EBUSY);
  EXPECT_EQ(uverbs::dereg_mr(*mr), 0);
  EXPECT_EQ(free_shared(to), 0);
}

TEST_P(SharedMemoryOfAKernel, IsNotKeptWhereARegionWasNotMovedTo) {
  void* const from = shared();
  void* const to = shared();
  verbatim::Mr* mr = nullptr;
  ASSERT_EQ(make(from, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
  kernel.refusal = EINVAL;
  EXPECT_EQ(uverbs::rereg_mr(*mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, to, kBytes, 0), EINVAL);
  kernel.refusal = 0;
  EXPECT_EQ(free_shared(to), 0);
  EXPECT_EQ(uverbs::dereg_mr(*mr), 0);
  EXPECT_EQ(free_shared(from), 0);
}

TEST_P(SharedMemoryOfAKernel, IsKeptOnceByARegionThatTookAnothersPlace) {
  void* const memory = shared();
  verbatim::Mr* mr = nullptr;
  ASSERT_EQ(make(memory, 0, &mr), 0);
  kernel.pins_for_reading = true;
  const auto gets_to_write = [&] {
    return uverbs::rereg_mr(*mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                            IBV_ACCESS_LOCAL_WRITE);
  };
  kernel.undying = mr->plain.handle;
  EXPECT_EQ(gets_to_write(), EBUSY);
  kernel.undying = ~0u;
  EXPECT_EQ(free_shared(memory), EBUSY);
  ASSERT_EQ(gets_to_write(), 0);
  EXPECT_EQ(free_shared(memory), EBUSY);
  EXPECT_EQ(uverbs::dereg_mr(*mr), 0);
  EXPECT_EQ(free_shared(memory), 0);
}

}  // namespace
}  // namespace verbatim::unit
