// SPDX-License-Identifier: BSD-2-Clause
// What Ethernet adapters add: work queues and their indirection tables, flow steering, counters.
// The runtime keeps who depends on whom; everything else is the provider's. Any thread.
#pragma once

#include <cstdint>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

Result<Wq*> create_wq(Context& context, ibv_wq_init_attr& attr) noexcept;
Status modify_wq(Wq& wq, ibv_wq_attr& attr) noexcept;
Status destroy_wq(Wq& wq) noexcept;
Result<RwqIndTable*> create_rwq_ind_table(Context& context,
                                          ibv_rwq_ind_table_init_attr& attr) noexcept;
Status destroy_rwq_ind_table(RwqIndTable& table) noexcept;

Result<Flow*> create_flow(Qp& qp, ibv_flow_attr& attr) noexcept;
Status destroy_flow(Flow& flow) noexcept;
Result<ibv_flow_action*> create_flow_action_esp(Context& context,
                                                ibv_flow_action_esp_attr& attr) noexcept;
Status modify_flow_action_esp(ibv_flow_action& action, ibv_flow_action_esp_attr& attr) noexcept;
Status destroy_flow_action(ibv_flow_action& action) noexcept;

Result<ibv_counters*> create_counters(Context& context, ibv_counters_init_attr& attr) noexcept;
Status destroy_counters(ibv_counters& counters) noexcept;
Status attach_counters_point_flow(ibv_counters& counters, ibv_counter_attach_attr& attr,
                                  ibv_flow* flow) noexcept;
Status read_counters(ibv_counters& counters, std::uint64_t* values, std::uint32_t count,
                     std::uint32_t flags) noexcept;

}  // namespace verbatim
