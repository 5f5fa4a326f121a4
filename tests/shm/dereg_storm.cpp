// SPDX-License-Identifier: BSD-2-Clause
#include "tests/shm/dereg_storm.hpp"

#include <algorithm>
#include <chrono>
#include <future>

namespace verbatim::harness {
namespace {

constexpr std::uint64_t kHalf = 512_KiB;
constexpr std::uint64_t kSize = 2 * kHalf;
constexpr std::uint32_t kReceives = 128;
constexpr std::uint8_t kOld = 0x11;
/// The library's own bound for a peer that is stopped, which nobody is here.
constexpr std::chrono::seconds kBound{2};

enum class Ending : std::uint32_t { kError, kReset, kDestroy };

/// What the owner has for one peer, and the peer.
struct Guest {
  std::unique_ptr<Side> side;
  RegionInfo memory;  ///< the owner's: written below kHalf, read from there on
  RegionInfo inbox;   ///< the owner's: where messages go
  RegionInfo source;  ///< the guest's
  RegionInfo sink;    ///< the guest's: what it has read
  RegionInfo shown;   ///< this round's registrations
  RegionInfo inbox_shown;
  QpInfo own[3];     ///< at the owner: of writes, reads, sends
  QpInfo theirs[3];  ///< at the guest
  std::future<std::vector<ibv_wc>> storms;
};

class Storm {
 public:
  Storm(Setting setting, std::uint32_t guests, bool in_domains)
      : owner_(std::make_shared<Session>()) {
    wish_.in_domain = in_domains;
    guests_.resize(guests);
    for (Guest& guest : guests_) {
      guest.side = setting.placement == Placement::kTwoProcesses
                       ? std::make_unique<Side>(std::map<std::string, std::string>{})
                       : std::make_unique<Side>(std::make_shared<Session>());
      guest.memory = owner_.allocate(setting.memory, kSize);
      guest.inbox = owner_.allocate(setting.memory, kSize);
      guest.source = guest.side->allocate(setting.memory, kSize);
      guest.sink = guest.side->allocate(setting.memory, kSize);
      guest.side->set(guest.source, 0, kSize, 0x99);
    }
    for (Guest& guest : guests_) meet(guest);
  }

  void round(std::uint32_t number) {
    for (Guest& guest : guests_) prepare(guest);
    for (Guest& guest : guests_) start(guest, number);
    for (Guest& guest : guests_) await_traffic(guest);
    for (Guest& guest : guests_) take_back(guest, number);
    for (Guest& guest : guests_) judge(guest, number);
  }

 private:
  /// Processes meet at their first message, which on a busy machine takes longer than the timeout
  /// of the storm's connections.
  void meet(Guest& guest) {
    const QpInfo mine = owner_.create_qp(), theirs = guest.side->create_qp();
    owner_.connect(mine, theirs);
    guest.side->connect(theirs, mine);
    expect_posted(guest.side->post_send(theirs, read(1, slice(guest.sink, 0, 8), guest.memory)));
    expect_wc(guest.side->poll_sends(theirs, 1)[0], 1, IBV_WC_RDMA_READ, theirs);
    expect_posted(owner_.post_send(mine, read(1, slice(guest.memory, 0, 8), guest.source)));
    expect_wc(owner_.poll_sends(mine, 1)[0], 1, IBV_WC_RDMA_READ, mine);
  }

  void prepare(Guest& guest) {
    owner_.set(guest.memory, 0, kSize, kOld);
    guest.side->set(guest.sink, 0, kSize, kOld);
    guest.shown = owner_.register_part(guest.memory, 0, kSize);
    guest.inbox_shown = owner_.register_part(guest.inbox, 0, kSize, IBV_ACCESS_LOCAL_WRITE);
    Link link;
    link.timeout = 8;  // 1 ms: whoever is gone is missed soon
    link.retry_count = 1;
    for (std::uint32_t i = 0; i < 3; ++i) {
      guest.own[i] = owner_.create_qp();
      guest.theirs[i] = guest.side->create_qp(wish_);
      owner_.connect(guest.own[i], guest.theirs[i], link);
      guest.side->connect(guest.theirs[i], guest.own[i], link);
    }
    for (std::uint32_t i = 0; i < kReceives; ++i) {
      expect_posted(
          owner_.post_receive(guest.own[2], receive(i, slice(guest.inbox_shown, 0, kSize))));
    }
  }

