// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim doctor` says of ports that lack something, over the fake library: which line, how
// grave, and what mends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <string>

#include "tests/tools/classic.hpp"
#include "tests/tools/private_fabric.hpp"

namespace verbatim::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct PortOf {
  ibv_port_state state = IBV_PORT_ACTIVE;
  ibv_mtu max_mtu = IBV_MTU_4096;
  ibv_mtu active_mtu = IBV_MTU_4096;
  int link_layer = IBV_LINK_LAYER_ETHERNET;
  std::string gids = "v";
  Environment more = {};
};

/// The line about `topic` of the first port, and the one below it that says what mends it.
std::string line(const PortOf& port, const std::string& topic) {
  const PrivateFabric fabric;
  Environment environment = fabric.environment(port.more);
  environment["FAKE_VERBS_SEED"] = "3";  // its first device has ports
  environment["FAKE_VERBS_DEVICES"] = "1";
  environment["FAKE_VERBS_PORT"] = std::to_string(port.state) + ' ' + std::to_string(port.max_mtu) +
                                   ' ' + std::to_string(port.active_mtu) + ' ' +
                                   std::to_string(port.link_layer);
  environment["FAKE_VERBS_GIDS"] = port.gids;
  const Ending ending = run(fake_tool("verbatim", environment), {"doctor"});
  EXPECT_TRUE(ending.in_time);
  for (std::size_t at = 0; at < ending.out.size();) {
    const std::size_t end = ending.out.find('\n', at);
    const std::string text = ending.out.substr(at, end - at);
    if (text.find(topic + ' ') == 6 && text.find("fake0 port 1: ") != std::string::npos)
      return ending.out.substr(at, ending.out.find('\n', end + 1) - at);
    at = end + 1;
  }
  return "";
}

TEST(DoctorPort, ThatIsActiveIsOk) {
  for (const char* topic : {"port", "MTU", "GID"}) EXPECT_THAT(line({}, topic), StartsWith("OK"));
  EXPECT_THAT(line({}, "GID"), HasSubstr("use GID index 0: ::ffff:192.0.2.0 (RoCE v2)"));
}

TEST(DoctorPort, ThatIsDownIsWarnedOfWithWhatBringsItsKindUp) {
  const std::string ethernet = line({.state = IBV_PORT_DOWN}, "port");
  EXPECT_THAT(ethernet, AllOf(StartsWith("WARN"), HasSubstr("PORT_DOWN, link layer Ethernet"),
                              HasSubstr("nothing is sent"), HasSubstr("ip link set <netdev> up"),
                              Not(HasSubstr("opensm"))));
  const std::string infiniband =
      line({.state = IBV_PORT_INIT, .link_layer = IBV_LINK_LAYER_INFINIBAND}, "port");
  EXPECT_THAT(infiniband, AllOf(StartsWith("WARN"), HasSubstr("PORT_INIT, link layer InfiniBand"),
                                HasSubstr("opensm"), Not(HasSubstr("ip link"))));
  EXPECT_EQ(line({.state = IBV_PORT_DOWN, .gids = ""}, "GID"), "") << "it has none yet";
}

TEST(DoctorPort, WhoseMtuIsSmallerThanItMayBeIsWarnedOf) {
  EXPECT_THAT(line({.active_mtu = IBV_MTU_1024}, "MTU"),
              AllOf(StartsWith("WARN"), HasSubstr("active MTU 1024, max 4096"),
                    HasSubstr("ip link set <netdev> mtu 4200")));
  EXPECT_THAT(line({.max_mtu = IBV_MTU_2048, .active_mtu = IBV_MTU_1024}, "MTU"),
              AllOf(StartsWith("WARN"), HasSubstr("mtu 2152")));
  EXPECT_THAT(line({.active_mtu = IBV_MTU_2048, .link_layer = IBV_LINK_LAYER_INFINIBAND}, "MTU"),
              AllOf(StartsWith("WARN"), HasSubstr("active MTU 2048, max 4096"),
                    HasSubstr("subnet manager")));
}

TEST(DoctorPort, WithoutAGidFails) {
  EXPECT_THAT(line({.gids = ""}, "GID"),
              AllOf(StartsWith("FAIL"), HasSubstr("no GID"), HasSubstr("ip addr add")));
}

TEST(DoctorPort, WhoseGidsDoNotReachOtherSubnetsIsWarnedOf) {
  EXPECT_THAT(line({.gids = "oo"}, "GID"),
              AllOf(StartsWith("WARN"), HasSubstr("only RoCE v1"), HasSubstr("ip addr add")));
  EXPECT_THAT(line({.gids = "ol"}, "GID"),
              AllOf(StartsWith("WARN"), HasSubstr("link-local (index 1: fe80::"),
                    HasSubstr("ip addr add")));
}

TEST(DoctorPort, IsTakenWithTheGidThatReachesFarthest) {
  EXPECT_THAT(line({.gids = "olv"}, "GID"),
              AllOf(StartsWith("OK"), HasSubstr("use GID index 2: ::ffff:192.0.2.2")));
  EXPECT_THAT(line({.link_layer = IBV_LINK_LAYER_INFINIBAND, .gids = "l"}, "GID"),
              AllOf(StartsWith("OK"), HasSubstr("GID index 0: fe80::")));
}

TEST(DoctorPort, ThatCannotBeAskedFails) {
  EXPECT_THAT(line({.more = {{"FAKE_VERBS_FAIL", "query_port"}}}, "port"),
              AllOf(StartsWith("FAIL"), HasSubstr("ibv_query_port: Input/output error"),
                    HasSubstr("dmesg")));
}

}  // namespace
}  // namespace verbatim::tools
