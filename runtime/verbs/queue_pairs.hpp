// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs: making, changing, asking, destroying. Posting goes past the runtime, straight to the
// provider. The state machine is the provider's (software/qp_states or a kernel). Any thread.
#pragma once

#include <cstdint>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// On success attr.cap holds the real capacities; on failure attr is as it was.
Result<Qp*> create_qp(Context& context, ibv_qp_init_attr_ex& attr) noexcept;
Result<Qp*> open_qp(Context& context, const ibv_qp_open_attr& attr) noexcept;
Status modify_qp(Qp& qp, ibv_qp_attr& attr, int mask) noexcept;
Status query_qp(Qp& qp, ibv_qp_attr& out, int mask, ibv_qp_init_attr& init) noexcept;
/// Waits until all delivered events are acknowledged.
Status destroy_qp(Qp& qp) noexcept;

Status modify_qp_rate_limit(Qp& qp, const ibv_qp_rate_limit_attr& attr) noexcept;
[[nodiscard]] int query_qp_data_in_order(Qp& qp, ibv_wr_opcode op, std::uint32_t flags) noexcept;
Status set_ece(Qp& qp, ibv_ece& ece) noexcept;
Status query_ece(Qp& qp, ibv_ece& out) noexcept;

Status attach_mcast(Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept;
Status detach_mcast(Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept;
/// Detaches it from each that it is in.
void leave_groups(Qp& qp) noexcept;

}  // namespace verbatim
