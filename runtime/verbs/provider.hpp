// SPDX-License-Identifier: BSD-2-Clause
// The plug: what a provider (a way to move bytes) gives to the runtime.
//
// A provider is a struct P with `static constexpr const char* kName`, types P::Context, P::Mr,
// P::Cq, P::Qp derived from the handles of handles.hpp, and static functions named as the slots
// below, with exactly their signatures. make_provider_table<P>() puts them into one constant table;
// a slot that P lacks gets a thunk that answers EOPNOTSUPP and says so once, so nobody tests a slot
// for null.
//
// Rules of every cold slot:
//  - returns 0 or a positive errno; writes its outputs only on success;
//  - is called from any thread, several at once, also on one object: the provider locks; but never
//    on an object that another thread destroys;
//  - handles given to it are alive and of its own context, enums and masks hold known bits, and
//    what a slot takes by reference exists: the runtime has checked;
//  - creators allocate (make_nothrow) and set *out; destroyers free (destroy_nothrow, which leaves
//    the memory to who closed a device before its objects). `uses` was 0 when they are called;
//  - destroyers of CQ, QP, SRQ first make sure that no further event can be fetched for the object,
//    then wait until the fetched ones are acknowledged (event_acks.hpp; SoftCompChannel::retire and
//    SoftEvents::retire do both), then free;
//  - modify_qp stores Qp::plain.state under the lock that orders the provider's own transitions.
// tests/support/null_provider is the shortest complete reading of this file.
#pragma once

#include <infiniband/verbs.h>
#include <verbatim/query.h>

#include <atomic>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "runtime/verbs/device_sink.hpp"
#include "runtime/verbs/failure.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// The data path, put into ibv_context.ops at open: C calling convention, C error conventions
/// (poll_cq: entries or negative; post_*: 0 or errno and *bad), nothing between it and the caller.
struct HotOps {
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad) noexcept;
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad) noexcept;
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad) noexcept;
  int (*poll_cq)(ibv_cq*, int entries, ibv_wc*) noexcept;
  int (*req_notify_cq)(ibv_cq*, int solicited_only) noexcept;
};

/// The two counts of a completion counter.
enum class CountOf : std::uint8_t { kSuccesses, kErrors };

struct ProviderTable {
  const char* name;
  HotOps hot;

  // Devices. open: the Context must be made with the given Device; close frees it.
  int (*list_devices)(DeviceSink&) noexcept;
  int (*open)(Device&, Context** out) noexcept;
  void (*close)(Context&) noexcept;
  int (*query_device)(Context&, ibv_device_attr_ex&) noexcept;
  int (*query_port)(Context&, std::uint8_t port, ibv_port_attr&) noexcept;
  /// ENODATA: the index exists but holds no GID. index and port of the entry are filled already.
  int (*query_gid)(Context&, std::uint8_t port, int index, ibv_gid_entry&) noexcept;
  /// All rows of all ports that hold a GID, at once: at most `room`, else EINVAL. A provider
  /// without it, or EOPNOTSUPP: query_gid is asked for one row after the other.
  int (*query_gid_table)(Context&, ibv_gid_entry* rows, std::size_t room,
                         std::size_t& count) noexcept;
  int (*query_pkey)(Context&, std::uint8_t port, int index, __be16&) noexcept;
  int (*query_rt_values)(Context&, ibv_values_ex&) noexcept;
  /// Blocks; EAGAIN when empty and async_fd is O_NONBLOCK; EINTR as read(2).
  int (*get_async_event)(Context&, ibv_async_event&) noexcept;

  // Protection and thread domains.
  int (*alloc_pd)(Context&, Pd** out) noexcept;
  int (*dealloc_pd)(Pd&) noexcept;
  int (*alloc_td)(Context&, const ibv_td_init_attr&, Td** out) noexcept;
  int (*dealloc_td)(Td&) noexcept;
  /// dealloc_pd frees it; `original` and `thread_domain` are filled by the runtime.
  int (*alloc_parent_domain)(Context&, const ibv_parent_domain_init_attr&, Pd** out) noexcept;
  int (*open_xrcd)(Context&, const ibv_xrcd_init_attr&, Xrcd** out) noexcept;
  int (*close_xrcd)(Xrcd&) noexcept;

