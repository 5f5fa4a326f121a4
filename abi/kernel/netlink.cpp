// SPDX-License-Identifier: BSD-2-Clause
#include "abi/kernel/netlink.hpp"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>

#include <cerrno>
#include <cstring>

namespace verbatim::kernel {
namespace {

constexpr std::size_t aligned(std::size_t size) noexcept { return (size + 3) & ~std::size_t{3}; }

constexpr std::uint16_t type_of(unsigned operation) noexcept {
  return static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, operation));
}

NetlinkRequest begin(std::uint32_t sequence, unsigned operation, unsigned flags) noexcept {
  NetlinkRequest request{};
  nlmsghdr head{};
  head.nlmsg_len = sizeof head;
  head.nlmsg_type = type_of(operation);
  head.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  head.nlmsg_seq = sequence;
  std::memcpy(request.bytes, &head, sizeof head);
  request.size = sizeof head;
  return request;
}

void append(NetlinkRequest& request, unsigned type, const void* value, std::size_t size) noexcept {
  nlattr head{};
  head.nla_len = static_cast<std::uint16_t>(sizeof head + size);
  head.nla_type = static_cast<std::uint16_t>(type);
  std::memcpy(request.bytes + request.size, &head, sizeof head);
  std::memcpy(request.bytes + request.size + sizeof head, value, size);
  request.size += aligned(sizeof head + size);
  const auto length = static_cast<std::uint32_t>(request.size);
  std::memcpy(request.bytes + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
}

/// A number of either width: kernels have sent some as 32 bits that are declared as 64.
bool read_number(Bytes value, std::uint64_t& out) noexcept {
  if (value.size() == sizeof(std::uint64_t)) {
    std::memcpy(&out, value.data(), sizeof out);
    return true;
  }
  if (value.size() == sizeof(std::uint32_t)) {
    std::uint32_t narrow = 0;
    std::memcpy(&narrow, value.data(), sizeof narrow);
    out = narrow;
    return true;
  }
  if (value.size() == 1) {
    out = static_cast<std::uint8_t>(value[0]);
    return true;
  }
  return false;
}

/// A name is ended by 0, not empty, and holds nothing that would lead elsewhere as a file's name.
bool read_name(Bytes value, char (&out)[NetlinkAnswer::kNameSize]) noexcept {
  const void* const end = value.empty() ? nullptr : std::memchr(value.data(), 0, value.size());
  if (end == nullptr) return false;
  const auto length = static_cast<std::size_t>(static_cast<const std::byte*>(end) - value.data());
  if (length == 0 || length >= sizeof out) return false;
  if (std::memchr(value.data(), '/', length) != nullptr || value[0] == std::byte{'.'}) return false;
  std::memcpy(out, value.data(), length + 1);
  return true;
}

template <class Number>
void store(NetlinkAnswer& answer, NetlinkAnswer::Has which, Bytes value, Number& out) noexcept {
  std::uint64_t wide = 0;
  if (!read_number(value, wide) || static_cast<Number>(wide) != wide) return;
  out = static_cast<Number>(wide);
  answer.has |= which;
}

void store_name(NetlinkAnswer& answer, NetlinkAnswer::Has which, Bytes value,
                char (&out)[NetlinkAnswer::kNameSize]) noexcept {
  if (read_name(value, out)) answer.has |= which;
}

void read_attribute(NetlinkAnswer& answer, unsigned type, Bytes value) noexcept {
  switch (type) {
    case RDMA_NLDEV_ATTR_DEV_INDEX:
      return store(answer, NetlinkAnswer::kIndex, value, answer.index);
    case RDMA_NLDEV_ATTR_DEV_NAME:
      return store_name(answer, NetlinkAnswer::kName, value, answer.name);
    case RDMA_NLDEV_ATTR_DEV_NODE_TYPE:
      return store(answer, NetlinkAnswer::kNodeType, value, answer.node_type);
    case RDMA_NLDEV_ATTR_NODE_GUID:
      return store(answer, NetlinkAnswer::kNodeGuid, value, answer.node_guid);
    case RDMA_NLDEV_ATTR_CHARDEV_NAME:
      return store_name(answer, NetlinkAnswer::kChardevName, value, answer.chardev_name);
    case RDMA_NLDEV_ATTR_CHARDEV:
      return store(answer, NetlinkAnswer::kChardev, value, answer.chardev);
    case RDMA_NLDEV_ATTR_CHARDEV_ABI:
      return store(answer, NetlinkAnswer::kAbi, value, answer.abi);
    case RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID:
      return store(answer, NetlinkAnswer::kDriver, value, answer.driver);
    case RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK:
      return store(answer, NetlinkAnswer::kCopyOnFork, value, answer.copy_on_fork);
    case RDMA_NLDEV_ATTR_RES_CM_ID:
      answer.connections = value;
      answer.has |= NetlinkAnswer::kConnections;
      return;
    default:
      return;
  }
}

/// The first of a row of attributes. False: it is malformed, and `left` is empty.
bool next_attribute(Bytes& left, unsigned& type, Bytes& value) noexcept {
  nlattr head;
  std::memcpy(&head, left.data(), sizeof head);
  if (head.nla_len < sizeof head || head.nla_len > left.size()) {
    left = {};
    return false;
  }
  type = head.nla_type & NLA_TYPE_MASK;
  value = left.subspan(sizeof head, head.nla_len - sizeof head);
  const std::size_t step = aligned(head.nla_len);
  left = step >= left.size() ? Bytes{} : left.subspan(step);
  return true;
}

bool read_attributes(NetlinkAnswer& answer, Bytes left) noexcept {
  unsigned type = 0;
  Bytes value;
  while (left.size() >= sizeof(nlattr)) {
    if (!next_attribute(left, type, value)) return false;
    read_attribute(answer, type, value);
  }
  return true;
}

template <class Address>
bool read_as(Bytes value, Address& out) noexcept {
  if (value.size() < sizeof out) return false;
  std::memcpy(&out, value.data(), sizeof out);
  return true;
}

/// A sockaddr of what it says it is. Others than of IP are as good as none.
void read_peer(Bytes value, NetlinkConnection& out) noexcept {
  sa_family_t family = AF_UNSPEC;
  sockaddr_in of_four{};
  sockaddr_in6 address{};
  if (!read_as(value, family)) return;
  if (family == AF_INET && read_as(value, of_four)) {
    constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    std::memcpy(out.peer, kMapped, sizeof kMapped);
    std::memcpy(out.peer + sizeof kMapped, &of_four.sin_addr, sizeof of_four.sin_addr);
    out.peer_port = ntohs(of_four.sin_port);
    out.has_peer = true;
  } else if (family == AF_INET6 && read_as(value, address)) {
    std::memcpy(out.peer, &address.sin6_addr, sizeof out.peer);
    out.peer_port = ntohs(address.sin6_port);
    out.has_peer = true;
  }
}

}  // namespace

