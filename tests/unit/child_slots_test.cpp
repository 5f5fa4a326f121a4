// SPDX-License-Identifier: BSD-2-Clause
// What a forked child may do with what it has of its parent.
#include "runtime/verbs/software/child_slots.hpp"

#include <gtest/gtest.h>

#include <string>

namespace verbatim {
namespace {

struct Whole {
  static constexpr const char* kName = "whole";
  using Context = verbatim::Context;
  using Mr = verbatim::Mr;
  using Cq = verbatim::Cq;
  using Qp = verbatim::Qp;
  static int list_devices(DeviceSink&) noexcept { return 0; }
  static int open(Device&, verbatim::Context**) noexcept { return 0; }
  static void close(verbatim::Context&) noexcept {}
  static int query_pkey(verbatim::Context&, std::uint8_t, int, __be16&) noexcept { return 0; }
  static int alloc_pd(verbatim::Context&, Pd**) noexcept { return 0; }
  static int dealloc_pd(Pd&) noexcept { return 0; }
  static int free_dm(Dm&) noexcept { return 0; }
  static int destroy_cq(verbatim::Cq&) noexcept { return 0; }
  static int post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr**) noexcept { return 0; }
  static int poll_cq(ibv_cq*, int, ibv_wc*) noexcept { return 0; }
};

std::string verbs_told;
void tell(Context&, const char* verb) noexcept { verbs_told += std::string(verb) + " "; }

struct Child : ChildSlots<Whole, tell> {
  static int free_dm(Dm&) noexcept { return 77; }
};

constexpr ProviderTable kTable = make_table_of_child<Whole, Child>();

class ForkedChild : public ::testing::Test {
 protected:
  ForkedChild() {
    verbs_told.clear();
    cq_.plain.context = context_.handle();
    qp_.plain.context = context_.handle();
  }
  Device device_;
  Context context_{device_};
  Cq cq_;
  Qp qp_;
};

TEST_F(ForkedChild, MayAskAndDestroy) {
  EXPECT_EQ(kTable.query_pkey, &Whole::query_pkey);
  EXPECT_EQ(kTable.dealloc_pd, &Whole::dealloc_pd);
  EXPECT_EQ(kTable.destroy_cq, &Whole::destroy_cq);
  EXPECT_EQ(kTable.close, &Whole::close);
}

TEST_F(ForkedChild, MakesNothingAndMovesNothing) {
  Pd* pd = nullptr;
  EXPECT_EQ(kTable.alloc_pd(context_, &pd), EINVAL);
  ibv_send_wr wr{}, *bad = nullptr;
  EXPECT_EQ(kTable.hot.post_send(&qp_.plain, &wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
  ibv_wc wc;
  EXPECT_EQ(kTable.hot.poll_cq(&cq_.plain, 1, &wc), -EINVAL);
  ibv_ece ece{};
  EXPECT_EQ(kTable.query_ece(qp_, ece), EINVAL);
  EXPECT_EQ(verbs_told, "alloc_pd post_send poll_cq query_ece ") << "its provider says so, once";
}

TEST_F(ForkedChild, HasInItsOwnWayWhatItsProviderSays) {
  Dm dm;
  EXPECT_EQ(kTable.free_dm(dm), 77);
}

TEST_F(ForkedChild, IsRefusedByTheClassicSlotsToo) {
  put_child_table(context_, kTable);
  EXPECT_EQ(context_.table, &kTable);
  ibv_wc wc;
  EXPECT_EQ(context_.handle()->ops.poll_cq(&cq_.plain, 1, &wc), -EINVAL);
}

TEST_F(ForkedChild, PollsNoQueueOfItsParents) {
  Child::put_cursor_out_of_service(cq_.extended);
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(&cq_.extended, &attr), EINVAL);
  EXPECT_EQ(ibv_next_poll(&cq_.extended), EINVAL);
  ibv_end_poll(&cq_.extended);
  EXPECT_EQ(verbs_told, "start_poll next_poll ");
}

}  // namespace
}  // namespace verbatim