  // Memory. `access` may carry bits of IBV_ACCESS_OPTIONAL_RANGE: ignore what you do not know.
  int (*reg_mr)(Pd&, void* addr, std::size_t length, std::uint64_t iova, unsigned access,
                Mr** out) noexcept;
  int (*reg_dmabuf_mr)(Pd&, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                       unsigned access, Mr** out) noexcept;
  int (*reg_dm_mr)(Pd&, ibv_dm&, std::uint64_t offset, std::size_t length, unsigned access,
                   Mr** out) noexcept;
  int (*alloc_null_mr)(Pd&, Mr** out) noexcept;
  /// `flags` says which of pd (else null), addr/length, access change. On failure the old region
  /// stays valid.
  int (*rereg_mr)(Mr&, int flags, Pd*, void* addr, std::size_t length, unsigned access) noexcept;
  int (*dereg_mr)(Mr&) noexcept;
  int (*advise_mr)(Pd&, ibv_advise_mr_advice, std::uint32_t flags, ibv_sge*,
                   std::uint32_t count) noexcept;
  /// Processes that may reach the region, and how; `count` of at most `room`.
  int (*query_mr_peers)(Mr&, vbt_mr_peer* peers, std::uint32_t room, std::uint32_t& count) noexcept;
  /// Where a range of the peer's lies in this process (verbatim/map.h).
  int (*map_remote)(Qp&, std::uint32_t rkey, std::uint64_t address, std::size_t length,
                    unsigned access, void** out) noexcept;
  int (*alloc_mw)(Pd&, ibv_mw_type, Mw** out) noexcept;
  int (*bind_mw)(Qp&, Mw&, ibv_mw_bind&) noexcept;
  int (*dealloc_mw)(Mw&) noexcept;
  int (*alloc_dm)(Context&, const ibv_alloc_dm_attr&, Dm** out) noexcept;
  int (*free_dm)(Dm&) noexcept;
  /// A new dma-buf descriptor of the device memory.
  int (*dm_export_dmabuf_fd)(Dm&, int* fd) noexcept;
  int (*alloc_dmah)(Context&, const ibv_dmah_init_attr&, ibv_dmah** out) noexcept;
  int (*dealloc_dmah)(ibv_dmah&) noexcept;
  /// reg_mr and reg_dmabuf_mr with everything that ibv_mr_init_attr can say.
  int (*reg_mr_ex)(Pd&, const ibv_mr_init_attr&, Mr** out) noexcept;
  /// Makes the ibv_buf too; free_buf frees both. A provider without it, or EOPNOTSUPP: it is given
  /// ordinary memory. Without reg_buf_mr it is registered as any memory is.
  int (*alloc_buf)(Pd&, std::size_t size, ibv_buf** out) noexcept;
  void (*free_buf)(ibv_buf&) noexcept;
  int (*reg_buf_mr)(Pd&, ibv_buf&, void* addr, std::size_t length, unsigned access,
                    Mr** out) noexcept;

  // Completion channels and queues. plain.fd of a channel is pollable; get_cq_event blocks like
  // get_async_event.
  int (*create_comp_channel)(Context&, CompChannel** out) noexcept;
  int (*destroy_comp_channel)(CompChannel&) noexcept;
  int (*get_cq_event)(CompChannel&, Cq** out) noexcept;
  /// The channel may be null. plain.cqe: what the CQ really holds. With attr.wc_flags and friends
  /// from ibv_create_cq_ex: leave extended.start_poll null if you have no extended polling.
  int (*create_cq)(Context&, const ibv_cq_init_attr_ex& attr, CompChannel*, Cq** out) noexcept;
  int (*resize_cq)(Cq&, int cqe) noexcept;
  int (*modify_cq)(Cq&, const ibv_modify_cq_attr&) noexcept;
  int (*destroy_cq)(Cq&) noexcept;

