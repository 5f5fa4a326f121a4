// SPDX-License-Identifier: BSD-2-Clause
// Completion counters: exported, not slots. Any thread.
#include "runtime/verbs/completion_counters.hpp"

#include "abi/entry/border.hpp"
#include "abi/entry/growing.hpp"

using namespace verbatim;

VBT_ENTRY int _ibv_query_comp_cntr_caps(ibv_context* context, ibv_comp_cntr_caps* caps,
                                        std::size_t size) {
  ibv_comp_cntr_caps ours;
  const Status status = query_comp_cntr_caps(Context::from(context), ours);
  if (status.ok()) give_out(caps, size, ours);
  return as_errno(status);
}

VBT_ENTRY ibv_comp_cntr* ibv_create_comp_cntr(ibv_context* context, ibv_comp_cntr_init_attr* attr) {
  return as_pointer(create_comp_cntr(Context::from(context), *attr));
}

VBT_ENTRY int ibv_destroy_comp_cntr(ibv_comp_cntr* counter) {
  return as_errno(destroy_comp_cntr(CompCntr::from(counter)));
}

VBT_ENTRY int ibv_set_comp_cntr(ibv_comp_cntr* counter, std::uint64_t value) {
  return as_errno(set_comp_cntr(CompCntr::from(counter), CountOf::kSuccesses, value));
}

VBT_ENTRY int ibv_set_err_comp_cntr(ibv_comp_cntr* counter, std::uint64_t value) {
  return as_errno(set_comp_cntr(CompCntr::from(counter), CountOf::kErrors, value));
}

VBT_ENTRY int ibv_inc_comp_cntr(ibv_comp_cntr* counter, std::uint64_t amount) {
  return as_errno(inc_comp_cntr(CompCntr::from(counter), CountOf::kSuccesses, amount));
}

VBT_ENTRY int ibv_inc_err_comp_cntr(ibv_comp_cntr* counter, std::uint64_t amount) {
  return as_errno(inc_comp_cntr(CompCntr::from(counter), CountOf::kErrors, amount));
}

VBT_ENTRY int ibv_read_comp_cntr(ibv_comp_cntr* counter, std::uint64_t* value) {
  return as_errno(read_comp_cntr(CompCntr::from(counter), CountOf::kSuccesses, *value));
}

VBT_ENTRY int ibv_read_err_comp_cntr(ibv_comp_cntr* counter, std::uint64_t* value) {
  return as_errno(read_comp_cntr(CompCntr::from(counter), CountOf::kErrors, *value));
}

VBT_ENTRY int ibv_qp_attach_comp_cntr(ibv_qp* qp, ibv_comp_cntr* counter,
                                      ibv_qp_attach_comp_cntr_attr* attr) {
  return as_errno(attach_comp_cntr(Qp::from(qp), CompCntr::from(counter), *attr));
}
