// SPDX-License-Identifier: BSD-2-Clause
// The kernel's connection manager, over one that answers rightly, wrongly, or not at all. Layouts:
// <rdma/rdma_user_cm.h>.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/support/fake_rdma_cm.hpp"
#include "tests/unit/captured_stderr.hpp"

namespace verbatim::unit {
namespace {

using fake::CmLie;
using rdma_cm::Event;
using rdma_cm::EventType;
using rdma_cm::Identifier;
using ::testing::HasSubstr;

class RdmaCm : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(id_.create(channel_, RDMA_PS_TCP), 0); }
  int next(Event& event) { return channel_.get_event(event, 5); }
  static sockaddr_in address(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(0x0a020001);
    return address;
  }
  static const sockaddr* plain(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);
  }

  fake::RdmaCm kernel_;
  rdma_cm::EventChannel channel_{kernel_};
  Identifier id_;
};

TEST_F(RdmaCm, AnActiveSideSaysWhatItWants) {
  const sockaddr_in to = address(18600);
  ASSERT_EQ(id_.resolve_addr(nullptr, plain(to), 77), 0);
  const auto asked = kernel_.last<rdma_ucm_resolve_addr>(RDMA_USER_CM_CMD_RESOLVE_ADDR);
  EXPECT_EQ(asked.id, id_.id());
  EXPECT_EQ(asked.timeout_ms, 77u);
  EXPECT_EQ(asked.src_size, 0u);
  ASSERT_EQ(asked.dst_size, sizeof to);
  EXPECT_EQ(std::memcmp(&asked.dst_addr, &to, sizeof to), 0);
  ASSERT_EQ(id_.resolve_route(78), 0);
  EXPECT_EQ(kernel_.last<rdma_ucm_resolve_route>(RDMA_USER_CM_CMD_RESOLVE_ROUTE).timeout_ms, 78u);
  rdma_cm::Parameters parameters;
  parameters.qp_num = 0x123;
  const unsigned char word[] = {1, 2, 3};
  parameters.private_data = word;
  parameters.initiator_depth = 4;
  ASSERT_EQ(id_.connect(parameters), 0);
  const auto connect = kernel_.last<rdma_ucm_connect>(RDMA_USER_CM_CMD_CONNECT);
  EXPECT_EQ(connect.conn_param.qp_num, 0x123u);
  EXPECT_EQ(connect.conn_param.private_data_len, 3u);
  EXPECT_EQ(connect.conn_param.private_data[2], 3u);
  EXPECT_EQ(connect.conn_param.initiator_depth, 4u);
  EXPECT_EQ(connect.conn_param.valid, 1u);
  ASSERT_EQ(id_.disconnect(), 0);
  EXPECT_TRUE(kernel_.heard(RDMA_USER_CM_CMD_DISCONNECT));
}

TEST_F(RdmaCm, APassiveSideAdoptsWhoAsks) {
  const sockaddr_in at = address(18600);
  ASSERT_EQ(id_.bind(plain(at)), 0);
  EXPECT_EQ(kernel_.last<rdma_ucm_bind>(RDMA_USER_CM_CMD_BIND).addr_size, sizeof at);
  ASSERT_EQ(id_.listen(3), 0);
  EXPECT_EQ(kernel_.last<rdma_ucm_listen>(RDMA_USER_CM_CMD_LISTEN).backlog, 3u);
  const std::uint32_t number = kernel_.request(id_, "hello");
  Event event;
  ASSERT_EQ(next(event), 0);
  EXPECT_EQ(event.type, EventType::kConnectRequest);
  EXPECT_EQ(event.about, &id_);
  EXPECT_EQ(event.request, number);
  ASSERT_EQ(event.parameters.private_data_len, 5u);
  EXPECT_EQ(std::memcmp(event.parameters.private_data, "hello", 5), 0);
  Identifier made;
  ASSERT_EQ(made.adopt(channel_, event), 0);
  EXPECT_EQ(made.id(), number);
  ASSERT_EQ(made.accept({}), 0);
  kernel_.raise(made, EventType::kEstablished);
  ASSERT_EQ(next(event), 0);
  EXPECT_EQ(event.about, &made);
  std::uint32_t delivered = 0;
  EXPECT_EQ(made.destroy(&delivered), 0);
  EXPECT_EQ(delivered, 1u);
  EXPECT_EQ(kernel_.living(), 1u);
}

