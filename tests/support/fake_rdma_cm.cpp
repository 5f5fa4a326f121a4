// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/fake_rdma_cm.hpp"

#include <infiniband/verbs.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbatim::fake {
namespace {

template <class Body>
Body read(const unsigned char* bytes) {
  Body body;
  std::memcpy(&body, bytes, sizeof body);
  return body;
}

template <class Reply>
int answer(const rdma_ucm_cmd_hdr& head, std::uint64_t to, const Reply& reply) {
  if (head.out < sizeof reply) return ENOSPC;
  std::memcpy(reinterpret_cast<void*>(to), &reply, sizeof reply);
  return 0;
}

/// What each command's structure begins or ends with: the identifier that it is about.
template <class Body>
std::uint32_t id_in(const unsigned char* bytes) {
  return read<Body>(bytes).id;
}

}  // namespace

RdmaCm::RdmaCm() : System{write_entry, wait_entry} {}

void RdmaCm::raise(const rdma_cm::Identifier& about, rdma_cm::EventType type, std::int32_t status) {
  rdma_ucm_event_resp record{};
  record.uid = uids_.at(about.id());
  record.id = about.id();
  record.event = static_cast<__u32>(type);
  record.status = static_cast<__u32>(status);
  events.push_back(record);
}

std::uint32_t RdmaCm::request(const rdma_cm::Identifier& listener, const char* private_data) {
  rdma_ucm_event_resp record{};
  record.uid = uids_.at(listener.id());
  record.id = new_id(0);
  record.event = static_cast<__u32>(rdma_cm::EventType::kConnectRequest);
  record.param.conn.private_data_len = static_cast<__u8>(std::strlen(private_data));
  std::memcpy(record.param.conn.private_data, private_data, std::strlen(private_data));
  events.push_back(record);
  return record.id;
}

int RdmaCm::write_entry(const rdma_cm::System& self, int, const void* bytes,
                        std::size_t size) noexcept {
  auto& fake = const_cast<RdmaCm&>(static_cast<const RdmaCm&>(self));
  rdma_ucm_cmd_hdr head;
  if (size < sizeof head) return EINVAL;
  std::memcpy(&head, bytes, sizeof head);
  if (head.in + sizeof head != size) return EINVAL;
  if (fake.refusal != 0) return fake.refusal;
  const auto* const body = static_cast<const unsigned char*>(bytes) + sizeof head;
  fake.bodies_[head.cmd].assign(body, body + head.in);
  return fake.command(head, body);
}

int RdmaCm::wait_entry(const rdma_cm::System& self, int, int) noexcept {
  auto& fake = const_cast<RdmaCm&>(static_cast<const RdmaCm&>(self));
  ++fake.waited;
  return fake.wait_answer;
}

std::uint32_t RdmaCm::new_id(std::uint64_t uid) {
  if (lie == CmLie::kIdInUse) return uids_.begin()->first;
  if (lie == CmLie::kIdBeyond) return 0xfffffff0;
  std::uint32_t id = 0;
  while (uids_.contains(id)) ++id;
  uids_[id] = uid;
  return id;
}

int RdmaCm::command(const rdma_ucm_cmd_hdr& head, const unsigned char* body) {
  const bool silent = lie == CmLie::kNothingWritten;
  const auto known = [this](std::uint32_t id) { return uids_.contains(id) ? 0 : ENOENT; };
  switch (head.cmd) {
    case RDMA_USER_CM_CMD_CREATE_ID: {
      const auto asked = read<rdma_ucm_create_id>(body);
      if (silent) return 0;
      return answer(head, asked.response, rdma_ucm_create_id_resp{new_id(asked.uid)});
    }
    case RDMA_USER_CM_CMD_DESTROY_ID: {
      const auto asked = read<rdma_ucm_destroy_id>(body);
      if (uids_.erase(asked.id) == 0) return ENOENT;
      return silent ? 0 : answer(head, asked.response, rdma_ucm_destroy_id_resp{0});
    }
    case RDMA_USER_CM_CMD_BIND:
      return known(id_in<rdma_ucm_bind>(body));
    case RDMA_USER_CM_CMD_RESOLVE_ADDR:
      return known(id_in<rdma_ucm_resolve_addr>(body));
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
      return known(id_in<rdma_ucm_resolve_route>(body));
    case RDMA_USER_CM_CMD_LISTEN:
      return known(id_in<rdma_ucm_listen>(body));
    case RDMA_USER_CM_CMD_CONNECT:
      return known(id_in<rdma_ucm_connect>(body));
    case RDMA_USER_CM_CMD_REJECT:
      return known(id_in<rdma_ucm_reject>(body));
    case RDMA_USER_CM_CMD_DISCONNECT:
      return known(id_in<rdma_ucm_disconnect>(body));
    case RDMA_USER_CM_CMD_ACCEPT: {
      const auto asked = read<rdma_ucm_accept>(body);
      if (!uids_.contains(asked.id)) return ENOENT;
      uids_[asked.id] = asked.uid;
      return 0;
    }
    case RDMA_USER_CM_CMD_QUERY: {
      const auto asked = read<rdma_ucm_query>(body);
      if (asked.option != RDMA_USER_CM_QUERY_ADDR) return ENOSYS;
      rdma_ucm_query_addr_resp reply{};
      reply.node_guid = 0x1122;
      reply.port_num = 1;
      reply.ibdev_index = 3;
      reply.src_size = lie == CmLie::kWideNumbers ? 129 : sizeof(sockaddr_in);
      reply.src_addr.ss_family = AF_INET;
      return silent ? 0 : answer(head, asked.response, reply);
    }
    case RDMA_USER_CM_CMD_INIT_QP_ATTR: {
      const auto asked = read<rdma_ucm_init_qp_attr>(body);
      ib_uverbs_qp_attr reply{};
      reply.qp_attr_mask = IBV_QP_STATE | IBV_QP_PORT;
      reply.qp_state = lie == CmLie::kWideNumbers ? 77 : static_cast<__u8>(asked.qp_state);
      reply.port_num = 1;
      return silent ? 0 : answer(head, asked.response, reply);
    }
    case RDMA_USER_CM_CMD_GET_EVENT: {
      if (events.empty()) return EAGAIN;
      const rdma_ucm_event_resp record = events.front();
      events.pop_front();
      return silent ? 0 : answer(head, read<rdma_ucm_get_event>(body).response, record);
    }
    default:
      return ENOSYS;
  }
}

}  // namespace verbatim::fake
