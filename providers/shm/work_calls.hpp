// SPDX-License-Identifier: BSD-2-Clause
//
// What a queue pair made with send_ops_flags has beside others: entries for the requests being
// built between ibv_wr_start and ibv_wr_complete. The hot calls are in work_fast.hpp. Source: man
// ibv_wr_post, ibv_create_qp_ex.
#pragma once

#include "providers/shm/qp.hpp"

namespace verbatim::shm {

/// A request being built, in the words of ibv_post_send; FLUSH and ATOMIC_WRITE, for which
/// ibv_send_wr has no words, stand there as
///   ATOMIC_WRITE  wr.rdma, and its 8 bytes inline
///   FLUSH         wr.atomic: compare_add = length, swap = type | level << 8
struct alignas(kCacheLine) WorkEntry {
  ibv_send_wr wr;               ///< its sg_list is always this entry's
  unsigned char* inline_bytes;  ///< kMaxInline of them
};

/// Before the queue pair is made: 0, or EOPNOTSUPP and why in the log.
int check_work_calls(const ibv_qp_init_attr_ex& attr) noexcept;
/// REQUIRES: check_work_calls(attr) == 0. 0 or ENOMEM; free_work() in either case.
int wire_work_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept;
void free_work(Qp& qp) noexcept;

}  // namespace verbatim::shm