TEST_F(RdmaCm, NobodyWaitsLongerThanWasSaid) {
  kernel_.wait_answer = ETIMEDOUT;
  Event event;
  EXPECT_EQ(next(event), ETIMEDOUT);
  EXPECT_EQ(kernel_.waited, 1);
  kernel_.wait_answer = 0;
  EXPECT_EQ(next(event), ETIMEDOUT) << "another thread was faster";
}

TEST_F(RdmaCm, EventsAboutWhatIsGoneAreLeftOut) {
  std::optional<Identifier> gone(std::in_place);
  ASSERT_EQ(gone->create(channel_, RDMA_PS_TCP), 0);
  kernel_.raise(*gone, EventType::kDisconnected);
  gone.reset();
  kernel_.raise(id_, EventType::kRejected, -111);
  const CapturedStderr captured;
  Event event;
  ASSERT_EQ(next(event), 0);
  EXPECT_EQ(event.about, &id_);
  EXPECT_EQ(event.status, -111);
  EXPECT_THAT(captured.text(), HasSubstr("left out"));
}

TEST_F(RdmaCm, EventsThatCannotBeAreLeftOut) {
  rdma_ucm_event_resp wild{};
  wild.uid = kernel_.uid_of(id_.id());
  wild.id = id_.id();
  wild.event = 16;
  kernel_.raise(wild);
  wild.event = UINT32_MAX;
  kernel_.raise(wild);
  wild.event = static_cast<__u32>(EventType::kEstablished);
  wild.id = 99;
  kernel_.raise(wild);
  wild.id = id_.id();
  wild.uid ^= std::uint64_t{1} << 40;
  kernel_.raise(wild);
  const CapturedStderr captured;
  Event event;
  EXPECT_EQ(next(event), ETIMEDOUT);
}

TEST_F(RdmaCm, AFloodOfThemEnds) {
  rdma_ucm_event_resp wild{};
  wild.event = 16;
  for (int i = 0; i < 1000; ++i) kernel_.raise(wild);
  const CapturedStderr captured;
  Event event;
  EXPECT_EQ(next(event), EPROTO);
  EXPECT_FALSE(kernel_.events.empty());
}

TEST_F(RdmaCm, ARequestForNobodyIsGivenBack) {
  std::optional<Identifier> gone(std::in_place);
  ASSERT_EQ(gone->create(channel_, RDMA_PS_TCP), 0);
  kernel_.request(*gone, "");
  gone.reset();
  const CapturedStderr captured;
  Event event;
  EXPECT_EQ(next(event), ETIMEDOUT);
  EXPECT_EQ(kernel_.living(), 1u) << "only ours";
}

TEST_F(RdmaCm, ARequestWithTheNumberOfALivingOneIsALie) {
  kernel_.lie = CmLie::kIdInUse;
  kernel_.request(id_, "");
  const CapturedStderr captured;
  Event event;
  EXPECT_EQ(next(event), ETIMEDOUT);
  EXPECT_EQ(kernel_.living(), 1u) << "and the living one is left alone";
}

TEST_F(RdmaCm, NumbersOfNewIdentifiersAreChecked) {
  for (const CmLie lie : {CmLie::kIdInUse, CmLie::kIdBeyond, CmLie::kNothingWritten}) {
    kernel_.lie = lie;
    Identifier other;
    EXPECT_EQ(other.create(channel_, RDMA_PS_TCP), EPROTO);
    EXPECT_FALSE(other.alive());
  }
}

TEST_F(RdmaCm, AnswersAreChecked) {
  rdma_cm::Address where;
  ASSERT_EQ(id_.query_addr(where), 0);
  EXPECT_EQ(where.node_guid, 0x1122u);
  EXPECT_EQ(where.device_index, 3);
  EXPECT_EQ(where.source_size, sizeof(sockaddr_in));
  EXPECT_EQ(where.source.ss_family, AF_INET);
  ib_uverbs_qp_attr attr{};
  ASSERT_EQ(id_.init_qp_attr(1, attr), 0);
  EXPECT_EQ(attr.qp_state, 1u);
  for (const CmLie lie : {CmLie::kWideNumbers, CmLie::kNothingWritten}) {
    kernel_.lie = lie;
    EXPECT_EQ(id_.query_addr(where), EPROTO);
    EXPECT_EQ(id_.init_qp_attr(1, attr), EPROTO);
  }
  EXPECT_EQ(where.node_guid, 0x1122u) << "written on success only";
  EXPECT_EQ(attr.qp_state, 1u);
}

