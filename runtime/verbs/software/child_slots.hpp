// SPDX-License-Identifier: BSD-2-Clause
// What a forked child may do with what it has of its parent. The objects of a provider in software
// live in the process, so a child has copies of them, whose other ends know the parent alone. Verbs
// that ask, and those that destroy, of which the list is below, work on the child's copies; every
// other answers EINVAL, as for the handle of an object that is not there, and is told of to the
// provider, which says so once.
//
//   struct Child : ChildSlots<Shm, tell> { ...slots that a child has in its own way... };
//   constinit const ProviderTable table = make_table_of_child<Shm, Child>();
//   ...in the child, by the thread that there is:   put_child_table(context, table);
#pragma once

#include <pthread.h>

#include <cerrno>
#include <concepts>

#include "runtime/verbs/provider.hpp"

namespace verbatim {

/// The refusals, for a provider's Child to derive from. `tell(context, verb)`: one was refused.
template <class P, void (*tell)(Context&, const char*) noexcept>
struct ChildSlots {
  static constexpr const char* kName = P::kName;
  using Context = typename P::Context;
  using Mr = typename P::Mr;
  using Cq = typename P::Cq;
  using Qp = typename P::Qp;

  static constexpr auto list_devices = plug::function_of(&P::list_devices);
  static constexpr auto open = plug::function_of(&P::open);
  static constexpr auto close = plug::function_of(&P::close);

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

  // Without these they would be taken for a device's that has no such options, which answers.
  static int set_ece(verbatim::Qp& qp, ibv_ece&) noexcept { return refuse("set_ece", qp); }
  static int query_ece(verbatim::Qp& qp, ibv_ece&) noexcept { return refuse("query_ece", qp); }

  /// Extended polling has slots of its own in each queue.
  static void put_cursor_out_of_service(ibv_cq_ex& cq) noexcept {
    cq.start_poll = [](ibv_cq_ex* of, ibv_poll_cq_attr*) noexcept {
      return refuse("start_poll", of);
    };
    cq.next_poll = [](ibv_cq_ex* of) noexcept { return refuse("next_poll", of); };
    cq.end_poll = [](ibv_cq_ex*) noexcept {};
  }
};

/// The slots of P that ask and destroy, but those that Child has in its own way; all others refuse.
template <class P, class Child>
consteval ProviderTable make_table_of_child() {
  ProviderTable table = make_provider_table<Child>();
#define VBT_KEEP(slot)                                       \
  if constexpr (                                             \
      requires { &P::slot; } && !requires { &Child::slot; }) \
    table.slot = plug::function_of(&P::slot);
  VBT_KEEP(query_device)
  VBT_KEEP(query_port)
  VBT_KEEP(query_gid)
  VBT_KEEP(query_pkey)
  VBT_KEEP(query_rt_values)
  VBT_KEEP(query_srq)
  VBT_KEEP(get_srq_num)
  VBT_KEEP(query_qp)
  VBT_KEEP(explain_qp)
  VBT_KEEP(query_comp_cntr_caps)
  VBT_KEEP(read_comp_cntr)
  VBT_KEEP(dealloc_pd)
  VBT_KEEP(dealloc_td)
  VBT_KEEP(close_xrcd)
  VBT_KEEP(dereg_mr)
  VBT_KEEP(free_buf)
  VBT_KEEP(free_dm)
  VBT_KEEP(dealloc_mw)
  VBT_KEEP(destroy_ah)
  VBT_KEEP(destroy_comp_channel)
  VBT_KEEP(destroy_comp_cntr)
  VBT_KEEP(destroy_cq)
  VBT_KEEP(destroy_srq)
  VBT_KEEP(destroy_qp)
  VBT_KEEP(detach_mcast)  // a queue pair in a group stays
#undef VBT_KEEP
  return table;
}

/// From here on the context's verbs are those of `table`, also the classic ones of the data path.
/// Whoever held its mutex was a thread of the parent's.
inline void put_child_table(Context& context, const ProviderTable& table) noexcept {
  context.table = &table;
  ibv_context& c = context.extended.context;
  c.ops.post_send = table.hot.post_send;
  c.ops.post_recv = table.hot.post_recv;
  c.ops.post_srq_recv = table.hot.post_srq_recv;
  c.ops.poll_cq = table.hot.poll_cq;
  c.ops.req_notify_cq = table.hot.req_notify_cq;
  ::pthread_mutex_init(&c.mutex, nullptr);
}

}  // namespace verbatim
