// SPDX-License-Identifier: BSD-2-Clause
//
// fork() with connections in service (man ibv_fork_init): what the child does with its copies of
// the parent's objects reaches nobody, and the parent goes on.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/support/expect.hpp"
#include "tests/support/forked_child.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

class Forked : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(Forked, between_processes());

TEST_P(Forked, AChildCannotUseItsParentsQueuePairsAndHarmsNobodyByTrying) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  const AllowedLog says_why("before fork()");
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 4096);
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 64), remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
  pair.a.set(local, 0, 4096, 0x66);

  Endpoint& a = pair.a.here();
  ibv_qp* const qp = a.qp(pair.qa.id);
  ibv_cq* const cq = a.cq(pair.qa.send_cq);
  ibv_sge sge{local.address, 64, local.lkey};
  const int status = run_in_child([&] {
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {remote.address, remote.rkey};
    ibv_send_wr* bad_send = nullptr;
    if (ibv_post_send(qp, &wr, &bad_send) != EINVAL || bad_send != &wr) return 1;
    ibv_recv_wr receive{};
    receive.sg_list = &sge;
    receive.num_sge = 1;
    ibv_recv_wr* bad_receive = nullptr;
    if (ibv_post_recv(qp, &receive, &bad_receive) != EINVAL || bad_receive != &receive) return 2;
    ibv_wc wc;
    return ibv_poll_cq(cq, 1, &wc) < 0 ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
  expect_untouched(pair.b, remote, 0, 4096, 0);
  expect_posted(pair.a.post_send(pair.qa, write(2, slice(local, 0, 64), remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_WRITE, pair.qa);
  expect_untouched(pair.b, remote, 0, 64, 0x66);
}

/// Messages on their way to the parent are not the child's to take.
TEST_P(Forked, AChildThatPollsTakesNothingOfItsParents) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  const AllowedLog says_why("before fork()");
  Pair pair(GetParam());
  const RegionInfo at_a = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo at_b = pair.b.allocate(GetParam().memory, 4096);
  pair.b.fill(at_b, 0, 4096, 3);
  expect_posted(pair.a.post_receive(
      pair.qa, {receive(1, slice(at_a, 0, 40)), receive(2, slice(at_a, 64, 2000))}));
  expect_posted(
      pair.b.post_send(pair.qb, {send(5, slice(at_b, 0, 40)), send(6, slice(at_b, 0, 2000))}));
  pair.b.poll_sends(pair.qb, 2);
  ibv_cq* const cq = pair.a.here().cq(pair.qa.receive_cq);
  EXPECT_EQ(run_in_child([&] {
              ibv_wc wc[4];
              for (int i = 0; i < 1000; ++i)
                if (ibv_poll_cq(cq, 4, wc) >= 0) return 1;
              return 0;
            }),
            0);
  const auto got = pair.a.poll_receives(pair.qa, 2);
  expect_receive(got[0], 1, 40, pair.qa);
  expect_receive(got[1], 2, 2000, pair.qa);
  EXPECT_EQ(pair.a.mismatch(at_a, 0, 40, 3), -1);
}

/// Contexts of its own: connected to itself, the child writes, and takes all of it apart.
int work_in_child() {
  try {
    const auto session = std::make_shared<Session>();
    Endpoint own(session);
    const RegionInfo from = own.allocate(MemoryKind::kMapped, 4096, kAllAccess);
    const RegionInfo to = own.allocate(MemoryKind::kOrdinary, 4096, kAllAccess);
    const QpInfo qp = own.create_qp({});
    own.connect(qp.id, qp, {});
    own.fill(from.id, 0, 4096, 8);
    own.post_send(qp.id, {write(1, slice(from, 0, 4096), to)});
    if (own.poll(qp.send_cq, 1, kDefaultWaitMs)[0].status != IBV_WC_SUCCESS) return 1;
    return own.mismatch(to.id, 0, 4096, 8) == -1 ? 0 : 2;
  } catch (const std::exception&) {
    return 3;
  }
}

TEST_P(Forked, AChildWithContextsOfItsOwnWorksAndItsParentGoesOn) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    SCOPED_TRACE(round);
    EXPECT_EQ(run_in_child(work_in_child), 0);
    pair.a.fill(local, 0, 1_MiB, round);
    expect_posted(pair.a.post_send(pair.qa, write(round, slice(local, 0, 1_MiB), remote)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], round, IBV_WC_RDMA_WRITE, pair.qa);
    EXPECT_EQ(pair.b.mismatch(remote, 0, 1_MiB, round), -1);
  }
}

/// Whether a message comes whole over a queue pair that is connected to itself.
bool delivers(Endpoint& own, const QpInfo& qp, const RegionInfo& from, const RegionInfo& to,
              std::uint32_t seed) {
  own.fill(from.id, 0, 4096, seed);
  own.post_receive(qp.id, {receive(seed, slice(to, 0, 4096))});
  own.post_send(qp.id, {send(seed, slice(from, 0, 4096))});
  return own.poll(qp.send_cq, 1, kDefaultWaitMs)[0].status == IBV_WC_SUCCESS &&
         own.poll(qp.receive_cq, 1, kDefaultWaitMs)[0].status == IBV_WC_SUCCESS &&
         own.mismatch(to.id, 0, 4096, seed) == -1;
}

