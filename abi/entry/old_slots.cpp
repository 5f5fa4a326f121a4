// SPDX-License-Identifier: BSD-2-Clause
// The slots of ibv_context.ops that nobody has called through since 2007. They hold the exported
// verbs, as the types of that time had them, so that a program that still does is served; the
// three whose old shape differs have small functions of their own.
#include "abi/entry/border.hpp"

namespace verbatim {
namespace {

using OldSlot = void* (*)();

/// A function as the untyped slot that holds it. Callers know the real type.
template <class Function>
OldSlot as_old_slot(Function* function) noexcept {
  return reinterpret_cast<OldSlot>(reinterpret_cast<void (*)()>(function));
}

ibv_cq* old_create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector) {
  return ibv_create_cq(context, cqe, nullptr, channel, comp_vector);
}

/// Once told a driver that an event had come; ours learn it without.
void old_cq_event(ibv_cq*) {}
void old_async_event(ibv_async_event*) {}

}  // namespace

void fill_old_slots(ibv_context_ops& ops) noexcept {
  ops._compat_query_device = ibv_query_device;
  ops._compat_query_port = ibv_query_port;
  ops._compat_alloc_pd = as_old_slot(ibv_alloc_pd);
  ops._compat_dealloc_pd = as_old_slot(ibv_dealloc_pd);
  ops._compat_reg_mr = as_old_slot(ibv_reg_mr);
  ops._compat_rereg_mr = as_old_slot(ibv_rereg_mr);
  ops._compat_dereg_mr = as_old_slot(ibv_dereg_mr);
  ops._compat_create_cq = as_old_slot(old_create_cq);
  ops._compat_cq_event = as_old_slot(old_cq_event);
  ops._compat_resize_cq = as_old_slot(ibv_resize_cq);
  ops._compat_destroy_cq = as_old_slot(ibv_destroy_cq);
  ops._compat_create_srq = as_old_slot(ibv_create_srq);
  ops._compat_modify_srq = as_old_slot(ibv_modify_srq);
  ops._compat_query_srq = as_old_slot(ibv_query_srq);
  ops._compat_destroy_srq = as_old_slot(ibv_destroy_srq);
  ops._compat_create_qp = as_old_slot(ibv_create_qp);
  ops._compat_query_qp = as_old_slot(ibv_query_qp);
  ops._compat_modify_qp = as_old_slot(ibv_modify_qp);
  ops._compat_destroy_qp = as_old_slot(ibv_destroy_qp);
  ops._compat_create_ah = as_old_slot(ibv_create_ah);
  ops._compat_destroy_ah = as_old_slot(ibv_destroy_ah);
  ops._compat_attach_mcast = as_old_slot(ibv_attach_mcast);
  ops._compat_detach_mcast = as_old_slot(ibv_detach_mcast);
  ops._compat_async_event = as_old_slot(old_async_event);
}

}  // namespace verbatim
