// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/fake_kernel_provider.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/event_acks.hpp"
#include "tests/support/fake_kernel.hpp"

namespace verbatim::fake {
namespace {

Kernel& kernel() { return Kernel::instance(); }

template <class Handle>
std::uint64_t user_handle(Handle& object) {
  return reinterpret_cast<std::uintptr_t>(&object.plain);
}

/// read(2) of one record, with its errors.
template <class Record>
int read_record(int fd, Record& record) {
  const ssize_t got = ::read(fd, &record, sizeof record);
  if (got < 0) return errno;
  return got == sizeof record ? 0 : EIO;
}

struct FakeKernel {
  static constexpr const char* kName = "fakek";

  struct Context : verbatim::Context {
    using verbatim::Context::Context;
    RecordPipe* async = nullptr;
  };
  struct Channel : CompChannel {
    RecordPipe* pipe = nullptr;
  };
  struct Mr : verbatim::Mr {};
  struct Cq : verbatim::Cq {};
  struct Qp : verbatim::Qp {};

  static int list_devices(DeviceSink& sink) noexcept {
    return sink.add({.name = "fakek0",
                     .dev_name = "uverbs0",
                     .ibdev_path = "/sys/class/infiniband/fakek0",
                     .guid = 0x0102030405060708,
                     .kernel_index = 3});
  }
  static int open(Device& device, verbatim::Context** out) noexcept {
    auto* const context = make_nothrow<Context>(device);
    if (context == nullptr) return ENOMEM;
    if (const int error = kernel().open(&context->async)) {
      destroy_nothrow(context);
      return error;
    }
    context->extended.context.async_fd = context->async->user_fd();
    context->extended.context.num_comp_vectors = 2;
    *out = context;
    return 0;
  }
  static void close(verbatim::Context& context) noexcept {
    auto* const own = static_cast<Context*>(&context);
    kernel().close(own->async);
    destroy_nothrow(own);
  }
  static int query_device(verbatim::Context&, ibv_device_attr_ex& attr) noexcept {
    attr.orig_attr.phys_port_cnt = 2;
    attr.orig_attr.max_qp = 17;
    attr.max_dm_size = 4096;
    return 0;
  }
  static int query_port(verbatim::Context&, std::uint8_t port, ibv_port_attr& attr) noexcept {
    attr.state = port == 1 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attr.gid_tbl_len = port == 1 ? static_cast<int>(Kernel::kGidRows) : 0;
    attr.pkey_tbl_len = 3;
    attr.link_layer = IBV_LINK_LAYER_ETHERNET;
    attr.active_width = 2;
    attr.active_speed = 32;
    attr.port_cap_flags2 = IBV_PORT_SET_NODE_DESC_SUP;
    return 0;
  }
  static int query_gid(verbatim::Context&, std::uint8_t, int index, ibv_gid_entry& entry) noexcept {
    entry.gid_type = IBV_GID_TYPE_ROCE_V2;
    entry.ndev_ifindex = 5;
    return kernel().query_gid(index, entry.gid);
  }
  static int query_pkey(verbatim::Context&, std::uint8_t, int index, __be16& pkey) noexcept {
    std::uint16_t value = 0;
    const int error = kernel().query_pkey(index, value);
    if (error == 0) pkey = htons(value);
    return error;
  }
  static int get_async_event(verbatim::Context& context, ibv_async_event& event) noexcept {
    AsyncRecord record;
    if (const int error = read_record(context.extended.context.async_fd, record)) return error;
    event.event_type = static_cast<ibv_event_type>(record.type);
    event.element.cq = reinterpret_cast<ibv_cq*>(record.user_handle);
    return 0;
  }