  /// Sizes for every way that a message can take.
  static void start(Guest& guest, std::uint32_t number) {
    static constexpr std::uint64_t kWrites[] = {8, kHalf, 4000, 200};
    static constexpr std::uint64_t kSends[] = {40, kSize, 3000, 100'000};
    const std::uint64_t written = kWrites[number % 4], sent = kSends[number / 4 % 4];
    const std::vector<Request> requests{
        write(1, slice(guest.source, 0, written), guest.shown, kHalf - written),
        read(2, slice(guest.sink, 0, kHalf), guest.shown, kHalf),
        send(3, slice(guest.source, 0, sent))};
    const std::vector<std::int32_t> qps{guest.theirs[0].id, guest.theirs[1].id, guest.theirs[2].id};
    guest.storms = std::async(std::launch::async, [&guest, qps, requests] {
      return guest.side->call<&Endpoint::storms>(qps, requests, 4u);
    });
  }

  void await_traffic(Guest& guest) {
    ASSERT_TRUE(
        wait_until([&] { return owner_.load(guest.memory, kHalf - 8) != 0x1111'1111'1111'1111; }));
    for (const ibv_wc& wc : owner_.poll_receives(guest.own[2], 3)) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    }
  }

  void take_back(Guest& guest, std::uint32_t number) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(owner_.deregister(guest.shown), 0);
    owner_.fill(guest.memory, 0, kSize, number);
    switch (static_cast<Ending>(number % 3)) {
      case Ending::kError:
        ASSERT_EQ(owner_.to_state(guest.own[2], IBV_QPS_ERR), 0);
        break;
      case Ending::kReset:
        ASSERT_EQ(owner_.to_state(guest.own[2], IBV_QPS_RESET), 0);
        break;
      case Ending::kDestroy:
        ASSERT_EQ(owner_.call<&Endpoint::destroy_qp>(guest.own[2].id), 0);
        break;
    }
    owner_.fill(guest.inbox, 0, kSize, number + 1);
    ASSERT_EQ(owner_.deregister(guest.inbox_shown), 0);
    EXPECT_LT(std::chrono::steady_clock::now() - start, kBound);
  }

  void judge(Guest& guest, std::uint32_t number) {
    const std::vector<ibv_wc> ends = guest.storms.get();
    ASSERT_EQ(ends.size(), 3u);
    EXPECT_EQ(ends[0].status, IBV_WC_REM_ACCESS_ERR) << describe(ends);
    EXPECT_EQ(ends[1].status, IBV_WC_REM_ACCESS_ERR) << describe(ends);
    EXPECT_EQ(ends[2].status, IBV_WC_RETRY_EXC_ERR) << describe(ends);
    EXPECT_EQ(owner_.mismatch(guest.memory, 0, kSize, number), -1);
    EXPECT_EQ(owner_.mismatch(guest.inbox, 0, kSize, number + 1), -1);
    // No byte of the memory's new content was read.
    const auto seen = guest.side->peek(guest.sink, 0, kHalf);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), kOld), static_cast<std::ptrdiff_t>(kHalf));
    // The faults ended the owner's half of their connections too.
    for (std::uint32_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(wait_until([&] { return owner_.state(guest.own[i]) == IBV_QPS_ERR; }));
    }
    const bool destroyed = static_cast<Ending>(number % 3) == Ending::kDestroy;
    for (std::uint32_t i = 0; i < 3; ++i) {
      discard(owner_, guest.own[i], i == 2 && destroyed);
      discard(*guest.side, guest.theirs[i], false);
    }
  }

  static void discard(Side& side, const QpInfo& qp, bool destroyed) {
    if (!destroyed) {
      EXPECT_EQ(side.call<&Endpoint::destroy_qp>(qp.id), 0);
    }
    EXPECT_EQ(side.call<&Endpoint::destroy_cq>(qp.send_cq), 0);
    EXPECT_EQ(side.call<&Endpoint::destroy_cq>(qp.receive_cq), 0);
  }

  Side owner_;
  QpWish wish_;  ///< of the guests
  std::vector<Guest> guests_;
};

}  // namespace

void run_dereg_storm(Setting setting, std::uint32_t rounds, bool in_domains) {
  Storm storm(setting, 2, in_domains);
  for (std::uint32_t round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    storm.round(round);
  }
}

}  // namespace verbatim::harness
