// SPDX-License-Identifier: BSD-2-Clause
//
// Two UD queue pairs, and letters from a to b. One thread.
#pragma once

#include "tests/support/two_sides.hpp"

namespace verbatim::harness {

inline constexpr std::uint64_t kGrh = 40;

struct Post {
  Pair pair;
  RegionInfo from, to;
  std::int32_t ah;
  explicit Post(const Setting& setting, const Link& link_b = {})
      : pair(setting, wish(link_b)),
        from(pair.a.allocate(setting.memory, 16_KiB)),
        to(pair.b.allocate(setting.memory, 16_KiB)),
        ah(pair.a.call<&Endpoint::create_ah>(pair.qb, 0)) {}
  static PairWish wish(const Link& link_b) {
    PairWish wish;
    wish.a.type = wish.b.type = IBV_QPT_UD;
    wish.link_b = link_b;
    return wish;
  }
  void post(std::uint64_t id, std::uint64_t size = 8192, std::uint64_t at = 0) {
    expect_posted(pair.b.post_receive(pair.qb, receive(id, slice(to, at, size))));
  }
  Request letter(std::uint64_t id, std::uint64_t size, std::uint32_t qkey = kQkey) {
    return datagram(id, slice(from, 0, size), ah, pair.qb.qpn, qkey);
  }
  void send_one(const Request& request) {
    expect_posted(pair.a.post_send(pair.qa, request));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], request.wr_id, IBV_WC_SEND, pair.qa);
  }
  ibv_wc next() { return pair.b.poll_receives(pair.qb, 1)[0]; }
  /// A datagram that is known to arrive: whatever was to come before it has come.
  void expect_only(std::uint64_t receive_id) {
    send_one(letter(999, 13));
    const ibv_wc wc = next();
    EXPECT_EQ(wc.wr_id, receive_id);
    EXPECT_EQ(wc.byte_len, kGrh + 13);
    EXPECT_TRUE(pair.b.poll_once(pair.qb.receive_cq, 1).empty());
  }
};

}  // namespace verbatim::harness
