// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/fake_uverbs.hpp"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbatim::fake {

using uverbs::Kind;

/// A command of the older kind, wherever it came from.
struct Uverbs::Call {
  const unsigned char* in;
  std::size_t in_size;
  unsigned char* out;
  std::size_t out_size;
  void* driver_out;
  std::size_t driver_out_size;

  template <class T>
  [[nodiscard]] T request() const {
    T value{};
    std::memcpy(&value, in, std::min(in_size, sizeof value));
    return value;
  }
  template <class T>
  [[nodiscard]] int reply(const T& value) const {
    if (out_size < sizeof value) return ENOSPC;
    std::memset(out, 0, out_size);
    std::memcpy(out, &value, sizeof value);
    return 0;
  }
};

namespace {

const ib_uverbs_attr* find(const kernel::IoctlCall::Message& message, unsigned id) {
  for (unsigned i = 0; i < message.header.num_attrs; ++i) {
    if (message.attributes[i].attr_id == id) return &message.attributes[i];
  }
  return nullptr;
}
ib_uverbs_attr* find(kernel::IoctlCall::Message& message, unsigned id) {
  return const_cast<ib_uverbs_attr*>(
      find(static_cast<const kernel::IoctlCall::Message&>(message), id));
}

const unsigned char* bytes_of(const ib_uverbs_attr& attribute) {
  return attribute.len <= sizeof attribute.data
             ? reinterpret_cast<const unsigned char*>(&attribute.data)
             : reinterpret_cast<const unsigned char*>(attribute.data);
}

template <class T>
T value_of(const kernel::IoctlCall::Message& message, unsigned id) {
  T value{};
  if (const ib_uverbs_attr* const attribute = find(message, id)) {
    std::memcpy(&value, bytes_of(*attribute), std::min<std::size_t>(attribute->len, sizeof value));
  }
  return value;
}

std::uint32_t handle_of(const kernel::IoctlCall::Message& message, unsigned id) {
  const ib_uverbs_attr* const attribute = find(message, id);
  return attribute == nullptr ? UINT32_MAX : static_cast<std::uint32_t>(attribute->data);
}

template <class T>
void answer(kernel::IoctlCall::Message& message, unsigned id, const T& value) {
  ib_uverbs_attr* const attribute = find(message, id);
  if (attribute == nullptr) return;
  std::memcpy(reinterpret_cast<void*>(attribute->data), &value,
              std::min<std::size_t>(attribute->len, sizeof value));
  attribute->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
}

constexpr unsigned method_key(unsigned object, unsigned method) { return object << 16 | method; }

}  // namespace

Uverbs::Uverbs(Age age) : System{ioctl_entry, write_entry}, age_(age) {}

Uverbs::~Uverbs() { end_events(); }

void Uverbs::end_events() {
  for (int* const writer : {&async_writer_, &completion_writer_}) {
    if (*writer >= 0) ::close(*writer);
    *writer = -1;
  }
}

void Uverbs::raise(std::uint64_t element, std::uint32_t type) {
  const ib_uverbs_async_event_desc record{element, type, 0};
  [[maybe_unused]] const ssize_t put = ::write(async_writer_, &record, sizeof record);
}

void Uverbs::complete(std::uint64_t cq_number) {
  const ib_uverbs_comp_event_desc record{cq_number};
  [[maybe_unused]] const ssize_t put = ::write(completion_writer_, &record, sizeof record);
}

void Uverbs::raise_part(std::size_t bytes) {
  const ib_uverbs_async_event_desc record{0, IBV_EVENT_DEVICE_FATAL, 0};
  [[maybe_unused]] const ssize_t put = ::write(async_writer_, &record, bytes);
}

void Uverbs::complete_part(std::size_t bytes) {
  const ib_uverbs_comp_event_desc record{0};
  [[maybe_unused]] const ssize_t put = ::write(completion_writer_, &record, bytes);
}

std::uint64_t Uverbs::number_of(std::uint32_t handle) const { return objects_.at(handle).number; }

int Uverbs::new_descriptor(int& writer) const {
  if (lie == Lie::kNoDescriptor) return -1;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  if (writer >= 0) ::close(writer);
  writer = ends[1];
  return ends[0];
}

int Uverbs::create(Kind kind, std::uint64_t number, std::uint32_t& handle) {
  if (lie == Lie::kHandleInUse) {
    handle = objects_.begin()->first;
    return 0;
  }
  if (lie == Lie::kHandleBeyond) {
    handle = 0xfffffff0;
    return 0;
  }
  handle = 0;
  while (objects_.contains(handle)) ++handle;
  objects_[handle] = {kind, number};
  return 0;
}

