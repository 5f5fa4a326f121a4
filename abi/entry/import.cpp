// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/imports.hpp"

#include "abi/entry/border.hpp"

using namespace verbatim;

VBT_ENTRY ibv_context* ibv_import_device(int cmd_fd) { return as_pointer(import_device(cmd_fd)); }

VBT_ENTRY ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
  return as_pointer(import_pd(Context::from(context), handle));
}
VBT_ENTRY void ibv_unimport_pd(ibv_pd* pd) { unimport_pd(Pd::from(pd)); }

VBT_ENTRY ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
  return as_pointer(import_mr(Pd::from(pd), handle));
}
VBT_ENTRY void ibv_unimport_mr(ibv_mr* mr) { unimport_mr(Mr::from(mr)); }

VBT_ENTRY ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
  return as_pointer(import_dm(Context::from(context), handle));
}
VBT_ENTRY void ibv_unimport_dm(ibv_dm* dm) { unimport_dm(Dm::from(dm)); }
