// SPDX-License-Identifier: BSD-2-Clause
//
// What the receiver of a datagram is shown of the path that its address handle names: the service
// level in the completion, the rest in the routing header (IBTA 8.3, 11.4.2.1, annex A17; man
// ibv_create_ah, ibv_poll_cq, ibv_create_ah_from_wc).
#include <initializer_list>
#include <vector>

#include "tests/conformance/ud_post.hpp"
#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

/// Of a routing header, whichever of the two it is.
struct Shown {
  bool is_ipv4;
  std::uint32_t flow_label;  ///< 0 of IPv4, which has none
  std::uint8_t traffic_class;
  std::uint8_t hop_limit;
  std::vector<std::uint8_t> source, destination;
};

Shown read(const std::vector<std::uint8_t>& header) {
  const auto piece = [&](int at, int size) {
    return std::vector<std::uint8_t>(header.begin() + at, header.begin() + at + size);
  };
  // Annex A17: the header of IPv4 ends where the GRH does.
  if (header[0] >> 4 != 6) return {true, 0, header[21], header[28], piece(32, 4), piece(36, 4)};
  const std::uint32_t first =
      std::uint32_t{header[0]} << 24 | header[1] << 16 | header[2] << 8 | header[3];
  return {false,     first & 0xfffff, static_cast<std::uint8_t>(first >> 20),
          header[7], piece(8, 16),    piece(24, 16)};
}

ibv_ah_attr routed(std::uint8_t traffic_class, std::uint32_t flow_label = 0,
                   std::uint8_t hop_limit = 1) {
  ibv_ah_attr wish{};
  wish.is_global = 1;
  wish.grh.traffic_class = traffic_class;
  wish.grh.flow_label = flow_label;
  wish.grh.hop_limit = hop_limit;
  return wish;
}

using Bytes = std::initializer_list<std::uint8_t>;

class UdPath : public BetweenTwo {
 protected:
  /// A datagram by such an address handle: its completion at b.
  static ibv_wc send(Post& ud, const ibv_ah_attr& wish, std::uint64_t size = 8) {
    Request request = ud.letter(2, size);
    request.ah = ud.pair.a.call<&Endpoint::create_ah_like>(ud.pair.qb, wish);
    ud.post(1);
    ud.send_one(request);
    const ibv_wc wc = ud.next();
    EXPECT_EQ(wc.byte_len, kGrh + size);
    return wc;
  }
  static Shown shown(Post& ud) {
    const Shown seen = read(ud.pair.b.peek(ud.to, 0, kGrh));
    EXPECT_EQ(seen.is_ipv4, is_mapped_ipv4(ud.pair.qa.gid));
    return seen;
  }
  static bool has_service_levels(const char* device) {
    return Session(device).port.link_layer == IBV_LINK_LAYER_INFINIBAND;
  }
};
RUN_OVER_SETTINGS(UdPath, on_every_device(each_way()));

TEST_P(UdPath, TellsTheServiceLevelOfItsAddressHandle) {
  // IBTA 11.4.2.1: of a datagram the completion has the service level that its packet came with.
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  if (!has_service_levels(device())) GTEST_SKIP() << "packets of Ethernet have no service level";
  Post ud(GetParam());
  for (const std::uint8_t level : Bytes{0, 1, 15, 0}) {
    ibv_ah_attr wish{};
    wish.sl = level;
    for (const std::uint64_t size : {0, 56, 200}) {
      SCOPED_TRACE(testing::Message() << "level " << int{level} << ", " << size << " bytes");
      const ibv_wc wc = send(ud, wish, size);
      EXPECT_EQ(wc.sl, level);
      EXPECT_EQ(wc.dlid_path_bits, 0) << "it was sent to the port's first address";
      EXPECT_EQ(wc.wc_flags & IBV_WC_GRH, 0u);
    }
  }
  ibv_ah_attr wish = routed(0);
  wish.sl = 7;
  EXPECT_EQ(send(ud, wish).sl, 7);
}

TEST_P(UdPath, ShowsTheTrafficClassOfItsAddressHandle) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  for (const std::uint8_t traffic_class : Bytes{0x00, 0x24, 0xfc, 0x00}) {
    for (const std::uint64_t size : {0, 56, 200}) {
      SCOPED_TRACE(testing::Message() << "class " << int{traffic_class} << ", " << size);
      const ibv_wc wc = send(ud, routed(traffic_class), size);
      EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0u);
      EXPECT_EQ(shown(ud).traffic_class, traffic_class);
    }
  }
}

TEST_P(UdPath, ShowsTheHopLimitOfItsAddressHandle) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  for (const std::uint8_t hop_limit : Bytes{64, 255, 1}) {
    send(ud, routed(0, 0, hop_limit));
    const Shown seen = shown(ud);
    if (seen.hop_limit != hop_limit) SKIP_IF(quirk_of(ud.pair.qa.vendor, kHopLimitOfTheRoute));
    EXPECT_EQ(seen.hop_limit, hop_limit);
  }
}

TEST_P(UdPath, ShowsTheFlowLabelOfItsAddressHandle) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  if (is_mapped_ipv4(ud.pair.qa.gid)) GTEST_SKIP() << "the port's address is one of IPv4";
  for (const std::uint32_t label : {0x0u, 0x1u, 0xfedcbu, 0xfffffu}) {
    send(ud, routed(0xfc, label));
    const Shown seen = shown(ud);
    EXPECT_EQ(seen.traffic_class, 0xfc);
    EXPECT_EQ(seen.flow_label, label);
  }
}

TEST_P(UdPath, IsAnsweredByTheRouteThatItsHeaderTells) {
  // man ibv_create_ah_from_wc: an address handle made of the completion and the header leads to
  // the sender, by what they say.
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Post ud(GetParam());
  ibv_ah_attr wish = routed(0x48, 0x98765, 33);
  wish.sl = 6;
  const ibv_wc wc = send(ud, wish);
  const Shown asked = shown(ud);
  const std::int32_t back =
      ud.pair.b.call<&Endpoint::create_ah_from_wc>(wc, ud.to.id, std::uint64_t{0});
  const RegionInfo at_a = ud.pair.a.allocate(memory(), 256);
  expect_posted(ud.pair.a.post_receive(ud.pair.qa, receive(3, slice(at_a, 0, 256))));
  expect_posted(
      ud.pair.b.post_send(ud.pair.qb, datagram(4, slice(ud.to, 0, 21), back, wc.src_qp, kQkey)));
  const ibv_wc answer = ud.pair.a.poll_receives(ud.pair.qa, 1)[0];
  EXPECT_EQ(answer.byte_len, kGrh + 21);
  EXPECT_EQ(answer.src_qp, ud.pair.qb.qpn);
  EXPECT_EQ(answer.sl, wc.sl);
  ASSERT_NE(answer.wc_flags & IBV_WC_GRH, 0u);
  const Shown answered = read(ud.pair.a.peek(at_a, 0, kGrh));
  EXPECT_EQ(answered.traffic_class, asked.traffic_class);
  EXPECT_EQ(answered.flow_label, asked.flow_label);
  EXPECT_EQ(answered.hop_limit, asked.hop_limit);
  EXPECT_EQ(answered.source, asked.destination);
  EXPECT_EQ(answered.destination, asked.source);
}

}  // namespace
}  // namespace verbatim::harness
