// SPDX-License-Identifier: BSD-2-Clause
// Memory windows and device memory. Any thread.
#include "abi/entry/border.hpp"
#include "runtime/verbs/memory_regions.hpp"

namespace verbatim {
namespace {

ibv_mw* alloc_mw_slot(ibv_pd* pd, ibv_mw_type type) {
  return as_pointer(alloc_mw(Pd::from(pd), type));
}

int bind_mw_slot(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  return as_errno(bind_mw(Qp::from(qp), Mw::from(mw), *bind));
}

int dealloc_mw_slot(ibv_mw* mw) { return as_errno(dealloc_mw(Mw::from(mw))); }

ibv_dm* alloc_dm_slot(ibv_context* context, ibv_alloc_dm_attr* attr) {
  return as_pointer(alloc_dm(Context::from(context), *attr));
}

int free_dm_slot(ibv_dm* dm) { return as_errno(free_dm(Dm::from(dm))); }

ibv_mr* reg_dm_mr_slot(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                       unsigned access) {
  return as_pointer(reg_dm_mr(Pd::from(pd), Dm::from(dm), offset, length, access));
}

}  // namespace

void fill_window_slots(verbs_context& slots) noexcept {
  slots.context.ops.alloc_mw = alloc_mw_slot;
  slots.context.ops.bind_mw = bind_mw_slot;
  slots.context.ops.dealloc_mw = dealloc_mw_slot;
  slots.alloc_dm = alloc_dm_slot;
  slots.free_dm = free_dm_slot;
  slots.reg_dm_mr = reg_dm_mr_slot;
  slots.dm_export_dmabuf_fd = ibv_dm_export_dmabuf_fd;
}

}  // namespace verbatim

using namespace verbatim;

VBT_ENTRY int ibv_dm_export_dmabuf_fd(ibv_dm* dm) {
  const Result<int> fd = export_dm(Dm::from(dm));
  return fd.ok() ? fd.value() : as_minus_one(fd.status());
}
