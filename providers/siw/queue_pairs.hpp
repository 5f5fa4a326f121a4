// SPDX-License-Identifier: BSD-2-Clause
// Slots: queue pairs of siw. Any thread. Their connections are the connection manager's: it moves
// them to RTS and out of it (providers/rdma_cm).
#pragma once

#include "providers/siw/objects.hpp"

namespace verbatim::siw {

int create_qp(verbatim::Context& context, ibv_qp_init_attr_ex& attr, verbatim::Qp** out) noexcept;
int modify_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask) noexcept;
int query_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init) noexcept;
int destroy_qp(verbatim::Qp& qp) noexcept;

}  // namespace verbatim::siw
