// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_wr_*: what a queue pair made with send_ops_flags is built with (work_batch.hpp).
//
// The hot calls are in work_fast.hpp. Source: man ibv_wr_post, ibv_create_qp_ex.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// Before the queue pair is made: 0, or EOPNOTSUPP and why in the log.
int check_work_calls(const ibv_qp_init_attr_ex& attr) noexcept;
/// REQUIRES: check_work_calls(attr) == 0. 0 or ENOMEM; free_queues() in either case.
int wire_work_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept;

}  // namespace verbatim::shm
