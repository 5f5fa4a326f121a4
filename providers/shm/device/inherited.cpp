// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/device/inherited.hpp"

#include <pthread.h>

#include <cerrno>
#include <concepts>

#include "providers/shm/calls/cursor.hpp"
#include "providers/shm/control/cq_create.hpp"
#include "providers/shm/control/qp_control.hpp"
#include "providers/shm/control/srq_create.hpp"
#include "providers/shm/device/device.hpp"
#include "providers/shm/memory/buffers.hpp"
#include "providers/shm/memory/device_memory.hpp"
#include "providers/shm/memory/region.hpp"
#include "providers/shm/poll/completion_counters.hpp"
#include "providers/shm/queues/channel.hpp"
#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/domain.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/shared_posting.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/ud/datagram.hpp"
#include "providers/shm/ud/multicast.hpp"
#include "providers/shm/windows/windows.hpp"
#include "providers/shm/xrc/xrc_domain.hpp"
#include "providers/shm/xrc/xrc_queue.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/software/soft_domains.hpp"

namespace verbatim::shm {
namespace {

/// What is left of the provider. A slot that is not named here is refused.
struct Inherited {
  static constexpr const char* kName = "shm";
  using Context = shm::Context;
  using Mr = shm::Mr;
  using Cq = shm::Cq;
  using Qp = shm::Qp;

  static constexpr auto list_devices = shm::list_devices;
  static constexpr auto open = shm::open;
  static constexpr auto close = shm::close;
  static constexpr auto query_device = shm::query_device;
  static constexpr auto query_port = shm::query_port;
  static constexpr auto query_gid = shm::query_gid;
  static constexpr auto query_pkey = shm::query_pkey;
  static constexpr auto query_rt_values = shm::query_rt_values;
  static constexpr auto query_srq = shm::query_srq;
  static constexpr auto get_srq_num = shm::get_srq_num;
  static int query_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask,
                      ibv_qp_init_attr& init) noexcept {
    if (static_cast<Qp&>(qp).xrc != XrcRole::kOpened) return shm::query_qp(qp, attr, mask, init);
    // The other end of the handle is where only the parent looks.
    attr = {};
    attr.qp_state = attr.cur_qp_state = IBV_QPS_RESET;
    return 0;
  }
  static constexpr auto query_comp_cntr_caps = shm::query_comp_cntr_caps;
  static constexpr auto read_comp_cntr = shm::read_stored_count;
  static constexpr auto explain_qp = shm::explain_qp;
  // Else they would be taken for a device's that has no such options, which answers.
  static int set_ece(verbatim::Qp& qp, ibv_ece&) noexcept { return refuse("set_ece", qp); }
  static int query_ece(verbatim::Qp& qp, ibv_ece&) noexcept { return refuse("query_ece", qp); }

  static constexpr auto alloc_dm = shm::alloc_dm_of_child;
  static constexpr auto dealloc_pd = SoftDomainVerbs::dealloc_pd;
  static constexpr auto dealloc_td = SoftDomainVerbs::dealloc_td;
  static constexpr auto close_xrcd = shm::close_xrcd;
  static constexpr auto dereg_mr = shm::dereg_mr;
  static constexpr auto free_buf = shm::free_inherited_buf;
  static constexpr auto free_dm = shm::free_dm;
  static constexpr auto dealloc_mw = shm::dealloc_mw;
  static constexpr auto destroy_ah = shm::destroy_ah;
  static constexpr auto destroy_comp_channel = shm::destroy_comp_channel;
  static constexpr auto destroy_comp_cntr = shm::destroy_comp_cntr;
  static constexpr auto destroy_cq = shm::destroy_cq;
  static constexpr auto destroy_srq = shm::destroy_srq;
  static constexpr auto destroy_qp = shm::destroy_qp;
  static constexpr auto detach_mcast = shm::detach_mcast;  // a queue pair in a group stays

  template <class Object>
  static int refuse(const char* verb, const Object& object) noexcept {
    if constexpr (std::derived_from<Object, verbatim::Context>) {
      tell(const_cast<Object&>(object), verb);
    } else if constexpr (requires { object.plain.context; }) {
      tell(verbatim::Context::from(object.plain.context), verb);
    } else if constexpr (requires { object->context; }) {
      tell(verbatim::Context::from(object->context), verb);
    }
    return EINVAL;
  }

  static void tell(verbatim::Context& context, const char* verb) noexcept {
    tell_if_inherited(static_cast<shm::Context&>(context), verb);
  }
};

constinit const ProviderTable inherited_table = make_provider_table<Inherited>();

// Extended polling has slots of its own in each queue.
int refuse_start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr*) noexcept {
  return Inherited::refuse("start_poll", cq);
}
int refuse_next_poll(ibv_cq_ex* cq) noexcept { return Inherited::refuse("next_poll", cq); }
void end_no_poll(ibv_cq_ex*) noexcept {}

}  // namespace

void put_out_of_service(Context& context) noexcept {
  context.table = &inherited_table;
  context.is_inherited = true;
  ibv_context& c = context.extended.context;
  c.ops.post_send = inherited_table.hot.post_send;
  c.ops.post_recv = inherited_table.hot.post_recv;
  c.ops.post_srq_recv = inherited_table.hot.post_srq_recv;
  c.ops.poll_cq = inherited_table.hot.poll_cq;
  c.ops.req_notify_cq = inherited_table.hot.req_notify_cq;
  ::pthread_mutex_init(&c.mutex, nullptr);
  context.events.part_from_parent();
}

void put_cursor_out_of_service(Cq& cq) noexcept {
  cq.extended.start_poll = refuse_start_poll;
  cq.extended.next_poll = refuse_next_poll;
  cq.extended.end_poll = end_no_poll;
}

}  // namespace verbatim::shm
