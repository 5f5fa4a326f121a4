// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rdma_cm/identifier.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbatim::rdma_cm {
namespace {

/// What the kernel takes for an address of the family; 0: none that it knows here.
std::uint16_t size_of(const sockaddr* address) noexcept {
  switch (address->sa_family) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    default:
      return 0;
  }
}

template <class Storage>
std::uint16_t write_address(const sockaddr* from, Storage& to) noexcept {
  const std::uint16_t size = from == nullptr ? std::uint16_t{0} : size_of(from);
  if (size != 0) std::memcpy(&to, from, size);
  return size;
}

/// Addresses of families beyond those (InfiniBand's own) are longer, and still fit.
bool read_address(const __kernel_sockaddr_storage& from, std::uint16_t size,
                  sockaddr_storage& to) noexcept {
  static_assert(sizeof from == sizeof to);
  if (size > sizeof to) return false;
  std::memcpy(&to, &from, size);
  return true;
}

int write_parameters(const Parameters& from, rdma_ucm_conn_param& to) noexcept {
  if (from.private_data.size() > kMostPrivateData || from.qp_num > 0xffffff) return EINVAL;
  to.qp_num = from.qp_num;
  std::copy(from.private_data.begin(), from.private_data.end(), to.private_data);
  to.private_data_len = static_cast<__u8>(from.private_data.size());
  to.srq = from.srq ? 1 : 0;
  to.responder_resources = from.responder_resources;
  to.initiator_depth = from.initiator_depth;
  to.retry_count = from.retry_count;
  to.rnr_retry_count = from.rnr_retry_count;
  to.valid = 1;
  return 0;
}

}  // namespace

Identifier::~Identifier() {
  if (alive()) static_cast<void>(destroy());
}

int Identifier::create(EventChannel& channel, rdma_ucm_port_space space) noexcept {
  if (alive()) return EINVAL;
  const std::uint64_t number = channel.identifiers_.add(uverbs::Kind::kCmId, this);
  if (number == 0) return ENOMEM;
  rdma_ucm_create_id body{};
  body.uid = number;
  body.ps = static_cast<__u16>(space);
  rdma_ucm_create_id_resp reply{};
  int error = channel.command(RDMA_USER_CM_CMD_CREATE_ID, body, reply);
  if (error == 0) error = channel.identifiers_.claim(reply.id);
  if (error != 0) {
    channel.identifiers_.remove(number);
    return error;
  }
  channel_ = &channel;
  number_ = number;
  id_ = reply.id;
  return 0;
}

int Identifier::adopt(EventChannel& channel, const Event& request) noexcept {
  if (alive() || request.type != EventType::kConnectRequest) return EINVAL;
  const std::uint64_t number = channel.identifiers_.add(uverbs::Kind::kCmId, this);
  if (number == 0) return ENOMEM;
  channel_ = &channel;
  number_ = number;
  id_ = request.request;
  return 0;
}

int Identifier::bind(const sockaddr* address) noexcept {
  if (!alive()) return EINVAL;
  rdma_ucm_bind body{};
  body.id = id_;
  body.addr_size = write_address(address, body.addr);
  if (body.addr_size == 0) return EAFNOSUPPORT;
  return channel_->command(RDMA_USER_CM_CMD_BIND, body);
}

int Identifier::resolve_addr(const sockaddr* source, const sockaddr* destination,
                             std::uint32_t timeout_ms) noexcept {
  if (!alive()) return EINVAL;
  rdma_ucm_resolve_addr body{};
  body.id = id_;
  body.timeout_ms = timeout_ms;
  body.src_size = write_address(source, body.src_addr);
  body.dst_size = write_address(destination, body.dst_addr);
  if (body.dst_size == 0 || (source != nullptr && body.src_size == 0)) return EAFNOSUPPORT;
  return channel_->command(RDMA_USER_CM_CMD_RESOLVE_ADDR, body);
}

int Identifier::resolve_route(std::uint32_t timeout_ms) noexcept {
  if (!alive()) return EINVAL;
  return channel_->command(RDMA_USER_CM_CMD_RESOLVE_ROUTE, rdma_ucm_resolve_route{id_, timeout_ms});
}

