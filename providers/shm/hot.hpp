// SPDX-License-Identifier: BSD-2-Clause
//
// The slots of the data path.
#pragma once

#include <infiniband/verbs.h>

namespace verbatim::shm {

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept;
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;
int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) noexcept;

/// Of queues without timestamps; the slots of those with them are in cursor.cpp.
int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) noexcept;
int next_poll(ibv_cq_ex* cq) noexcept;
void end_poll(ibv_cq_ex* cq) noexcept;

}  // namespace verbatim::shm
