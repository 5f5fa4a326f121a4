// SPDX-License-Identifier: BSD-2-Clause
// A kernel's end of a netlink socket: answers made of bytes, in the order that they are asked for.
#pragma once

#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <string>

#include "providers/uverbs/netlink_port.hpp"

namespace verbatim::unit::netlink {

/// A socket that answers what was put into it.
struct Script : uverbs::NetlinkPort {
  Script() : NetlinkPort{send_entry, receive_entry} {}

  static int send_entry(const uverbs::NetlinkPort& self, const void* bytes, std::size_t) noexcept {
    auto& script = const_cast<Script&>(static_cast<const Script&>(self));
    nlmsghdr head;
    std::memcpy(&head, bytes, sizeof head);
    script.sequence = head.nlmsg_seq;
    return 0;
  }
  static ssize_t receive_entry(const uverbs::NetlinkPort& self, void* buffer,
                               std::size_t size) noexcept {
    auto& script = const_cast<Script&>(static_cast<const Script&>(self));
    if (script.answers.empty()) return -EAGAIN;
    std::string answer = script.answers.front();
    script.answers.pop_front();
    EXPECT_LE(answer.size(), size);
    // The sequence number of what was asked last, unless the script says another.
    std::uint32_t marked = 0;
    std::memcpy(&marked, answer.data() + offsetof(nlmsghdr, nlmsg_seq), sizeof marked);
    if (marked == 0) {
      std::memcpy(answer.data() + offsetof(nlmsghdr, nlmsg_seq), &script.sequence, sizeof marked);
    }
    std::memcpy(buffer, answer.data(), answer.size());
    return static_cast<ssize_t>(answer.size());
  }

  std::deque<std::string> answers;
  std::uint32_t sequence = 0;
};

inline std::string message(unsigned type, const std::string& body, std::uint32_t sequence = 0) {
  nlmsghdr head{};
  head.nlmsg_len = static_cast<std::uint32_t>(sizeof head + body.size());
  head.nlmsg_type = static_cast<std::uint16_t>(type);
  head.nlmsg_seq = sequence;
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + body;
}
inline std::string attribute(unsigned type, const std::string& value) {
  nlattr head{};
  head.nla_len = static_cast<std::uint16_t>(sizeof head + value.size());
  head.nla_type = static_cast<std::uint16_t>(type);
  std::string all = std::string(reinterpret_cast<const char*>(&head), sizeof head) + value;
  all.resize((all.size() + 3) / 4 * 4);
  return all;
}
template <class T>
inline std::string number(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
inline std::string text(const char* value) { return std::string(value, std::strlen(value) + 1); }

constexpr unsigned kGet = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET);
constexpr unsigned kGetChardev = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV);

inline std::string device(std::uint32_t index, const char* name) {
  return message(kGet, attribute(RDMA_NLDEV_ATTR_DEV_INDEX, number(index)) +
                           attribute(RDMA_NLDEV_ATTR_DEV_NAME, text(name)) +
                           attribute(RDMA_NLDEV_ATTR_NODE_GUID, number(std::uint64_t{0x1122})) +
                           attribute(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, number(std::uint8_t{1})));
}
inline std::string node(const char* name, std::uint32_t driver = 14) {
  return message(kGetChardev,
                 attribute(RDMA_NLDEV_ATTR_CHARDEV_NAME, text(name)) +
                     attribute(RDMA_NLDEV_ATTR_CHARDEV_ABI, number(std::uint64_t{2})) +
                     attribute(RDMA_NLDEV_ATTR_CHARDEV, number(std::uint64_t{0xe7c0})) +
                     attribute(RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, number(driver)));
}
inline std::string done() { return message(NLMSG_DONE, number(std::int32_t{0})); }
inline std::string status(int error) { return message(NLMSG_ERROR, number(std::int32_t{-error})); }

}  // namespace verbatim::unit::netlink
