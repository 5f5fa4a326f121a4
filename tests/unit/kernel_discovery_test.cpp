// SPDX-License-Identifier: BSD-2-Clause
// Which kernel devices are found: in trees of files made for the test, and by netlink answers made
// of bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "providers/uverbs/discovery.hpp"
#include "providers/uverbs/node.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/provider.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/netlink_script.hpp"
#include "tests/unit/refused_call.hpp"

namespace verbatim::unit {
namespace {

using netlink::attribute;
using netlink::device;
using netlink::done;
using netlink::kGet;
using netlink::message;
using netlink::node;
using netlink::number;
using netlink::Script;
using netlink::status;
using netlink::text;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using uverbs::Found;

constexpr uverbs::Driver kRxe{14, "rxe", 1, 2};
const ProviderTable kProvider{};

/// What a provider would list, as names.
std::vector<std::string> names(const uverbs::Places& places, const Found& found) {
  DeviceSink sink(kProvider);
  EXPECT_EQ(uverbs::add_devices(places, found, kRxe, sink), 0);
  std::vector<std::string> all;
  for (Device* device = sink.take(); device != nullptr;) {
    all.emplace_back(device->plain.name);
    Device* const next = device->next;
    destroy_nothrow(device);
    device = next;
  }
  return all;
}

class Tree : public ::testing::Test {
 protected:
  Tree() {
    char pattern[] = "/tmp/verbatim-sysfs-XXXXXX";
    root_ = ::mkdtemp(pattern);
    sysfs_ = root_ / "sys";
    nodes_ = root_ / "dev";
    sysfs_text_ = sysfs_.string();
    nodes_text_ = nodes_.string();
  }
  ~Tree() override { std::filesystem::remove_all(root_); }

