// SPDX-License-Identifier: BSD-2-Clause
// A kernel whose answers cannot be: none of them is believed, and nothing of what was asked for
// exists. Spec: the headers <rdma/*.h>, and what providers/uverbs promises in its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>

#include "providers/uverbs/completion.hpp"
#include "providers/uverbs/context.hpp"
#include "providers/uverbs/memory.hpp"
#include "providers/uverbs/node.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "providers/uverbs/shared_receive.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/over_kernel.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

class LyingKernel : public EachKernel {};
INSTANTIATE_FOR_EACH_KERNEL(LyingKernel);

TEST_P(LyingKernel, AnswersOfNothingAreNoAnswers) {
  kernel.lie = Lie::kNothingWritten;
  Pd* pd = nullptr;
  EXPECT_EQ(make_pd(&pd), EPROTO);
  EXPECT_EQ(pd, nullptr);
  uverbs::Cq cq;
  EXPECT_EQ(make_cq(cq), EPROTO);
  ibv_device_attr_ex attr{};
  EXPECT_EQ(uverbs::query_device(*context, attr), EPROTO);
  ibv_port_attr port{};
  EXPECT_EQ(uverbs::query_port(*context, 1, port), EPROTO);
}

TEST_P(LyingKernel, AHandleInUseIsRefused) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  kernel.lie = Lie::kHandleInUse;
  Pd* other = nullptr;
  EXPECT_EQ(make_pd(&other), EPROTO);
  uverbs::Cq cq;
  EXPECT_EQ(make_cq(cq), EPROTO) << "the handle of a protection domain";
  kernel.lie = Lie::kHandleBeyond;
  EXPECT_EQ(make_pd(&other), EPROTO);
  EXPECT_EQ(other, nullptr);
  kernel.lie = Lie::kNone;
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
  ASSERT_EQ(make_pd(&pd), 0) << "the handle is free again";
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

TEST_P(LyingKernel, LengthsThatCannotBeAreRefused) {
  ibv_device_attr_ex attr{};
  kernel.lie = Lie::kLengthShort;
  EXPECT_EQ(uverbs::query_device(*context, attr), EPROTO);
  kernel.lie = Lie::kLengthLong;
  EXPECT_EQ(uverbs::query_device(*context, attr), EPROTO);
}

TEST_P(LyingKernel, NumbersBeyondTheirRangeAreRefused) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq), 0);
  uverbs::Qp qp;
  ASSERT_EQ(make_qp(qp, *pd, cq), 0);
  kernel.lie = Lie::kWideNumbers;
  uverbs::Qp wide;
  EXPECT_EQ(make_qp(wide, *pd, cq), EPROTO);
  uverbs::Cq long_one;
  EXPECT_EQ(make_cq(long_one), EPROTO);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(uverbs::query_qp(qp, attr, IBV_QP_STATE, init), EPROTO);
  EXPECT_EQ(qp.plain.state, IBV_QPS_RESET);
  kernel.lie = Lie::kNone;
  EXPECT_EQ(uverbs::destroy_qp(qp), 0);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

TEST_P(LyingKernel, ADescriptorThatIsNoneIsRefused) {
  kernel.lie = Lie::kNoDescriptor;
  CompChannel* channel = nullptr;
  EXPECT_EQ(uverbs::create_comp_channel(*context, &channel), EPROTO);
  uverbs::Context second(device, 14, kernel);
  const CapturedStderr said;
  EXPECT_EQ(uverbs::start_context(second), EPROTO);
  EXPECT_THAT(said.text(), HasSubstr("its answer is none of a uverbs device"));
}

// Writing to /dev/null succeeds and answers nothing; asking it by ioctl is ENOTTY.
TEST(Node, OfAnotherKindDoesNotOpen) {
  Device device;
  std::strcpy(device.plain.name, "rxe0");
  uverbs::Context context(device, 14);
  UniqueFd fd;
  ASSERT_EQ(uverbs::open_node_at("/dev/null", "rxe0", uverbs::node_number(1, 3), fd), 0);
  kernel::IoctlCall::Message nothing{};
  if (::ioctl(fd.get(), RDMA_VERBS_IOCTL, &nothing) != 0 && errno == ENOSYS)
    GTEST_SKIP() << "an emulator of another processor's programs answers for the kernel";
  context.command_channel.adopt(std::move(fd));
  const CapturedStderr said;
  EXPECT_EQ(uverbs::start_context(context), EPROTO);
  EXPECT_THAT(said.text(), HasSubstr("none of a uverbs device"));
}

}  // namespace
}  // namespace verbatim::unit
