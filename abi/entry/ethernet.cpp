// SPDX-License-Identifier: BSD-2-Clause
// Work queues, flow steering and counters: all of them are slots, none is exported. Any thread.
#include "runtime/verbs/ethernet.hpp"

#include "abi/entry/border.hpp"

namespace verbatim {
namespace {

ibv_wq* create_wq_slot(ibv_context* context, ibv_wq_init_attr* attr) {
  return as_pointer(create_wq(Context::from(context), *attr));
}

int modify_wq_slot(ibv_wq* wq, ibv_wq_attr* attr) {
  return as_errno(modify_wq(Wq::from(wq), *attr));
}

int destroy_wq_slot(ibv_wq* wq) { return as_errno(destroy_wq(Wq::from(wq))); }

ibv_rwq_ind_table* create_rwq_ind_table_slot(ibv_context* context,
                                             ibv_rwq_ind_table_init_attr* attr) {
  return as_pointer(create_rwq_ind_table(Context::from(context), *attr));
}

int destroy_rwq_ind_table_slot(ibv_rwq_ind_table* table) {
  return as_errno(destroy_rwq_ind_table(RwqIndTable::from(table)));
}

ibv_flow* create_flow_slot(ibv_qp* qp, ibv_flow_attr* attr) {
  return as_pointer(create_flow(Qp::from(qp), *attr));
}

int destroy_flow_slot(ibv_flow* flow) { return as_errno(destroy_flow(Flow::from(flow))); }

ibv_flow_action* create_flow_action_esp_slot(ibv_context* context, ibv_flow_action_esp_attr* attr) {
  return as_pointer(create_flow_action_esp(Context::from(context), *attr));
}

int modify_flow_action_esp_slot(ibv_flow_action* action, ibv_flow_action_esp_attr* attr) {
  return as_errno(modify_flow_action_esp(*action, *attr));
}

int destroy_flow_action_slot(ibv_flow_action* action) {
  return as_errno(destroy_flow_action(*action));
}

ibv_counters* create_counters_slot(ibv_context* context, ibv_counters_init_attr* attr) {
  return as_pointer(create_counters(Context::from(context), *attr));
}

int destroy_counters_slot(ibv_counters* counters) { return as_errno(destroy_counters(*counters)); }

int attach_counters_point_flow_slot(ibv_counters* counters, ibv_counter_attach_attr* attr,
                                    ibv_flow* flow) {
  return as_errno(attach_counters_point_flow(*counters, *attr, flow));
}

int read_counters_slot(ibv_counters* counters, std::uint64_t* values, std::uint32_t count,
                       std::uint32_t flags) {
  return as_errno(read_counters(*counters, values, count, flags));
}

}  // namespace

void fill_ethernet_slots(verbs_context& slots) noexcept {
  slots.create_wq = create_wq_slot;
  slots.modify_wq = modify_wq_slot;
  slots.destroy_wq = destroy_wq_slot;
  slots.create_rwq_ind_table = create_rwq_ind_table_slot;
  slots.destroy_rwq_ind_table = destroy_rwq_ind_table_slot;
  slots.ibv_create_flow = create_flow_slot;
  slots.ibv_destroy_flow = destroy_flow_slot;
  // Programs of 2013 look for these two where the placeholders are.
  slots.ABI_placeholder1 = reinterpret_cast<void (*)()>(create_flow_slot);
  slots.ABI_placeholder2 = reinterpret_cast<void (*)()>(destroy_flow_slot);
  slots.create_flow_action_esp = create_flow_action_esp_slot;
  slots.modify_flow_action_esp = modify_flow_action_esp_slot;
  slots.destroy_flow_action = destroy_flow_action_slot;
  slots.create_counters = create_counters_slot;
  slots.destroy_counters = destroy_counters_slot;
  slots.attach_counters_point_flow = attach_counters_point_flow_slot;
  slots.read_counters = read_counters_slot;
}

}  // namespace verbatim
