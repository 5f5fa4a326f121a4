// SPDX-License-Identifier: BSD-2-Clause
// rxe's data path: the slots of HotOps. Any thread. Posting to a send queue costs one system call
// for each list (the doorbell), all else none, except arming (a command).
#pragma once

#include <infiniband/verbs.h>

#include "runtime/verbs/handles.hpp"

namespace verbatim::rxe {

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) noexcept;
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept;
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept;
int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) noexcept;

/// The cold slot of ibv_bind_mw: a request like any other, for a window of type 1.
int bind_mw(verbatim::Qp& qp, Mw& mw, ibv_mw_bind& bind) noexcept;

}  // namespace verbatim::rxe
