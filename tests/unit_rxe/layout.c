// SPDX-License-Identifier: BSD-2-Clause
// The numbers of providers/rxe/layout.hpp, asked of the header in the language that it is right in.
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <stddef.h>

_Static_assert(sizeof(struct rxe_dma_info) == 24 && sizeof(struct rxe_sge) == 16, "buffers");
_Static_assert(offsetof(struct rxe_dma_info, sge) == 24, "SGEs follow the head");
_Static_assert(offsetof(struct rxe_dma_info, inline_data) == 24, "and so do inline bytes");
_Static_assert(offsetof(struct rxe_dma_info, resid) == 4, "");
_Static_assert(offsetof(struct rxe_dma_info, num_sge) == 12, "");
_Static_assert(offsetof(struct rxe_dma_info, sge_offset) == 16, "");
_Static_assert(sizeof(struct rxe_send_wqe) == 208, "send element");
_Static_assert(offsetof(struct rxe_send_wqe, status) == 144, "");
_Static_assert(offsetof(struct rxe_send_wqe, state) == 148, "");
_Static_assert(offsetof(struct rxe_send_wqe, iova) == 152, "");
_Static_assert(offsetof(struct rxe_send_wqe, has_rd_atomic) == 180, "");
_Static_assert(offsetof(struct rxe_send_wqe, dma) == 184, "");
_Static_assert(sizeof(struct rxe_recv_wqe) == 40, "receive element");
_Static_assert(offsetof(struct rxe_recv_wqe, dma) == 16, "");
_Static_assert(sizeof(struct rxe_queue_buf) == 384, "ring header");