int Uverbs::destroy(Kind kind, std::uint32_t handle) {
  const auto found = objects_.find(handle);
  if (found == objects_.end() || found->second.kind != kind) return EINVAL;
  if (handle == undying) return EBUSY;
  objects_.erase(found);
  return 0;
}

void Uverbs::answer_driver(void* out, std::size_t size) const {
  if (size == 0) return;
  std::memset(out, 0, size);
  std::memcpy(out, driver_reply_.data(), std::min(size, driver_reply_.size()));
}

int Uverbs::ioctl_entry(const uverbs::System& self, int,
                        kernel::IoctlCall::Message& message) noexcept {
  auto& kernel = const_cast<Uverbs&>(static_cast<const Uverbs&>(self));
  if (kernel.refusal != 0) return kernel.refusal;
  if (kernel.age_ == Age::kWrite) return ENOTTY;
  const auto& header = message.header;
  if (header.length != sizeof header + header.num_attrs * sizeof(ib_uverbs_attr)) return EINVAL;
  if (header.object_id == UVERBS_OBJECT_DEVICE && header.method_id == UVERBS_METHOD_INVOKE_WRITE) {
    ++kernel.invokes;
    return kernel.invoke(message);
  }
  if (kernel.age_ != Age::kMethods) return EPROTONOSUPPORT;
  ++kernel.methods_called;
  return kernel.method(message);
}

int Uverbs::write_entry(const uverbs::System& self, int, const void* bytes,
                        std::size_t size) noexcept {
  auto& kernel = const_cast<Uverbs&>(static_cast<const Uverbs&>(self));
  if (kernel.refusal != 0) return kernel.refusal;
  ++kernel.writes;
  return kernel.write(static_cast<const unsigned char*>(bytes), size);
}

int Uverbs::invoke(kernel::IoctlCall::Message& message) {
  const ib_uverbs_attr* const in = find(message, UVERBS_ATTR_CORE_IN);
  if (in == nullptr) return ENOSPC;
  ib_uverbs_attr* const out = find(message, UVERBS_ATTR_CORE_OUT);
  ib_uverbs_attr* const driver = find(message, UVERBS_ATTR_UHW_OUT);
  Call call{bytes_of(*in), in->len, nullptr, 0, nullptr, 0};
  if (out != nullptr) {
    call.out = reinterpret_cast<unsigned char*>(out->data);
    call.out_size = out->len;
  }
  if (driver != nullptr) {
    call.driver_out = reinterpret_cast<void*>(driver->data);
    call.driver_out_size = driver->len;
  }
  const auto number =
      static_cast<std::uint32_t>(value_of<std::uint64_t>(message, UVERBS_ATTR_WRITE_CMD));
  if (const int error = command(number, call)) return error;
  if (lie == Lie::kNothingWritten) return 0;
  if (out != nullptr) out->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  if (driver != nullptr) driver->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  return 0;
}

int Uverbs::write(const unsigned char* bytes, std::size_t size) {
  ib_uverbs_cmd_hdr head;
  if (size < sizeof head) return EINVAL;
  std::memcpy(&head, bytes, sizeof head);
  const unsigned char* in = bytes + sizeof head;
  Call call{in, 0, nullptr, 0, nullptr, 0};
  if ((head.command & kernel::kExtended) != 0) {
    ib_uverbs_ex_cmd_hdr more;
    if (size < sizeof head + sizeof more) return EINVAL;
    std::memcpy(&more, in, sizeof more);
    call.in = in + sizeof more;
    call.in_size = head.in_words * std::size_t{8};
    call.out_size = head.out_words * std::size_t{8};
    if (sizeof head + sizeof more + call.in_size + more.provider_in_words * std::size_t{8} !=
        size) {
      return EINVAL;
    }
    call.out = reinterpret_cast<unsigned char*>(more.response);
    call.driver_out = call.out + call.out_size;
    call.driver_out_size = more.provider_out_words * std::size_t{8};
    return command(head.command, call);
  }
  if (head.in_words * std::size_t{4} != size) return EINVAL;
  call.in_size = size - sizeof head;
  if (head.out_words != 0) {
    call.out = reinterpret_cast<unsigned char*>(call.request<std::uint64_t>());
    call.out_size = head.out_words * std::size_t{4};
  }
  return command(head.command, call);
}