  // Completion counters. `attr` has a known type and nothing else; `ops` is not 0, and known.
  int (*query_comp_cntr_caps)(Context&, ibv_comp_cntr_caps&) noexcept;
  int (*create_comp_cntr)(Context&, const ibv_comp_cntr_init_attr&, CompCntr** out) noexcept;
  int (*destroy_comp_cntr)(CompCntr&) noexcept;
  int (*set_comp_cntr)(CompCntr&, CountOf, std::uint64_t value) noexcept;
  int (*inc_comp_cntr)(CompCntr&, CountOf, std::uint64_t amount) noexcept;
  int (*read_comp_cntr)(CompCntr&, CountOf, std::uint64_t& value) noexcept;
  /// EOPNOTSUPP: some of `ops` are not counted; EINVAL: not in RESET or INIT; EBUSY: another
  /// counter has some of them.
  int (*attach_comp_cntr)(Qp&, CompCntr&, std::uint32_t ops) noexcept;

  // Shared receive queues. Srq::attributes: what it really holds.
  int (*create_srq)(Context&, const ibv_srq_init_attr_ex&, Srq** out) noexcept;
  int (*modify_srq)(Srq&, ibv_srq_attr&, int mask) noexcept;
  int (*query_srq)(Srq&, ibv_srq_attr&) noexcept;
  int (*destroy_srq)(Srq&) noexcept;
  int (*get_srq_num)(Srq&, std::uint32_t&) noexcept;
  int (*post_srq_ops)(Srq&, ibv_ops_wr*, ibv_ops_wr** bad) noexcept;

  // Queue pairs. create_qp writes the real capacities back into attr.cap. With
  // IBV_QP_INIT_ATTR_SEND_OPS_FLAGS: leave extended.wr_start null if you have no ibv_wr_*.
  int (*create_qp)(Context&, ibv_qp_init_attr_ex& attr, Qp** out) noexcept;
  int (*open_qp)(Context&, const ibv_qp_open_attr&, Qp** out) noexcept;
  int (*modify_qp)(Qp&, ibv_qp_attr&, int mask) noexcept;
  /// attr is zeroed, init holds Qp::init.
  int (*query_qp)(Qp&, ibv_qp_attr&, int mask, ibv_qp_init_attr& init) noexcept;
  int (*destroy_qp)(Qp&) noexcept;
  int (*modify_qp_rate_limit)(Qp&, const ibv_qp_rate_limit_attr&) noexcept;
  /// 1: data arrives in order, 0: not promised. Never an errno.
  int (*query_qp_data_in_order)(Qp&, ibv_wr_opcode, std::uint32_t flags) noexcept;
  /// The facts of the failure behind a completion in error (null: of the first failure), as they
  /// were when it happened. ENODATA: none is known.
  int (*explain_qp)(Qp&, const FailedCompletion*, Failure&) noexcept;
  /// Answered by the runtime for devices that have no options: all zeros, and nothing else is
  /// taken.
  int (*set_ece)(Qp&, ibv_ece&) noexcept;
  int (*query_ece)(Qp&, ibv_ece&) noexcept;
  /// EALREADY: it is in the group; the application's call succeeds, and one detach ends it.
  int (*attach_mcast)(Qp&, const ibv_gid&, std::uint16_t lid) noexcept;
  int (*detach_mcast)(Qp&, const ibv_gid&, std::uint16_t lid) noexcept;
  int (*create_ah)(Pd&, const ibv_ah_attr&, Ah** out) noexcept;
  int (*destroy_ah)(Ah&) noexcept;
  /// The Ethernet address and VLAN (0xffff: none) behind a GID.
  int (*resolve_eth_l2)(Context&, ibv_ah_attr&, std::uint8_t* mac, std::uint16_t* vlan) noexcept;

  // Work queues, flows, counters: what Ethernet adapters have.
  int (*create_wq)(Context&, ibv_wq_init_attr&, Wq** out) noexcept;
  int (*modify_wq)(Wq&, ibv_wq_attr&) noexcept;
  int (*destroy_wq)(Wq&) noexcept;
  int (*create_rwq_ind_table)(Context&, ibv_rwq_ind_table_init_attr&, RwqIndTable** out) noexcept;
  int (*destroy_rwq_ind_table)(RwqIndTable&) noexcept;
  int (*create_flow)(Qp&, ibv_flow_attr&, Flow** out) noexcept;
  int (*destroy_flow)(Flow&) noexcept;
  int (*create_flow_action_esp)(Context&, ibv_flow_action_esp_attr&,
                                ibv_flow_action** out) noexcept;
  int (*modify_flow_action_esp)(ibv_flow_action&, ibv_flow_action_esp_attr&) noexcept;
  int (*destroy_flow_action)(ibv_flow_action&) noexcept;
  int (*create_counters)(Context&, ibv_counters_init_attr&, ibv_counters** out) noexcept;
  int (*destroy_counters)(ibv_counters&) noexcept;
  int (*attach_counters_point_flow)(ibv_counters&, ibv_counter_attach_attr&, ibv_flow*) noexcept;
  int (*read_counters)(ibv_counters&, std::uint64_t* values, std::uint32_t count,
                       std::uint32_t flags) noexcept;
};