QpInfo loop(Endpoint& own) {
  const QpInfo qp = own.create_qp({});
  own.connect(qp.id, qp, {});
  return qp;
}

/// Opens the device anew, destroys what it inherited, and makes others: none of these may lie where
/// one of its own does, nor have its number.
int begin_anew(ibv_qp* inherited, ibv_srq* inherited_srq) {
  try {
    Endpoint own(std::make_shared<Session>());
    const RegionInfo from = own.allocate(MemoryKind::kMapped, 4096, kAllAccess);
    const RegionInfo to = own.allocate(MemoryKind::kMapped, 4096, kAllAccess);
    const QpInfo first = loop(own);
    if (!delivers(own, first, from, to, 1)) return 1;
    if (ibv_destroy_qp(inherited) != 0 || ibv_destroy_srq(inherited_srq) != 0) return 2;
    const QpInfo second = loop(own);
    if (second.qpn == first.qpn) return 3;
    for (std::uint32_t round = 2; round < 12; ++round)
      if (!delivers(own, round % 2 == 0 ? second : first, from, to, round)) return 4;
    return 0;
  } catch (const std::exception&) {
    return 5;
  }
}

TEST_P(Forked, AChildThatBeginsAnewGivesNothingOfItsParentsBack) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  Pair pair(GetParam());
  const RegionInfo at_a = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo at_b = pair.b.allocate(GetParam().memory, 4096);
  const auto goes_on = [&](std::uint32_t seed) {
    pair.a.fill(at_a, 0, 4096, seed);
    expect_posted(pair.b.post_receive(pair.qb, receive(seed, slice(at_b, 0, 4096))));
    expect_posted(pair.a.post_send(pair.qa, send(seed, slice(at_a, 0, 4096))));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], seed, IBV_WC_SEND, pair.qa);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], seed, 4096, pair.qb);
    EXPECT_EQ(pair.b.mismatch(at_b, 0, 4096, seed), -1);
  };
  goes_on(1);
  Endpoint& a = pair.a.here();
  const SrqInfo srq = a.create_srq({});
  a.post_srq_receive(srq.id, {receive(1, slice(at_a, 0, 4096))});
  EXPECT_EQ(run_in_child([&] { return begin_anew(a.qp(pair.qa.id), a.srq(srq.id)); }), 0);
  goes_on(2);
  EXPECT_EQ(a.destroy_srq(srq.id), 0);
}

/// Opens the device anew and uses the tables that the process has one of.
int register_in_child(ibv_srq* srq) {
  ibv_recv_wr receive{};
  ibv_sge nothing{};
  receive.sg_list = &nothing;
  receive.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (ibv_post_srq_recv(srq, &receive, &bad) != EINVAL || bad != &receive) return 1;
  try {
    const Session own;
    const PdHandle pd(ibv_alloc_pd(own.context.get()));
    static char bytes[64];
    const MrHandle mr(ibv_reg_mr(pd.get(), bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE));
    ibv_mw* const mw = ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2);
    return mr != nullptr && mw != nullptr && ibv_dealloc_mw(mw) == 0 ? 0 : 2;
  } catch (const std::exception&) {
    return 3;
  }
}

TEST(ForkRules, AChildDoesNotWaitForThreadsThatItDoesNotHave) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
#ifdef VBT_UNDER_SANITIZER  // (this file itself is not watched by it)
  GTEST_SKIP() << "AddressSanitizer's allocator keeps its own locks held in the child of fork()";
#endif
  const AllowedLog says_why("before fork()");
  const Session session;
  const PdHandle pd(ibv_alloc_pd(session.context.get()));
  ibv_srq_init_attr attr{};
  attr.attr = {16, 1, 0};
  const SrqHandle srq(ibv_create_srq(pd.get(), &attr));
  ASSERT_NE(srq, nullptr);
  std::atomic<bool> stop{false};
  // Inside one of the locks nearly all the time.
  std::thread registers([&] {
    static char bytes[64];
    while (!stop.load())
      MrHandle(ibv_reg_mr(pd.get(), bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE));
  });
  std::thread opens_windows([&] {
    while (!stop.load())
      if (ibv_mw* const mw = ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2); mw != nullptr)
        ibv_dealloc_mw(mw);
  });
  std::thread posts([&] {
    ibv_recv_wr receive{};
    ibv_recv_wr* bad;
    while (!stop.load()) (void)ibv_post_srq_recv(srq.get(), &receive, &bad);
  });
  for (int i = 0; i < 40 && !HasFailure(); ++i)
    EXPECT_EQ(run_in_child([&] { return register_in_child(srq.get()); }), 0);
  stop.store(true);
  registers.join();
  opens_windows.join();
  posts.join();
}

TEST(ForkRules, NothingHasToBeKeptFromAChildAndTheAnswersSaySo) {
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
  EXPECT_EQ(ibv_fork_init(), 0);
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

}  // namespace
}  // namespace verbatim::harness