NetlinkRequest ask_devices(std::uint32_t sequence) noexcept {
  return begin(sequence, RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
}

NetlinkRequest ask_character_device(std::uint32_t sequence, std::uint32_t index) noexcept {
  NetlinkRequest request = begin(sequence, RDMA_NLDEV_CMD_GET_CHARDEV, NLM_F_ACK);
  append(request, RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof index);
  append(request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs", sizeof "uverbs");
  return request;
}

NetlinkRequest ask_system(std::uint32_t sequence) noexcept {
  return begin(sequence, RDMA_NLDEV_CMD_SYS_GET, NLM_F_ACK);
}

NetlinkRequest ask_connections(std::uint32_t sequence, std::uint32_t index) noexcept {
  NetlinkRequest request = begin(sequence, RDMA_NLDEV_CMD_RES_CM_ID_GET, NLM_F_DUMP);
  append(request, RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof index);
  return request;
}

bool next_connection(Bytes& table, NetlinkConnection& out) noexcept {
  unsigned type = 0;
  Bytes entry;
  out = {};
  if (table.size() < sizeof(nlattr) || !next_attribute(table, type, entry)) return false;
  Bytes value;
  while (entry.size() >= sizeof(nlattr)) {
    if (!next_attribute(entry, type, value)) return false;
    if (type == RDMA_NLDEV_ATTR_RES_DST_ADDR) read_peer(value, out);
    std::uint64_t number = 0;
    if (type == RDMA_NLDEV_ATTR_RES_LQPN && read_number(value, number) && number <= 0xffffff)
      out.qpn = static_cast<std::uint32_t>(number);
  }
  return true;
}

NetlinkReader::Next NetlinkReader::next(NetlinkAnswer& answer, int& error) noexcept {
  while (!left_.empty()) {
    nlmsghdr head;
    if (left_.size() < sizeof head) return malformed(error);
    std::memcpy(&head, left_.data(), sizeof head);
    if (head.nlmsg_len < sizeof head || head.nlmsg_len > left_.size()) {
      return malformed(error);
    }
    const Bytes body = left_.subspan(sizeof head, head.nlmsg_len - sizeof head);
    const std::size_t step = aligned(head.nlmsg_len);
    left_ = step >= left_.size() ? Bytes{} : left_.subspan(step);
    // The late answer to an earlier question.
    if (head.nlmsg_seq != sequence_) continue;
    if (head.nlmsg_type == NLMSG_DONE) return Next::kDone;
    if (head.nlmsg_type == NLMSG_ERROR) {
      std::int32_t code = 0;
      if (body.size() < sizeof code) return malformed(error);
      std::memcpy(&code, body.data(), sizeof code);
      if (code == 0) return Next::kDone;  // the acknowledgement
      constexpr std::int32_t kLargestErrno = 4095;
      error = code < 0 && code >= -kLargestErrno ? -code : EPROTO;
      return Next::kError;
    }
    if (head.nlmsg_type < NLMSG_MIN_TYPE) continue;
    answer = {};
    if (!read_attributes(answer, body)) return malformed(error);
    return Next::kAnswer;
  }
  return Next::kEmpty;
}

NetlinkReader::Next NetlinkReader::malformed(int& error) noexcept {
  left_ = {};
  error = EPROTO;
  return Next::kError;
}

}  // namespace verbatim::kernel
