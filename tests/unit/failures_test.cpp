// SPDX-License-Identifier: BSD-2-Clause
// Failures of kernel devices, noted while the device is in use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/verbs/explain.hpp"
#include "tests/support/deadline.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/over_kernel.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

/// A driver of which the other end's place takes a question: here, until another thread has done
/// something with the same device.
struct SlowPlace {
  static void find_request(uverbs::Qp&, const ibv_cq&, const ibv_wc&,
                           uverbs::SeenRequest&) noexcept {}
  static void see_ends(uverbs::Qp&, Failure&) noexcept {}
  static void see_place(uverbs::Context& context, std::uint32_t qpn, RemotePlace& out) noexcept {
    ++asked;
    asked_of = qpn;
    other = std::thread([&context] {
      context.objects.remove(context.objects.add(uverbs::Kind::kPd, &asked));
      is_through = true;
    });
    others_went_on = harness::wait_until([] { return is_through.load(); });
    out.kind = RemotePlace::Kind::kSocket;
    out.gid.raw[15] = 1;
    out.port = 4711;
  }
  static inline int asked = 0;
  static inline std::uint32_t asked_of = 0;
  static inline bool others_went_on = false;
  static inline std::atomic<bool> is_through{false};
  static inline std::thread other;  ///< one that is held up goes on when the question is over
  static constexpr uverbs::FailureEyes kEyes{find_request, see_ends, see_place};
};

class Failures : public EachKernel {};
INSTANTIATE_FOR_EACH_KERNEL(Failures);

TEST_P(Failures, HoldNobodyUpWhileTheOtherEndIsAskedFor) {
  context->eyes = &SlowPlace::kEyes;
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq), 0);
  uverbs::Qp qp;
  ASSERT_EQ(make_qp(qp, *pd, cq), 0);
  context->objects.name(qp.number, qp.plain.qp_num);
  ibv_wc wc{};
  wc.qp_num = qp.plain.qp_num;
  wc.status = IBV_WC_RETRY_EXC_ERR;
  SlowPlace::asked = 0;
  SlowPlace::is_through = false;
  const CapturedStderr said;
  uverbs::note_failures(cq.plain, &wc, 1);
  ASSERT_EQ(SlowPlace::asked, 1);
  SlowPlace::other.join();
  EXPECT_EQ(SlowPlace::asked_of, qp.plain.qp_num);
  EXPECT_TRUE(SlowPlace::others_went_on);
  EXPECT_THAT(said.text(), HasSubstr("::1 port 4711")) << "and the line has the answer";
  EXPECT_EQ(uverbs::destroy_qp(qp), 0);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

// What was flushed then has no other cause, not even that the program ends its queue pairs.
TEST_P(Failures, OfADeviceThatHasGoneAreBlamedOnThat) {
  Pd* pd = nullptr;
  ASSERT_EQ(make_pd(&pd), 0);
  uverbs::Cq cq;
  ASSERT_EQ(make_cq(cq), 0);
  uverbs::Qp qp;
  ASSERT_EQ(make_qp(qp, *pd, cq), 0);
  kernel.refusal = EIO;
  context->command_channel.doubt();
  const CapturedStderr said;
  uverbs::note_ordered(qp);
  const FailedCompletion flushed{7, IBV_WC_WR_FLUSH_ERR};
  for (const FailedCompletion* const completion :
       {&flushed, static_cast<const FailedCompletion*>(nullptr)}) {
    Failure failure;
    ASSERT_EQ(uverbs::explain_qp(qp, completion, failure), 0);
    EXPECT_EQ(failure.cause, Cause::kDeviceGone);
    EXPECT_EQ(failure.status, IBV_WC_WR_FLUSH_ERR);
    char text[500];
    static_cast<void>(describe_failure(own_end(qp), failure, completion, text, sizeof text));
    EXPECT_THAT(text, HasSubstr("flushed: the device has gone"));
    EXPECT_THAT(text, HasSubstr("state ERR"));
  }
  EXPECT_EQ(uverbs::destroy_qp(qp), 0);
  EXPECT_EQ(uverbs::destroy_cq(cq), 0);
  EXPECT_EQ(uverbs::dealloc_pd(*pd), 0);
}

}  // namespace
}  // namespace verbatim::unit