  static void put(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  void add(const std::string& uverbs, const std::string& name, const std::string& abi = "2") {
    const auto verbs = sysfs_ / "class/infiniband_verbs" / uverbs;
    put(sysfs_ / "class/infiniband_verbs/abi_version", "6");
    put(verbs / "ibdev", name);
    put(verbs / "dev", "231:192");
    put(verbs / "abi_version", abi);
    put(sysfs_ / "class/infiniband" / name / "node_type", "1: CA");
    put(sysfs_ / "class/infiniband" / name / "node_guid", "0211:22ff:fe33:4455");
    put(nodes_ / uverbs, "");
  }
  [[nodiscard]] uverbs::Places places() const { return {sysfs_text_.c_str(), nodes_text_.c_str()}; }
  std::vector<std::string> list() {
    Found found;
    EXPECT_EQ(uverbs::find_by_sysfs(places(), found), 0);
    return names(places(), found);
  }

  std::filesystem::path root_, sysfs_, nodes_;
  std::string sysfs_text_, nodes_text_;
};

TEST_F(Tree, OfAMachineWithoutRdmaIsEmptyAndSilent) {
  const CapturedStderr said;
  std::filesystem::create_directories(sysfs_);
  EXPECT_THAT(list(), ElementsAre());
  std::filesystem::create_directories(sysfs_ / "class");
  EXPECT_THAT(list(), ElementsAre());
  EXPECT_EQ(said.lines(), 0);
}

TEST_F(Tree, TellsEverythingAboutADevice) {
  add("uverbs3", "rxe7");
  Found found;
  ASSERT_EQ(uverbs::find_by_sysfs(places(), found), 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_STREQ(found[0].name, "rxe7");
  EXPECT_STREQ(found[0].uverbs, "uverbs3");
  EXPECT_EQ(found[0].number, uverbs::node_number(231, 192));
  EXPECT_EQ(found[0].abi, 2u);
  EXPECT_EQ(found[0].node_type, 1);
  EXPECT_EQ(found[0].guid, 0x021122fffe334455u);
}

TEST_F(Tree, IsReadAnewEachTime) {
  add("uverbs0", "rxe0");
  EXPECT_THAT(list(), ElementsAre("rxe0"));
  add("uverbs1", "rxe1");
  EXPECT_EQ(list().size(), 2u);
  std::filesystem::remove_all(sysfs_ / "class/infiniband_verbs/uverbs0");
  EXPECT_THAT(list(), ElementsAre("rxe1"));
}

TEST_F(Tree, LeavesOutDevicesOfOtherDrivers) {
  add("uverbs0", "mlx5_0");
  add("uverbs1", "rxe1");
  EXPECT_THAT(list(), ElementsAre("rxe1"));
}

TEST_F(Tree, TellsOfDevicesThatCouldBeUsedByAnotherDriver) {
  add("uverbs0", "mlx5_0");
  add("uverbs1", "rxe1");
  add("uverbs2", "mlx5_2");
  std::filesystem::remove(nodes_ / "uverbs2");
  Found found;
  ASSERT_EQ(uverbs::find_by_sysfs(places(), found), 0);
  UnclaimedDevices unclaimed;
  DeviceSink sink(kProvider, &unclaimed);
  ASSERT_EQ(uverbs::add_devices(places(), found, kRxe, sink), 0);
  ::setenv("IBV_SHOW_WARNINGS", "1", 1);
  const CapturedStderr said;
  unclaimed.tell({});
  ::unsetenv("IBV_SHOW_WARNINGS");
  EXPECT_EQ(said.lines(), 1) << "not of one that is in use, nor of one without a node";
  EXPECT_THAT(said.text(), HasSubstr("class/infiniband_verbs/uverbs0 (mlx5_0)"));
}

// Containers show the devices of their host, and give them no nodes.
TEST_F(Tree, WithoutNodesIsSilent) {
  add("uverbs0", "rxe0");
  std::filesystem::remove_all(nodes_);
  const CapturedStderr said;
  EXPECT_THAT(list(), ElementsAre());
  EXPECT_EQ(said.lines(), 0);
}

TEST_F(Tree, OfAnotherDriverAbiIsExplained) {
  add("uverbs0", "rxe0", "99");
  const CapturedStderr said;
  EXPECT_THAT(list(), ElementsAre());
  EXPECT_THAT(said.text(), HasSubstr("driver does not support the kernel ABI of rxe0 (supports 1 "
                                     "to 2 while the device has 99): build with"));
}

TEST_F(Tree, OfAnotherCoreAbiIsExplained) {
  add("uverbs0", "rxe0");
  put(sysfs_ / "class/infiniband_verbs/abi_version", "99");
  const CapturedStderr said;
  EXPECT_THAT(list(), ElementsAre());
  EXPECT_THAT(said.text(), HasSubstr("kernel ABI version 99 doesn't match library version 6"));
  EXPECT_THAT(said.text(), HasSubstr("build with a newer version of this library"));
}

TEST_F(Tree, WithoutAnAbiVersionIsExplained) {
  add("uverbs0", "rxe0");
  std::filesystem::remove(sysfs_ / "class/infiniband_verbs/abi_version");
  const CapturedStderr said;
  EXPECT_THAT(list(), ElementsAre());
  EXPECT_THAT(said.text(), HasSubstr("couldn't read uverbs ABI version from"));
  EXPECT_THAT(said.text(), HasSubstr("modprobe ib_uverbs"));
}

TEST_F(Tree, OfNonsenseHasNoDevices) {
  add("uverbs0", "rxe0");
  put(sysfs_ / "class/infiniband_verbs/uverbs0/ibdev", "../../etc");
  EXPECT_THAT(list(), ElementsAre());
  add("uverbs0", "rxe0");
  put(sysfs_ / "class/infiniband_verbs/uverbs0/dev", "231:99999999999");
  EXPECT_THAT(list(), ElementsAre());
  add("uverbs0", "rxe0");
  put(sysfs_ / "class/infiniband_verbs/uverbs0/abi_version", "two");
  EXPECT_THAT(list(), ElementsAre());
  add("uverbs0", "rxe" + std::string(100, 'x'));
  EXPECT_THAT(list(), ElementsAre());
}

TEST_F(Tree, ThatCannotBeReadToItsEndIsToldAndAnError) {
  add("uverbs0", "rxe0");
  const CapturedStderr said;
  int error = 0;
  Found found;
  if (!with_refused_call(SYS_getdents64, EIO,
                         [&] { error = uverbs::find_by_sysfs(places(), found); })) {
    GTEST_SKIP() << "no filter of system calls can be set here";
  }
  EXPECT_EQ(error, EIO);
  EXPECT_EQ(found.size(), 0u);
  EXPECT_THAT(said.text(), AllOf(HasSubstr("class/infiniband_verbs: cannot be read to its end"),
                                 HasSubstr("Input/output error")));
}

TEST_F(Tree, IsReadWhereNetlinkTellsOfNoDevice) {
  add("uverbs0", "rxe0");
  const auto listed = [&](const uverbs::NetlinkPort* port) {
    Found found;
    EXPECT_EQ(uverbs::find_devices(port, places(), found), 0);
    return names(places(), found);
  };
  EXPECT_THAT(listed(nullptr), ElementsAre("rxe0")) << "a kernel without it";
  Script script;
  EXPECT_THAT(listed(&script), ElementsAre("rxe0")) << "no answer";
  script.answers = {status(EPERM)};
  EXPECT_THAT(listed(&script), ElementsAre("rxe0")) << "refused";
  script.answers = {done()};
  EXPECT_THAT(listed(&script), ElementsAre("rxe0")) << "no device in this namespace";
  script.answers = {device(1, "rxe9"), done(), status(EOPNOTSUPP)};
  EXPECT_THAT(listed(&script), ElementsAre("rxe0")) << "devices, but no nodes (before 5.1)";
}

TEST_F(Tree, IsNotReadWhereNetlinkTells) {
  add("uverbs0", "rxe0");
  put(nodes_ / "uverbs9", "");
  Script script;
  script.answers = {device(4, "rxe9"), done(), node("uverbs9"), status(0)};
  Found found;
  ASSERT_EQ(uverbs::find_devices(&script, places(), found), 0);
  EXPECT_THAT(names(places(), found), ElementsAre("rxe9"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].index, 4) << "which sysfs does not tell";
}

TEST(Node, ThatCannotBeOpenedIsToldWithTheCauseAndTheFix) {
  const struct {
    int error;
    const char* advice;
  } cases[] = {
      {EACCES, "give it to your user, or make it 0666"},
      {EPERM, "not of this container or network namespace: pass it in (--device)"},
      {ENOENT, "removed, or its node is not in this container"},
      {ENXIO, "the device was removed; list the devices again"},
      {ENODEV, "the device was removed; list the devices again"},
      {EMFILE, "raise 'ulimit -n'"},
      {ENFILE, "raise 'ulimit -n'"},
      {EIO, "see the kernel's log"},
  };
  for (const auto& [error, advice] : cases) {
    const CapturedStderr said;
    int told = 0;
    const bool refused = with_refused_call(SYS_openat, error, [&told] {
      UniqueFd fd;
      told = uverbs::open_node_at("/dev/infiniband/uverbs0", "rxe0", 0xe7c0, fd);
    });
    if (!refused) GTEST_SKIP() << "no filter of system calls can be set here";
    EXPECT_EQ(told, error);
    EXPECT_EQ(said.lines(), 1);
    EXPECT_THAT(said.text(), AllOf(HasSubstr("rxe0: cannot open /dev/infiniband/uverbs0: "),
                                   HasSubstr(std::strerror(error)), HasSubstr(advice)));
  }
}

TEST(Netlink, TellsDevicesAndTheirNodes) {
  Script script;
  script.answers = {device(4, "my_name"), done(), node("uverbs9"), status(0)};
  Found found;
  ASSERT_EQ(uverbs::find_by_netlink(script, found), 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_STREQ(found[0].name, "my_name");
  EXPECT_STREQ(found[0].uverbs, "uverbs9");
  EXPECT_EQ(found[0].index, 4);
  EXPECT_EQ(found[0].driver, 14u);
  EXPECT_EQ(found[0].abi, 2u);
  EXPECT_EQ(found[0].guid, 0x1122u);
  EXPECT_EQ(found[0].number, uverbs::node_number(231, 192));
}

TEST(Netlink, ADeviceThatLeftBetweenTwoQuestionsIsLeftOut) {
  Script script;
  script.answers = {device(1, "rxe0"), device(2, "rxe1"), done(),
                    status(ENODEV),    node("uverbs1"),   status(0)};
  const CapturedStderr said;
  Found found;
  ASSERT_EQ(uverbs::find_by_netlink(script, found), 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_STREQ(found[0].name, "rxe1");
  EXPECT_EQ(said.lines(), 0) << "nothing is wrong";
}

TEST(Netlink, ADeviceWhoseNodeIsNotToldIsLeftOutWithALine) {
  for (const int error : {EPERM, EAGAIN}) {
    Script script;
    script.answers = {device(1, "rxe0"), done()};
    if (error == EPERM) script.answers.push_back(status(error));  // else there is no answer
    const CapturedStderr said;
    Found found;
    ASSERT_EQ(uverbs::find_by_netlink(script, found), 0);
    EXPECT_EQ(found.size(), 0u);
    EXPECT_THAT(said.text(), AllOf(HasSubstr("rxe0"), HasSubstr(std::strerror(error))));
    EXPECT_EQ(said.lines(), 1);
  }
}

TEST(Netlink, AnswersToEarlierQuestionsAreSkipped) {
  Script script;
  script.answers = {message(kGet, attribute(RDMA_NLDEV_ATTR_DEV_NAME, text("old")), 77), done()};
  Found found;
  EXPECT_EQ(uverbs::find_by_netlink(script, found), 0);
  EXPECT_EQ(found.size(), 0u);
}

TEST(Netlink, RefusalsAndSilenceAreErrors) {
  Script script;
  Found found;
  script.answers = {status(EPERM)};
  EXPECT_EQ(uverbs::find_by_netlink(script, found), EPERM);
  script.answers = {};
  EXPECT_EQ(uverbs::find_by_netlink(script, found), EAGAIN);
  script.answers = {std::string("\x08\0\0\0", 4) + std::string(12, '\0')};
  EXPECT_EQ(uverbs::find_by_netlink(script, found), EPROTO) << "shorter than its own header";
  script.answers = {message(kGet, std::string("\x02\0\x02\0", 4))};
  EXPECT_EQ(uverbs::find_by_netlink(script, found), EPROTO) << "so is the attribute";
}

TEST(Netlink, TellsWhetherPinnedPagesAreCopiedAtAFork) {
  constexpr unsigned kSystem = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET);
  Script script;
  bool copies = false;
  script.answers = {
      message(kSystem, attribute(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, number(std::uint8_t{1}))),
      status(0)};
  EXPECT_EQ(uverbs::ask_copy_on_fork(script, copies), 0);
  EXPECT_TRUE(copies);
  script.answers = {
      message(kSystem, attribute(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, number(std::uint8_t{1}))),
      status(0)};
  EXPECT_EQ(uverbs::ask_copy_on_fork(script, copies), 0);
  EXPECT_FALSE(copies) << "a kernel from before it has no such attribute";
}

TEST(Netlink, NamesThatLeadElsewhereAreNone) {
  for (const char* const name : {"../../etc/passwd", "a/b", "", ".."}) {
    Script script;
    script.answers = {device(1, name), done()};
    Found found;
    EXPECT_EQ(uverbs::find_by_netlink(script, found), 0);
    EXPECT_EQ(found.size(), 0u) << name;
  }
  Script script;
  script.answers = {message(kGet, attribute(RDMA_NLDEV_ATTR_DEV_INDEX, number(1u)) +
                                      attribute(RDMA_NLDEV_ATTR_DEV_NAME, "unended")),
                    done()};
  Found found;
  EXPECT_EQ(uverbs::find_by_netlink(script, found), 0);
  EXPECT_EQ(found.size(), 0u);
}

}  // namespace
}  // namespace verbatim::unit