int Uverbs::method(kernel::IoctlCall::Message& message) {
  const auto object = message.header.object_id;
  std::uint32_t handle = 0;
  const auto created = [&](Kind kind, unsigned id, unsigned number_id) {
    const int error = create(kind, value_of<std::uint64_t>(message, number_id), handle);
    if (ib_uverbs_attr* const attribute = find(message, id)) attribute->data = handle;
    if (lie != Lie::kNothingWritten) {
      if (ib_uverbs_attr* const driver = find(message, UVERBS_ATTR_UHW_OUT)) {
        answer_driver(reinterpret_cast<void*>(driver->data), driver->len);
        driver->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
      }
    }
    return error;
  };
  const bool silent = lie == Lie::kNothingWritten;
  switch (method_key(object, message.header.method_id)) {
    case method_key(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT):
      if (silent) return 0;
      answer(message, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, std::uint32_t{3});
      answer(message, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, std::uint64_t{1});
      return 0;
    case method_key(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC):
      find(message, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)->data_s64 =
          new_descriptor(async_writer_);
      return 0;
    case method_key(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT): {
      if (find(message, UVERBS_ATTR_QUERY_PORT_PORT_NUM)->len != sizeof(std::uint64_t)) {
        return EINVAL;
      }
      ib_uverbs_query_port_resp_ex reply{};
      reply.legacy_resp.state = 4;
      reply.legacy_resp.gid_tbl_len = 16;
      reply.port_cap_flags2 = 7;
      if (!silent) answer(message, UVERBS_ATTR_QUERY_PORT_RESP, reply);
      return 0;
    }
    case method_key(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY): {
      const auto index = value_of<std::uint64_t>(message, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
      if (index > 1) return ENODATA;
      ib_uverbs_gid_entry reply{};
      reply.gid[1] = index + 1;
      reply.gid_type = lie == Lie::kWideNumbers ? 77 : IB_UVERBS_GID_TYPE_ROCE_V2;
      if (!silent) answer(message, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, reply);
      return 0;
    }
    case method_key(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE): {
      const auto size = value_of<std::uint64_t>(message, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
      ib_uverbs_attr* const rows = find(message, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
      if (size != sizeof(ib_uverbs_gid_entry) || rows->len % size != 0) return EINVAL;
      if (rows->len / size < 2) return EINVAL;
      if (silent) return 0;
      auto* const entries = reinterpret_cast<ib_uverbs_gid_entry*>(rows->data);
      entries[0] = {{1, 1}, 0, 1, IB_UVERBS_GID_TYPE_ROCE_V1, 3};
      entries[1] = {{1, 2}, 5, lie == Lie::kWideNumbers ? 9u : 1u, IB_UVERBS_GID_TYPE_ROCE_V2, 3};
      rows->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
      answer(message, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES,
             std::uint64_t{lie == Lie::kTooMany ? 5u : 2u});
      return 0;
    }
    case method_key(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE):
      if (!silent) {
        const auto asked = value_of<std::uint32_t>(message, UVERBS_ATTR_CREATE_CQ_CQE);
        answer(message, UVERBS_ATTR_CREATE_CQ_RESP_CQE,
               lie == Lie::kWideNumbers ? 0x80000000u : asked + 5);
      }
      return created(Kind::kCq, UVERBS_ATTR_CREATE_CQ_HANDLE, UVERBS_ATTR_CREATE_CQ_USER_HANDLE);
    case method_key(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE):
      if (!silent) {
        answer(message, UVERBS_ATTR_CREATE_QP_RESP_CAP,
               value_of<ib_uverbs_qp_cap>(message, UVERBS_ATTR_CREATE_QP_CAP));
        answer(message, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM,
               std::uint32_t{lie == Lie::kWideNumbers ? 0x1000011u : 0x11u});
      }
      return created(Kind::kQp, UVERBS_ATTR_CREATE_QP_HANDLE, UVERBS_ATTR_CREATE_QP_USER_HANDLE);
    case method_key(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE):
      if (!silent) {
        answer(message, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, std::uint32_t{31});
        answer(message, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, std::uint32_t{2});
      }
      return created(Kind::kSrq, UVERBS_ATTR_CREATE_SRQ_HANDLE, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE);
    case method_key(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY):
      if (!silent) {
        answer(message, UVERBS_ATTR_DESTROY_CQ_RESP, ib_uverbs_destroy_cq_resp{events_reported, 0});
      }
      return destroy(Kind::kCq, handle_of(message, UVERBS_ATTR_DESTROY_CQ_HANDLE));
    case method_key(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY):
      if (!silent) {
        answer(message, UVERBS_ATTR_DESTROY_QP_RESP, ib_uverbs_destroy_qp_resp{events_reported});
      }
      return destroy(Kind::kQp, handle_of(message, UVERBS_ATTR_DESTROY_QP_HANDLE));
    case method_key(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY):
      if (!silent) {
        answer(message, UVERBS_ATTR_DESTROY_SRQ_RESP, ib_uverbs_destroy_srq_resp{events_reported});
      }
      return destroy(Kind::kSrq, handle_of(message, UVERBS_ATTR_DESTROY_SRQ_HANDLE));
    case method_key(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY):
      return destroy(Kind::kPd, handle_of(message, UVERBS_ATTR_DESTROY_PD_HANDLE));
    case method_key(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY):
      return destroy(Kind::kMr, handle_of(message, UVERBS_ATTR_DESTROY_MR_HANDLE));
    case method_key(UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY):
      return destroy(Kind::kMw, handle_of(message, UVERBS_ATTR_DESTROY_MW_HANDLE));
    case method_key(UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY):
      return destroy(Kind::kAh, handle_of(message, UVERBS_ATTR_DESTROY_AH_HANDLE));
    default:
      return EPROTONOSUPPORT;
  }
}

int Uverbs::command(std::uint32_t number, const Call& call) {
  if (lie == Lie::kNothingWritten) return 0;
  std::uint32_t handle = 0;
  // Through write(2) the driver's reply lies behind the command's own.
  const auto made = [&](Kind kind, std::uint64_t user, auto reply, auto set) {
    if (const int error = create(kind, user, handle)) return error;
    set(reply);
    const int error = call.reply(reply);
    if (call.driver_out_size != 0) {
      answer_driver(call.driver_out, call.driver_out_size);
    } else if (call.out_size > sizeof reply) {
      answer_driver(call.out + sizeof reply, call.out_size - sizeof reply);
    }
    return error;
  };
  switch (number) {
    case IB_USER_VERBS_EX_CMD_QUERY_DEVICE | kernel::kExtended: {
      ib_uverbs_ex_query_device_resp reply{};
      reply.base.phys_port_cnt = 1;
      reply.base.max_qp = 99;
      reply.base.max_pkeys = 0xffff;
      reply.max_dm_size = 4096;
      reply.device_cap_flags_ex = device_flags;
      if (pages_on_demand) reply.odp_caps.general_caps = IBV_ODP_SUPPORT;
      // A kernel of before device memory: what lies behind is not its word.
      reply.response_length = offsetof(ib_uverbs_ex_query_device_resp, max_dm_size);
      if (lie == Lie::kLengthShort) reply.response_length = 4;
      if (lie == Lie::kLengthLong) reply.response_length = sizeof reply + 8;
      return call.reply(reply);
    }
    case IB_USER_VERBS_CMD_GET_CONTEXT: {
      ib_uverbs_get_context_resp reply{};
      reply.async_fd = static_cast<std::uint32_t>(new_descriptor(async_writer_));
      reply.num_comp_vectors = 3;
      return call.reply(reply);
    }
    case IB_USER_VERBS_CMD_QUERY_PORT: {
      ib_uverbs_query_port_resp reply{};
      reply.state = 4;
      reply.gid_tbl_len = 16;
      return call.reply(reply);
    }
    case IB_USER_VERBS_CMD_ALLOC_PD:
      return made(Kind::kPd, 0, ib_uverbs_alloc_pd_resp{},
                  [&](auto& reply) { reply.pd_handle = handle; });
    case IB_USER_VERBS_CMD_REG_MR:
      if ((call.request<ib_uverbs_reg_mr>().access_flags & refused_access) != 0) return EINVAL;
      return made(Kind::kMr, 0, ib_uverbs_reg_mr_resp{}, [&](auto& reply) {
        reply.mr_handle = handle;
        reply.lkey = 0x1234;
        reply.rkey = 0x5678;
      });
    case IB_USER_VERBS_CMD_REREG_MR: {
      const auto asked = call.request<ib_uverbs_rereg_mr>();
      changed = {asked.mr_handle, asked.flags,  asked.access_flags, asked.pd_handle,
                 asked.start,     asked.length, asked.hca_va};
      if (!objects_.contains(changed.handle)) return EINVAL;
      if (pins_for_reading && (changed.flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 &&
          (changed.access & IBV_ACCESS_LOCAL_WRITE) != 0)
        return EACCES;
      return call.reply(ib_uverbs_rereg_mr_resp{0x4321, 0x8765});
    }
    case IB_USER_VERBS_CMD_ALLOC_MW:
      return made(Kind::kMw, 0, ib_uverbs_alloc_mw_resp{},
                  [&](auto& reply) { reply.mw_handle = handle; });
    case IB_USER_VERBS_CMD_CREATE_AH:
      return made(Kind::kAh, 0, ib_uverbs_create_ah_resp{},
                  [&](auto& reply) { reply.ah_handle = handle; });
    case IB_USER_VERBS_CMD_CREATE_CQ:
      return made(Kind::kCq, call.request<ib_uverbs_create_cq>().user_handle,
                  ib_uverbs_create_cq_resp{}, [&](auto& reply) {
                    reply.cq_handle = handle;
                    reply.cqe = lie == Lie::kWideNumbers
                                    ? 0x80000000u
                                    : call.request<ib_uverbs_create_cq>().cqe + 5;
                  });
    case IB_USER_VERBS_CMD_CREATE_SRQ:
      return made(Kind::kSrq, call.request<ib_uverbs_create_srq>().user_handle,
                  ib_uverbs_create_srq_resp{}, [&](auto& reply) {
                    reply.srq_handle = handle;
                    reply.max_wr = 31;
                    reply.max_sge = 2;
                  });
    case IB_USER_VERBS_CMD_CREATE_QP:
      return made(Kind::kQp, call.request<ib_uverbs_create_qp>().user_handle,
                  ib_uverbs_create_qp_resp{}, [&](auto& reply) {
                    reply.qp_handle = handle;
                    reply.qpn = lie == Lie::kWideNumbers ? 0x1000011 : 0x11;
                    reply.max_send_wr = call.request<ib_uverbs_create_qp>().max_send_wr;
                  });
    case IB_USER_VERBS_CMD_QUERY_QP: {
      ib_uverbs_query_qp_resp reply{};
      reply.qp_state = lie == Lie::kWideNumbers ? 200 : 3;
      reply.qkey = 0x77;
      return call.reply(reply);
    }
    case IB_USER_VERBS_CMD_QUERY_SRQ:
      return call.reply(ib_uverbs_query_srq_resp{31, 2, 4, 0});
    case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
      return call.reply(ib_uverbs_create_comp_channel_resp{
          static_cast<std::uint32_t>(new_descriptor(completion_writer_))});
    case IB_USER_VERBS_CMD_MODIFY_QP:
      qp_access = call.request<ib_uverbs_modify_qp>().qp_access_flags;
      return objects_.contains(call.request<ib_uverbs_modify_qp>().qp_handle) ? 0 : EINVAL;
    case IB_USER_VERBS_CMD_REQ_NOTIFY_CQ:
      return objects_.contains(call.request<ib_uverbs_req_notify_cq>().cq_handle) ? 0 : EINVAL;
    case IB_USER_VERBS_CMD_DEALLOC_PD:
      return destroy(Kind::kPd, call.request<std::uint32_t>());
    case IB_USER_VERBS_CMD_DEREG_MR:
      return destroy(Kind::kMr, call.request<std::uint32_t>());
    case IB_USER_VERBS_CMD_DEALLOC_MW:
      return destroy(Kind::kMw, call.request<std::uint32_t>());
    case IB_USER_VERBS_CMD_DESTROY_AH:
      return destroy(Kind::kAh, call.request<std::uint32_t>());
    case IB_USER_VERBS_CMD_DESTROY_CQ: {
      const int error = call.reply(ib_uverbs_destroy_cq_resp{events_reported, 0});
      return error != 0 ? error
                        : destroy(Kind::kCq, call.request<ib_uverbs_destroy_cq>().cq_handle);
    }
    case IB_USER_VERBS_CMD_DESTROY_QP: {
      const int error = call.reply(ib_uverbs_destroy_qp_resp{events_reported});
      return error != 0 ? error
                        : destroy(Kind::kQp, call.request<ib_uverbs_destroy_qp>().qp_handle);
    }
    case IB_USER_VERBS_CMD_DESTROY_SRQ: {
      const int error = call.reply(ib_uverbs_destroy_srq_resp{events_reported});
      return error != 0 ? error
                        : destroy(Kind::kSrq, call.request<ib_uverbs_destroy_srq>().srq_handle);
    }
    default:
      return EOPNOTSUPP;
  }
}

}  // namespace verbatim::fake
