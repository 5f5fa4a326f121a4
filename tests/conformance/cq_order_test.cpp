// SPDX-License-Identifier: BSD-2-Clause
//
// In which order a completion queue tells of what completed. IBTA 11.4.2.1 and man ibv_poll_cq:
// completions are taken from the head of the queue, in which each has a place behind those that
// came before it. So none waits for as long as later ones come.
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>
#include <vector>

#include "tests/support/device.hpp"
#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

/// How a program takes completions.
struct Taking {
  const char* name;
  int room;                ///< so many at a time
  bool by_cursor;          ///< ibv_start_poll
  std::uint64_t wc_flags;  ///< of a queue with a cursor
};
constexpr Taking kTakings[] = {
    {"ibv_poll_cq, one at a time", 1, false, 0},
    {"ibv_poll_cq, 16 at a time", 16, false, 0},
    {"ibv_poll_cq, 200 at a time", 200, false, 0},
    {"ibv_start_poll, one at a time", 1, true, IBV_WC_EX_WITH_BYTE_LEN},
    {"ibv_start_poll, 16 at a time", 16, true, IBV_WC_EX_WITH_BYTE_LEN},
    {"ibv_start_poll with timestamps", 1, true, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP},
};

/// Later completions that one may wait behind where completions come from several places, as they
/// do in software: seven turns of 64, and what one poll takes. A device in the kernel puts them
/// into its queue by threads of its own, of which one may be late.
constexpr std::uint64_t kMostInSoftware = 7 * 64 + 200;
constexpr std::uint64_t kMostInTheKernel = 50'000;
constexpr std::uint64_t kAwaited = 1;
constexpr std::uint64_t kLater = 2;
constexpr std::uint64_t kSent = 3;  // of a message

class CqOrder : public OnDevice {
 protected:
  /// Empty, or why this device has no such queue.
  std::string open(const Taking& taking) {
    taking_ = taking;
    bytes_ = mr(memory_, sizeof memory_, kAllAccess);
    if (!taking.by_cursor) {
      queue_.reset(ibv_create_cq(context(), kDepth, nullptr, nullptr, 0));
      return queue_ ? "" : "ibv_create_cq failed";
    }
    ibv_cq_init_attr_ex init{};
    init.cqe = kDepth;
    init.wc_flags = taking.wc_flags;
    ibv_cq_ex* const made = ibv_create_cq_ex(context(), &init);
    if (made == nullptr) return unless_unsupported("ibv_create_cq_ex", errno);
    queue_.reset(ibv_cq_ex_to_cq(made));
    return {};
  }
  std::pair<ibv_qp*, ibv_qp*> pair() { return connected(IBV_QPT_RC, queue_.get()); }

  /// Calls `see` with the request of each completion that one look takes.
  template <class See>
  void take(See see) {
    if (!taking_.by_cursor) {
      ibv_wc taken[200];
      const int got = ibv_poll_cq(queue_.get(), taking_.room, taken);
      ASSERT_GE(got, 0);
      for (int i = 0; i < got; ++i) {
        ASSERT_EQ(taken[i].status, IBV_WC_SUCCESS);
        see(taken[i].wr_id);
      }
      return;
    }
    auto* const cursor = reinterpret_cast<ibv_cq_ex*>(queue_.get());
    ibv_poll_cq_attr none{};
    if (ibv_start_poll(cursor, &none) != 0) return;
    int got = 0;
    do {
      EXPECT_EQ(cursor->status, IBV_WC_SUCCESS);
      see(cursor->wr_id);
    } while (++got < taking_.room && ibv_next_poll(cursor) == 0);
    ibv_end_poll(cursor);
  }

  /// Later completions that are told before each of `count` awaited ones; `go_on` is done for each.
  template <class GoOn>
  void expect_told(std::uint32_t count, GoOn go_on) {
    const std::uint64_t most = attr().vendor_id == kRxeVendor ? kMostInTheKernel : kMostInSoftware;
    std::uint64_t later = 0;
    while (count != 0 && later <= most && !HasFatalFailure()) {
      take([&](std::uint64_t request) {
        if (request == kAwaited) {
          --count;
        } else {
          ++later;
          go_on(request);
        }
      });
    }
    EXPECT_EQ(count, 0u) << "not told after " << later << " later completions";
  }

