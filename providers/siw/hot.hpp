// SPDX-License-Identifier: BSD-2-Clause
// siw's data path: the slots of HotOps. Any thread. Posting to a send queue costs one system call
// for each list (the doorbell), in which the kernel sends; all else none, arming included.
#pragma once

#include <infiniband/verbs.h>

namespace verbatim::siw {

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) noexcept;
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept;
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept;
int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) noexcept;
int req_notify_cq(ibv_cq* cq, int solicited_only) noexcept;

}  // namespace verbatim::siw