  static int alloc_pd(verbatim::Context&, Pd** out) noexcept {
    *out = make_nothrow<Pd>();
    return *out == nullptr ? ENOMEM : 0;
  }
  static int dealloc_pd(Pd& pd) noexcept {
    destroy_nothrow(&pd);
    return 0;
  }
  static int reg_mr(Pd&, void*, std::size_t, std::uint64_t, unsigned, verbatim::Mr** out) noexcept {
    auto* const mr = make_nothrow<Mr>();
    if (mr == nullptr) return ENOMEM;
    const int error = kernel().reg_mr(mr->plain.lkey, mr->plain.rkey);
    if (error == 0) {
      *out = mr;
    } else {
      destroy_nothrow(mr);
    }
    return error;
  }
  static int dereg_mr(verbatim::Mr& mr) noexcept {
    const int error = kernel().dereg_mr(mr.plain.lkey);
    if (error == 0) destroy_nothrow(static_cast<Mr*>(&mr));
    return error;
  }

  static int create_comp_channel(verbatim::Context&, CompChannel** out) noexcept {
    auto* const channel = make_nothrow<Channel>();
    if (channel == nullptr) return ENOMEM;
    channel->pipe = kernel().create_channel();
    channel->plain.fd = channel->pipe->user_fd();
    *out = channel;
    return 0;
  }
  static int destroy_comp_channel(CompChannel& channel) noexcept {
    auto* const own = static_cast<Channel*>(&channel);
    kernel().destroy_channel(own->pipe);
    destroy_nothrow(own);
    return 0;
  }
  static int get_cq_event(CompChannel& channel, verbatim::Cq** out) noexcept {
    CompletionRecord record;
    if (const int error = read_record(channel.plain.fd, record)) return error;
    *out = &verbatim::Cq::from(reinterpret_cast<ibv_cq*>(record.user_handle));
    return 0;
  }
  static int create_cq(verbatim::Context& context, const ibv_cq_init_attr_ex& attr,
                       CompChannel* channel, verbatim::Cq** out) noexcept {
    auto* const cq = make_nothrow<Cq>();
    if (cq == nullptr) return ENOMEM;
    cq->plain.cqe = static_cast<int>(attr.cqe);
    RecordPipe* const pipe = channel == nullptr ? nullptr : static_cast<Channel*>(channel)->pipe;
    const int error =
        kernel().create_cq(user_handle(*cq), pipe, static_cast<Context&>(context).async);
    if (error == 0) {
      *out = cq;
    } else {
      destroy_nothrow(cq);
    }
    return error;
  }
  static int destroy_cq(verbatim::Cq& cq) noexcept {
    DestroyReply reply;
    if (const int error = kernel().destroy_cq(user_handle(cq), reply)) return error;
    wait_for_completion_acks(cq, reply.completion_events);
    wait_for_async_acks(cq, reply.async_events);
    destroy_nothrow(static_cast<Cq*>(&cq));
    return 0;
  }
  static int create_qp(verbatim::Context& context, ibv_qp_init_attr_ex&,
                       verbatim::Qp** out) noexcept {
    auto* const qp = make_nothrow<Qp>();
    if (qp == nullptr) return ENOMEM;
    const int error = kernel().create_qp(user_handle(*qp), static_cast<Context&>(context).async,
                                         qp->plain.qp_num);
    if (error == 0) {
      *out = qp;
    } else {
      destroy_nothrow(qp);
    }
    return error;
  }
  static int modify_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask) noexcept {
    const int error = kernel().modify_qp(user_handle(qp), attr, mask);
    if (error == 0 && (mask & IBV_QP_STATE) != 0) qp.plain.state = attr.qp_state;
    return error;
  }
  static int query_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int, ibv_qp_init_attr&) noexcept {
    const int error = kernel().query_qp(user_handle(qp), attr);
    if (error == 0) qp.plain.state = attr.qp_state;
    return error;
  }
  static int destroy_qp(verbatim::Qp& qp) noexcept {
    DestroyReply reply;
    if (const int error = kernel().destroy_qp(user_handle(qp), reply)) return error;
    wait_for_async_acks(qp, reply.async_events);
    destroy_nothrow(static_cast<Qp*>(&qp));
    return 0;
  }
};

}  // namespace

constinit const ProviderTable kProvider = make_provider_table<FakeKernel>();

}  // namespace verbatim::fake