TEST_F(RdmaCm, WhatCannotBeSaidIsRefused) {
  const sockaddr_in to = address(1);
  sockaddr odd{};
  odd.sa_family = AF_UNIX;
  EXPECT_EQ(id_.bind(&odd), EAFNOSUPPORT);
  EXPECT_EQ(id_.bind(nullptr), EAFNOSUPPORT);
  EXPECT_EQ(id_.resolve_addr(&odd, plain(to), 1), EAFNOSUPPORT);
  EXPECT_EQ(id_.resolve_addr(nullptr, nullptr, 1), EAFNOSUPPORT);
  const std::vector<unsigned char> much(256);
  rdma_cm::Parameters parameters;
  parameters.private_data = much;
  EXPECT_EQ(id_.connect(parameters), EINVAL);
  EXPECT_EQ(id_.accept(parameters), EINVAL);
  EXPECT_EQ(id_.reject(much), EINVAL);
  parameters = {};
  parameters.qp_num = 0x1000000;
  EXPECT_EQ(id_.connect(parameters), EINVAL);
  EXPECT_EQ(id_.create(channel_, RDMA_PS_TCP), EINVAL) << "it is one already";
  Identifier none;
  EXPECT_EQ(none.listen(1), EINVAL);
  EXPECT_EQ(none.destroy(), EINVAL);
  EXPECT_FALSE(kernel_.heard(RDMA_USER_CM_CMD_CONNECT));
}

TEST_F(RdmaCm, ItsErrnoIsPassedOnAndWhatIsGoneIsGone) {
  kernel_.refusal = ENODEV;
  EXPECT_EQ(id_.listen(1), ENODEV);
  Event event;
  EXPECT_EQ(next(event), ENODEV);
  EXPECT_EQ(id_.destroy(), ENODEV);
  EXPECT_FALSE(id_.alive());
}

/// What the kernel tells of the node, in a folder of the test's.
class RdmaCmNode : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) /
            ("rdma_cm." + std::to_string(::getpid()) + "." +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(root_ / "class/misc/rdma_cm");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void tell(const char* file, const char* text) {
    std::ofstream(root_ / "class/misc/rdma_cm" / file) << text << "\n";
  }
  /// Opens and returns what was said.
  std::string open(int error, const char* node) {
    const CapturedStderr captured;
    rdma_cm::EventChannel channel;
    const std::string sysfs = root_.string();
    EXPECT_EQ(channel.open({sysfs.c_str(), node}), error);
    return captured.text();
  }
  std::filesystem::path root_;
};

TEST_F(RdmaCmNode, WithoutTheModuleItIsNamed) {
  EXPECT_THAT(open(ENODEV, "/dev/null"), HasSubstr("modprobe rdma_ucm"));
}

TEST_F(RdmaCmNode, AnotherVersionIsNamed) {
  tell("dev", "1:3");
  tell("abi_version", "99");
  EXPECT_THAT(open(EPROTONOSUPPORT, "/dev/null"), HasSubstr("version 99"));
}

TEST_F(RdmaCmNode, AnotherNodeIsRefusedAndSilenceIsNoAnswer) {
  tell("dev", "10:55");
  tell("abi_version", "4");
  EXPECT_THAT(open(ENXIO, "/dev/null"), HasSubstr("not the node of this device"));
  EXPECT_THAT(open(ENOENT, "/nowhere"), HasSubstr("/nowhere"));
  // With the number of /dev/null, which takes every command.
  tell("dev", "1:3");
  rdma_cm::EventChannel channel;
  const std::string sysfs = root_.string();
  ASSERT_EQ(channel.open({sysfs.c_str(), "/dev/null"}), 0);
  Identifier id;
  EXPECT_EQ(id.create(channel, RDMA_PS_TCP), EPROTO);
}

}  // namespace
}  // namespace verbatim::unit