/// Says once, in a line, that `provider` has no `verb`. The runtime's thunks call it.
[[gnu::cold]] void report_unsupported(const char* provider, const char* verb,
                                      std::atomic<bool>& said) noexcept;
[[gnu::cold]] void report_strange_ece(const char* provider, const ibv_ece& asked,
                                      std::atomic<bool>& said) noexcept;

// clang-format off
/// The least that a provider is: a name, devices that open and close, handles that derive from
/// ours.
template <class P>
concept Provider =
    requires(DeviceSink& sink, Device& device, Context** out, Context& context) {
      { P::kName } -> std::convertible_to<const char*>;
      { P::list_devices(sink) } noexcept -> std::same_as<int>;
      { P::open(device, out) } noexcept -> std::same_as<int>;
      { P::close(context) } noexcept -> std::same_as<void>;
    } &&
    std::derived_from<typename P::Context, Context> &&
    std::derived_from<typename P::Mr, Mr> &&
    std::derived_from<typename P::Cq, Cq> &&
    std::derived_from<typename P::Qp, Qp>;
// clang-format on

namespace plug {

/// A slot's name as a template argument, so that its thunk can say it.
template <std::size_t N>
struct SlotName {
  char text[N];
  consteval SlotName(const char (&name)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};

/// The errno of a slot that P lacks. EOPNOTSUPP, unless P::refuse(verb, object) knows why it does.
template <class P, SlotName Name, class Object, class... Rest>
[[gnu::cold]] inline int refuse(Object& object, Rest&...) noexcept {
  if constexpr (requires { P::refuse(Name.text, object); }) {
    return P::refuse(Name.text, object);
  } else {
    static constinit std::atomic<bool> said{false};
    report_unsupported(P::kName, Name.text, said);
    return EOPNOTSUPP;
  }
}

/// What stands in a slot that P lacks: made from the slot's type.
template <class P, SlotName Name, class Slot>
struct Missing;

template <class P, SlotName Name, class... Args>
struct Missing<P, Name, int (*)(Args...) noexcept> {
  static int call(Args... args) noexcept { return refuse<P, Name>(args...); }
};

template <class P, SlotName Name, class... Args>
struct Missing<P, Name, void (*)(Args...) noexcept> {
  static void call(Args... args) noexcept { (void)refuse<P, Name>(args...); }
};

/// Posting names the request that failed, also when all do.
template <class P, SlotName Name, class Handle, class Wr>
struct Missing<P, Name, int (*)(Handle*, Wr*, Wr**) noexcept> {
  static int call(Handle* handle, Wr* wr, Wr** bad) noexcept {
    *bad = wr;
    return refuse<P, Name>(handle);
  }
};

/// poll_cq: an error is negative.
template <class P, SlotName Name>
struct Missing<P, Name, int (*)(ibv_cq*, int, ibv_wc*) noexcept> {
  static int call(ibv_cq* cq, int, ibv_wc*) noexcept { return -refuse<P, Name>(cq); }
};

/// A provider names a slot's function by defining it, or by a constant that points at it.
template <class F>
consteval F* function_of(F* function) {
  return function;
}
template <class F>
consteval F* function_of(F* const* constant) {
  return *constant;
}

/// query_qp_data_in_order answers yes or no; not knowing is no.
template <class P, SlotName Name>
struct Missing<P, Name, int (*)(Qp&, ibv_wr_opcode, std::uint32_t) noexcept> {
  static int call(Qp&, ibv_wr_opcode, std::uint32_t) noexcept { return 0; }
};

/// explain_qp: without facts the runtime says what the status says, so nothing is missed.
template <class P, SlotName Name>
struct Missing<P, Name, int (*)(Qp&, const FailedCompletion*, Failure&) noexcept> {
  static int call(Qp&, const FailedCompletion*, Failure&) noexcept { return EOPNOTSUPP; }
};

/// alloc_buf and reg_buf_mr: the runtime does without.
template <class P>
struct Missing<P, SlotName("alloc_buf"), int (*)(Pd&, std::size_t, ibv_buf**) noexcept> {
  static int call(Pd& pd, std::size_t, ibv_buf**) noexcept {
    if constexpr (requires { P::refuse("", pd); }) return P::refuse("alloc_buf", pd);
    return EOPNOTSUPP;
  }
};
template <class P>
struct Missing<P, SlotName("reg_buf_mr"),
               int (*)(Pd&, ibv_buf&, void*, std::size_t, unsigned, Mr**) noexcept> {
  static int call(Pd& pd, ibv_buf&, void*, std::size_t, unsigned, Mr**) noexcept {
    if constexpr (requires { P::refuse("", pd); }) return P::refuse("reg_buf_mr", pd);
    return EOPNOTSUPP;
  }
};

/// query_ece: zeros are a device's words for having no options, as in the messages of the
/// connection manager.
template <class P>
struct Missing<P, SlotName("query_ece"), int (*)(Qp&, ibv_ece&) noexcept> {
  static int call(Qp&, ibv_ece& out) noexcept {
    out = {};
    return 0;
  }
};

/// set_ece: so what was queried of one such end may be set at another.
template <class P>
struct Missing<P, SlotName("set_ece"), int (*)(Qp&, ibv_ece&) noexcept> {
  static int call(Qp&, ibv_ece& asked) noexcept {
    if (asked.vendor_id == 0 && asked.options == 0 && asked.comp_mask == 0) return 0;
    static constinit std::atomic<bool> said{false};
    report_strange_ece(P::kName, asked, said);
    return EOPNOTSUPP;
  }
};

/// query_gid_table: the rows are asked for one by one instead.
template <class P, SlotName Name>
struct Missing<P, Name, int (*)(Context&, ibv_gid_entry*, std::size_t, std::size_t&) noexcept> {
  static int call(Context&, ibv_gid_entry*, std::size_t, std::size_t&) noexcept {
    return EOPNOTSUPP;
  }
};

}  // namespace plug

/// The table of P, complete at compile time. A function of P with a slot's name and another
/// signature does not compile.
template <Provider P>
consteval ProviderTable make_provider_table() {
  ProviderTable table{};
  table.name = P::kName;
#define VBT_SLOT(field, slot)                                            \
  if constexpr (requires { &P::slot; }) {                                \
    table.field = plug::function_of(&P::slot);                           \
  } else {                                                               \
    table.field = &plug::Missing<P, #slot, decltype(table.field)>::call; \
  }
  VBT_SLOT(hot.post_send, post_send)
  VBT_SLOT(hot.post_recv, post_recv)
  VBT_SLOT(hot.post_srq_recv, post_srq_recv)
  VBT_SLOT(hot.poll_cq, poll_cq)
  VBT_SLOT(hot.req_notify_cq, req_notify_cq)
#define VBT_COLD_SLOT(slot) VBT_SLOT(slot, slot)
  VBT_COLD_SLOT(list_devices)
  VBT_COLD_SLOT(open)
  VBT_COLD_SLOT(close)
  VBT_COLD_SLOT(query_device)
  VBT_COLD_SLOT(query_port)
  VBT_COLD_SLOT(query_gid)
  VBT_COLD_SLOT(query_gid_table)
  VBT_COLD_SLOT(query_pkey)
  VBT_COLD_SLOT(query_rt_values)
  VBT_COLD_SLOT(get_async_event)
  VBT_COLD_SLOT(alloc_pd)
  VBT_COLD_SLOT(dealloc_pd)
  VBT_COLD_SLOT(alloc_td)
  VBT_COLD_SLOT(dealloc_td)
  VBT_COLD_SLOT(alloc_parent_domain)
  VBT_COLD_SLOT(open_xrcd)
  VBT_COLD_SLOT(close_xrcd)
  VBT_COLD_SLOT(reg_mr)
  VBT_COLD_SLOT(reg_dmabuf_mr)
  VBT_COLD_SLOT(reg_dm_mr)
  VBT_COLD_SLOT(alloc_null_mr)
  VBT_COLD_SLOT(rereg_mr)
  VBT_COLD_SLOT(dereg_mr)
  VBT_COLD_SLOT(advise_mr)
  VBT_COLD_SLOT(query_mr_peers)
  VBT_COLD_SLOT(map_remote)
  VBT_COLD_SLOT(alloc_mw)
  VBT_COLD_SLOT(bind_mw)
  VBT_COLD_SLOT(dealloc_mw)
  VBT_COLD_SLOT(alloc_dm)
  VBT_COLD_SLOT(free_dm)
  VBT_COLD_SLOT(dm_export_dmabuf_fd)
  VBT_COLD_SLOT(alloc_dmah)
  VBT_COLD_SLOT(dealloc_dmah)
  VBT_COLD_SLOT(reg_mr_ex)
  VBT_COLD_SLOT(alloc_buf)
  VBT_COLD_SLOT(free_buf)
  VBT_COLD_SLOT(reg_buf_mr)
  VBT_COLD_SLOT(create_comp_channel)
  VBT_COLD_SLOT(destroy_comp_channel)
  VBT_COLD_SLOT(get_cq_event)
  VBT_COLD_SLOT(create_cq)
  VBT_COLD_SLOT(resize_cq)
  VBT_COLD_SLOT(modify_cq)
  VBT_COLD_SLOT(destroy_cq)
  VBT_COLD_SLOT(query_comp_cntr_caps)
  VBT_COLD_SLOT(create_comp_cntr)
  VBT_COLD_SLOT(destroy_comp_cntr)
  VBT_COLD_SLOT(set_comp_cntr)
  VBT_COLD_SLOT(inc_comp_cntr)
  VBT_COLD_SLOT(read_comp_cntr)
  VBT_COLD_SLOT(attach_comp_cntr)
  VBT_COLD_SLOT(create_srq)
  VBT_COLD_SLOT(modify_srq)
  VBT_COLD_SLOT(query_srq)
  VBT_COLD_SLOT(destroy_srq)
  VBT_COLD_SLOT(get_srq_num)
  VBT_COLD_SLOT(post_srq_ops)
  VBT_COLD_SLOT(create_qp)
  VBT_COLD_SLOT(open_qp)
  VBT_COLD_SLOT(modify_qp)
  VBT_COLD_SLOT(query_qp)
  VBT_COLD_SLOT(destroy_qp)
  VBT_COLD_SLOT(modify_qp_rate_limit)
  VBT_COLD_SLOT(query_qp_data_in_order)
  VBT_COLD_SLOT(explain_qp)
  VBT_COLD_SLOT(set_ece)
  VBT_COLD_SLOT(query_ece)
  VBT_COLD_SLOT(attach_mcast)
  VBT_COLD_SLOT(detach_mcast)
  VBT_COLD_SLOT(create_ah)
  VBT_COLD_SLOT(destroy_ah)
  VBT_COLD_SLOT(resolve_eth_l2)
  VBT_COLD_SLOT(create_wq)
  VBT_COLD_SLOT(modify_wq)
  VBT_COLD_SLOT(destroy_wq)
  VBT_COLD_SLOT(create_rwq_ind_table)
  VBT_COLD_SLOT(destroy_rwq_ind_table)
  VBT_COLD_SLOT(create_flow)
  VBT_COLD_SLOT(destroy_flow)
  VBT_COLD_SLOT(create_flow_action_esp)
  VBT_COLD_SLOT(modify_flow_action_esp)
  VBT_COLD_SLOT(destroy_flow_action)
  VBT_COLD_SLOT(create_counters)
  VBT_COLD_SLOT(destroy_counters)
  VBT_COLD_SLOT(attach_counters_point_flow)
  VBT_COLD_SLOT(read_counters)
#undef VBT_COLD_SLOT
#undef VBT_SLOT
  return table;
}

}  // namespace verbatim