  void write(ibv_qp* by) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory_), 8, bytes_->lkey};
    ibv_send_wr wr{};
    wr.wr_id = kLater;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(memory_) + 64;
    wr.wr.rdma.rkey = bytes_->rkey;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(by, &wr, &bad), 0);
  }
  void message(const std::pair<ibv_qp*, ibv_qp*>& ends, std::uint64_t request) {
    ASSERT_EQ(post_receive(ends.second, request, memory_ + 128, 8, bytes_->lkey), 0);
    ASSERT_EQ(post_send(ends.first, kSent, memory_, 8, bytes_->lkey), 0);
  }
  void close() {
    for (ibv_qp* each : made_) EXPECT_EQ(destroy(each), 0);
    made_.clear();
    queue_.reset();
  }
  std::pair<ibv_qp*, ibv_qp*> new_pair() {
    const auto ends = pair();
    made_.push_back(ends.first);
    made_.push_back(ends.second);
    return ends;
  }

  static constexpr int kDepth = 4096;
  static constexpr int kUnderWay = 4;  ///< fewer than a queue pair holds

 private:
  Taking taking_{};
  alignas(64) char memory_[256] = {};
  ibv_mr* bytes_ = nullptr;
  CqHandle queue_;
  std::vector<ibv_qp*> made_;
};
RUN_ON_EVERY_DEVICE(CqOrder);

TEST_P(CqOrder, AMessageDoesNotWaitForSendsThatGoOn) {
  for (const Taking& taking : kTakings) {
    SCOPED_TRACE(taking.name);
    if (!open(taking).empty()) continue;
    const auto busy = new_pair();
    const auto quiet = new_pair();
    for (int i = 0; i < kUnderWay; ++i) write(busy.first);
    message(quiet, kAwaited);
    expect_told(1, [&](std::uint64_t request) {
      if (request == kLater) write(busy.first);
    });
    close();
  }
}

TEST_P(CqOrder, AMessageDoesNotWaitForSendsOfItsOwnQueuePairThatGoOn) {
  for (const Taking& taking : kTakings) {
    SCOPED_TRACE(taking.name);
    if (!open(taking).empty()) continue;
    const auto ends = new_pair();
    for (int i = 0; i < kUnderWay; ++i) write(ends.second);
    message(ends, kAwaited);
    expect_told(1, [&](std::uint64_t request) {
      if (request == kLater) write(ends.second);
    });
    close();
  }
}

TEST_P(CqOrder, MessagesOfQuietConnectionsDoNotWaitForABusyOne) {
  for (const Taking& taking : kTakings) {
    SCOPED_TRACE(taking.name);
    if (!open(taking).empty()) continue;
    const auto busy = new_pair();
    const auto go_on = [&](std::uint64_t request) {
      if (request == kLater) message(busy, kLater);
    };
    for (int i = 0; i < kUnderWay; ++i) message(busy, kLater);
    for (int i = 0; i < 200; ++i) take(go_on);
    constexpr std::uint32_t kQuiet = 6;
    for (std::uint32_t i = 0; i < kQuiet; ++i) message(new_pair(), kAwaited);
    expect_told(kQuiet, go_on);
    close();
  }
}

TEST_P(CqOrder, MessagesOfManyBusyConnectionsAreToldOfEach) {
  constexpr std::uint32_t kBusy = 12;
  for (const Taking& taking : kTakings) {
    SCOPED_TRACE(taking.name);
    if (!open(taking).empty()) continue;
    std::vector<std::pair<ibv_qp*, ibv_qp*>> ends;
    for (std::uint32_t i = 0; i < kBusy; ++i) ends.push_back(new_pair());
    // Each has three messages more than were told of; a request names its connection.
    constexpr std::uint64_t kSendOf = 1000;
    std::uint64_t told[kBusy] = {};
    for (std::uint32_t i = 0; i < kBusy; ++i)
      for (int more = 0; more < 3; ++more) message(ends[i], kSendOf + i);
    const std::uint64_t most =
        attr().vendor_id == kRxeVendor ? kMostInTheKernel : kBusy * kMostInSoftware;
    std::uint64_t all = 0;
    const auto fewest = [&] { return *std::min_element(std::begin(told), std::end(told)); };
    while (fewest() < 4 && all <= most && !HasFatalFailure()) {
      take([&](std::uint64_t request) {
        ++all;
        if (request < kSendOf) return;
        ++told[request - kSendOf];
        message(ends[request - kSendOf], request);
      });
    }
    EXPECT_GE(fewest(), 4u) << "after " << all << " completions";
    close();
  }
}

}  // namespace
}  // namespace verbatim::harness