int Identifier::query_addr(Address& address) noexcept {
  if (!alive()) return EINVAL;
  rdma_ucm_query body{};
  body.id = id_;
  body.option = RDMA_USER_CM_QUERY_ADDR;
  rdma_ucm_query_addr_resp reply;
  if (const int error = channel_->command(RDMA_USER_CM_CMD_QUERY, body, reply)) return error;
  Address read;
  if (!read_address(reply.src_addr, reply.src_size, read.source) ||
      !read_address(reply.dst_addr, reply.dst_size, read.destination)) {
    return EPROTO;
  }
  read.source_size = reply.src_size;
  read.destination_size = reply.dst_size;
  read.node_guid = reply.node_guid;
  read.port = reply.port_num;
  // Kernels before 5.15 end before it.
  read.device_index = reply.ibdev_index > INT32_MAX ? -1 : static_cast<int>(reply.ibdev_index);
  address = read;
  return 0;
}

int Identifier::listen(std::uint32_t backlog) noexcept {
  if (!alive()) return EINVAL;
  return channel_->command(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id_, backlog});
}

int Identifier::connect(const Parameters& parameters) noexcept {
  if (!alive()) return EINVAL;
  rdma_ucm_connect body{};
  body.id = id_;
  if (const int error = write_parameters(parameters, body.conn_param)) return error;
  return channel_->command(RDMA_USER_CM_CMD_CONNECT, body);
}

int Identifier::accept(const Parameters& parameters) noexcept {
  if (!alive()) return EINVAL;
  rdma_ucm_accept body{};
  body.uid = number_;
  body.id = id_;
  if (const int error = write_parameters(parameters, body.conn_param)) return error;
  return channel_->command(RDMA_USER_CM_CMD_ACCEPT, body);
}

int Identifier::reject(std::span<const unsigned char> private_data) noexcept {
  if (!alive() || private_data.size() > kMostPrivateData) return EINVAL;
  rdma_ucm_reject body{};
  body.id = id_;
  std::copy(private_data.begin(), private_data.end(), body.private_data);
  body.private_data_len = static_cast<__u8>(private_data.size());
  return channel_->command(RDMA_USER_CM_CMD_REJECT, body);
}

int Identifier::disconnect() noexcept {
  if (!alive()) return EINVAL;
  return channel_->command(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{id_});
}

int Identifier::init_qp_attr(std::uint32_t state, ib_uverbs_qp_attr& attr) noexcept {
  if (!alive()) return EINVAL;
  rdma_ucm_init_qp_attr body{};
  body.id = id_;
  body.qp_state = state;
  ib_uverbs_qp_attr reply;
  if (const int error = channel_->command(RDMA_USER_CM_CMD_INIT_QP_ATTR, body, reply)) {
    return error;
  }
  // They become values of types that have no others.
  constexpr std::uint32_t kStates = 7;
  constexpr std::uint32_t kMtus = 5;
  constexpr std::uint32_t kMigrations = 2;
  if (reply.qp_state >= kStates || reply.cur_qp_state >= kStates || reply.path_mtu > kMtus ||
      reply.path_mig_state > kMigrations) {
    return EPROTO;
  }
  attr = reply;
  return 0;
}

int Identifier::destroy(std::uint32_t* delivered) noexcept {
  if (!alive()) return EINVAL;
  EventChannel& channel = *channel_;
  const std::uint32_t seen = channel.identifiers_.remove(number_).asynchronous;
  // The kernel may give the number away again before we hear that it is free.
  channel.identifiers_.release(id_);
  rdma_ucm_destroy_id body{};
  body.id = id_;
  rdma_ucm_destroy_id_resp reply{};
  const int error = channel.command(RDMA_USER_CM_CMD_DESTROY_ID, body, reply);
  // One that the kernel does not know is gone as well, and so is all that a closed device had.
  channel_ = nullptr;
  if (delivered != nullptr) *delivered = seen;
  return error;
}

}  // namespace verbatim::rdma_cm
