// SPDX-License-Identifier: BSD-2-Clause
// Names of hosts without a resolver.
#include "perf/cli/hosts.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbatim::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kFile[] =
    "# hosts of a small site\n"
    "127.0.0.1\tlocalhost\n"
    "::1 localhost ip6-localhost\r\n"
    "  192.0.2.7   node7.example.org   node7 n7 # the seventh, not node8\n"
    "192.0.2.8 node8\n"
    "192.0.2.9 node7\n"
    "not-an-address node9\n"
    "192.0.2.10\n"
    "\n"
    "2001:db8::5 node5";  // no newline at the end

std::vector<std::string> find(const char* host, const char* file = kFile) {
  std::vector<std::string> texts;
  for (const SocketAddress& address : find_host(host, 18515, file)) {
    texts.push_back(address.text());
  }
  return texts;
}

TEST(Hosts, TakesNumericAddressesAsTheyAre) {
  EXPECT_THAT(find("192.0.2.1"), ElementsAre("192.0.2.1"));
  EXPECT_THAT(find("::1"), ElementsAre("::1"));
  EXPECT_THAT(find("2001:DB8:0:0::1"), ElementsAre("2001:db8::1"));
  EXPECT_THAT(find("fe80::1%lo"), ElementsAre("fe80::1%lo"));
}

TEST(Hosts, FindsNamesAndAliasesInAnyCase) {
  EXPECT_THAT(find("node8"), ElementsAre("192.0.2.8"));
  EXPECT_THAT(find("N7"), ElementsAre("192.0.2.7"));
  EXPECT_THAT(find("Node7.Example.ORG"), ElementsAre("192.0.2.7"));
  EXPECT_THAT(find("node5"), ElementsAre("2001:db8::5"));
}

TEST(Hosts, GivesAllAddressesOfANameInOrder) {
  EXPECT_THAT(find("node7"), ElementsAre("192.0.2.7", "192.0.2.9"));
  EXPECT_THAT(find("localhost"), ElementsAre("127.0.0.1", "::1"));
}

TEST(Hosts, FindsNothingElse) {
  EXPECT_THAT(find("node"), IsEmpty());
  EXPECT_THAT(find("node77"), IsEmpty());
  EXPECT_THAT(find("seventh"), IsEmpty()) << "a comment";
  EXPECT_THAT(find("node9"), IsEmpty()) << "its line has no address";
  EXPECT_THAT(find("192.0.2"), IsEmpty());
  EXPECT_THAT(find("192.0.2.7x"), IsEmpty());
  EXPECT_THAT(find("192.0.2.7%lo"), IsEmpty()) << "IPv4 has no zones";
  EXPECT_THAT(find("fe80::1%no-such-interface"), IsEmpty());
  EXPECT_THAT(find(""), IsEmpty());
}

TEST(Hosts, KnowsLocalhostWithoutAFile) {
  EXPECT_THAT(find("localhost", ""), ElementsAre("127.0.0.1", "::1"));
  EXPECT_THAT(find("node7", ""), IsEmpty());
}

TEST(Hosts, CarriesThePortInNetworkOrder) {
  const auto v4 = find_host("127.0.0.1", 18515, "");
  const auto v6 = find_host("::1", 18515, "");
  ASSERT_EQ(v4.size(), 1u);
  ASSERT_EQ(v6.size(), 1u);
  EXPECT_EQ(ntohs(v4[0].v4.sin_port), 18515);
  EXPECT_EQ(v4[0].any.sa_family, AF_INET);
  EXPECT_EQ(v4[0].size, sizeof(sockaddr_in));
  EXPECT_EQ(ntohs(v6[0].v6.sin6_port), 18515);
  EXPECT_EQ(v6[0].any.sa_family, AF_INET6);
  EXPECT_EQ(v6[0].size, sizeof(sockaddr_in6));
}

TEST(Hosts, ShowsAnIpv4PeerOfADualStackSocketAsIpv4) {
  EXPECT_THAT(find("::ffff:192.0.2.3"), ElementsAre("192.0.2.3"));
}

}  // namespace
}  // namespace verbatim::cli
