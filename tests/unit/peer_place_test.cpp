// SPDX-License-Identifier: BSD-2-Clause
// Where the peer of a connection is, as the kernel's connection manager tells over netlink.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "providers/uverbs/connection.hpp"
#include "tests/unit/netlink_script.hpp"

namespace verbatim::unit {
namespace {

using netlink::attribute;
using netlink::done;
using netlink::number;
using netlink::Script;
using netlink::status;

constexpr unsigned kGetIds = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_CM_ID_GET);

/// A sockaddr in the room for any, as the kernel sends it.
std::string address(const char* words, std::uint16_t port) {
  sockaddr_storage storage{};
  auto* const four = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&storage);
  if (::inet_pton(AF_INET, words, &four->sin_addr) == 1) {
    storage.ss_family = AF_INET;
    four->sin_port = htons(port);
  } else {
    EXPECT_EQ(::inet_pton(AF_INET6, words, &six->sin6_addr), 1);
    storage.ss_family = AF_INET6;
    six->sin6_port = htons(port);
  }
  return number(storage);
}
std::string identifier(std::uint32_t qpn, const std::string& peer) {
  return attribute(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY | NLA_F_NESTED,
                   attribute(RDMA_NLDEV_ATTR_RES_LQPN, number(qpn)) +
                       attribute(RDMA_NLDEV_ATTR_RES_SRC_ADDR, address("10.9.9.9", 9)) +
                       attribute(RDMA_NLDEV_ATTR_RES_DST_ADDR, peer));
}
std::string table(const std::string& entries) {
  return netlink::message(kGetIds,
                          attribute(RDMA_NLDEV_ATTR_DEV_INDEX, number(std::uint32_t{3})) +
                              attribute(RDMA_NLDEV_ATTR_RES_CM_ID | NLA_F_NESTED, entries));
}
std::string place_of(Script& script, std::uint32_t qpn) {
  RemotePlace place;
  if (const int error = uverbs::find_peer(script, 3, qpn, place)) return std::strerror(error);
  EXPECT_EQ(place.kind, RemotePlace::Kind::kSocket);
  char text[INET6_ADDRSTRLEN];
  ::inet_ntop(AF_INET6, place.gid.raw, text, sizeof text);
  return std::string(text) + " port " + std::to_string(place.port);
}

TEST(PeerPlace, IsThatOfTheIdentifierWithTheQueuePair) {
  const std::string listener =
      attribute(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY | NLA_F_NESTED,
                attribute(RDMA_NLDEV_ATTR_RES_SRC_ADDR, address("10.9.9.9", 9)));
  const std::string first = listener + identifier(0x11, address("10.2.0.1", 18600));
  const std::string second = identifier(0x12, address("fd00::7", 4711));
  for (const auto& [qpn, words] :
       {std::pair{0x11u, "::ffff:10.2.0.1 port 18600"}, std::pair{0x12u, "fd00::7 port 4711"}}) {
    Script script;
    script.answers = {table(first), table(second), done()};
    EXPECT_EQ(place_of(script, qpn), words);
  }
}

TEST(PeerPlace, IsUnknownWhereNobodyHasTheQueuePairOrTwoDiffer) {
  const std::string none = std::strerror(ENOENT);
  Script script;
  script.answers = {table(identifier(0x11, address("10.2.0.1", 1))), done()};
  EXPECT_EQ(place_of(script, 0x12), none);
  script.answers = {done()};
  EXPECT_EQ(place_of(script, 0x11), none) << "a device without connections";
  const std::string one = identifier(0x11, address("10.2.0.1", 1));
  script.answers = {table(one + one), done()};
  EXPECT_EQ(place_of(script, 0x11), "::ffff:10.2.0.1 port 1") << "the same twice";
  script.answers = {table(one + identifier(0x11, address("10.2.0.1", 2))), done()};
  EXPECT_EQ(place_of(script, 0x11), none);
  script.answers = {status(EINVAL)};
  EXPECT_EQ(place_of(script, 0x11), std::strerror(EINVAL)) << "a kernel from before the question";
}

TEST(PeerPlace, IsNotReadFromWhatIsTooShortOrNoInternet) {
  const std::string none = std::strerror(ENOENT);
  Script script;
  for (const std::string& peer :
       {std::string(), address("10.2.0.1", 1).substr(0, 7), address("fd00::7", 1).substr(0, 27),
        std::string("\x1b\0", 2) + std::string(126, 'x') /* AF_IB */}) {
    script.answers = {table(identifier(0x11, peer)), done()};
    EXPECT_EQ(place_of(script, 0x11), none) << peer.size();
  }
  // An attribute that is longer than its table ends the reading of it.
  std::string cut = identifier(0x11, address("10.2.0.1", 1));
  cut[0] = '\x7f';
  cut[1] = '\x7f';
  script.answers = {table(cut), done()};
  EXPECT_EQ(place_of(script, 0x11), none);
}

}  // namespace
}  // namespace verbatim::unit
