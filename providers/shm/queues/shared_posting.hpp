// SPDX-License-Identifier: BSD-2-Clause
//
// Posting receives that are shared, and word of them for messages that wait.
#pragma once

#include "providers/shm/queues/srq.hpp"

namespace verbatim::shm {

/// ibv_post_srq_recv.
int post_shared(Srq& srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;

// The plug's slot.
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;

}  // namespace verbatim::shm
