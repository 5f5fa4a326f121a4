// SPDX-License-Identifier: BSD-2-Clause
// Protection, thread, parent and XRC domains. Any thread.
#include "abi/entry/border.hpp"
#include "runtime/verbs/domains.hpp"

namespace verbatim {
namespace {

ibv_td* alloc_td_slot(ibv_context* context, ibv_td_init_attr* attr) {
  return as_pointer(alloc_td(Context::from(context), *attr));
}

int dealloc_td_slot(ibv_td* td) { return as_errno(dealloc_td(Td::from(td))); }

ibv_pd* alloc_parent_domain_slot(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  return as_pointer(alloc_parent_domain(Context::from(context), *attr));
}

ibv_xrcd* open_xrcd_slot(ibv_context* context, ibv_xrcd_init_attr* attr) {
  return as_pointer(open_xrcd(Context::from(context), *attr));
}

int close_xrcd_slot(ibv_xrcd* xrcd) { return as_errno(close_xrcd(Xrcd::from(xrcd))); }

}  // namespace

void fill_domain_slots(verbs_context& slots) noexcept {
  slots.alloc_td = alloc_td_slot;
  slots.dealloc_td = dealloc_td_slot;
  slots.alloc_parent_domain = alloc_parent_domain_slot;
  slots.open_xrcd = open_xrcd_slot;
  slots.close_xrcd = close_xrcd_slot;
}

}  // namespace verbatim

using namespace verbatim;

VBT_ENTRY ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return as_pointer(alloc_pd(Context::from(context)));
}

VBT_ENTRY int ibv_dealloc_pd(ibv_pd* pd) { return as_errno(dealloc_pd(Pd::from(pd))); }
