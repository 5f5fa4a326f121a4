// SPDX-License-Identifier: BSD-2-Clause
//
// Why a request failed, in a line: who is at both ends, which request it was, what was asked and
// what there was (keys, ranges, rights, lengths, times), and what to do about it.
//
//   QP 0x05d000 (RC, process 812 client) to QP 0x0a3000 (process 815 server): RDMA_WRITE, wr_id 7:
//   remote access error: rkey 0x00000305: asked REMOTE_WRITE of [0x1000, 0x1800), the region has
//   REMOTE_WRITE of [0x1000, 0x1400): it ends 1024 bytes before the request does; fix: ...
//
// Of kernel devices the line says what user space can know: both queue pairs, the peer's GID, the
// request as long as its queue still holds it, our own keys and regions, what was asked of the
// peer's memory, vendor_err and the queue pair's state; and, of the rest, that only the peer knows.
//
// The words are for people and change between versions. Each queue pair remembers the first failure
// of its sends and that of its receives, until it is reset; whatever fails after them is explained
// by them. The same line goes to the log, once for each queue pair (VERBATIM_LOG=error and above),
// unless the program wants none of it (vbt_log_failures).
//
// C and C++. Any thread may call these, but not while another destroys the queue pair. They
// allocate nothing, and may be called for a completion of long ago.
#ifndef VERBATIM_EXPLAIN_H
#define VERBATIM_EXPLAIN_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Explains a completion that ibv_poll_cq gave, or with `wc` NULL the queue pair itself: after an
/// asynchronous event, or because it is in the error state.
///
/// Returns as snprintf does: the length of the line, without a newline or the zero that ends it;
/// what does not fit into `size` bytes is cut, and text may be NULL when size is 0. Or a negative
/// errno: -EINVAL (no queue pair; a completion of another one), -ENODATA (the completion was a
/// success, or the queue pair has not failed), -EOPNOTSUPP (no completion was given, and the
/// device's provider keeps no record of failures; asked about a completion, it says what its status
/// says).
int vbt_explain(struct ibv_qp* qp, const struct ibv_wc* wc, char* text, size_t size);

/// Explains as vbt_explain does a completion of which only these two are known: of a program that
/// polls by ibv_start_poll (cq->wr_id, cq->status).
int vbt_explain_completion(struct ibv_qp* qp, uint64_t wr_id, enum ibv_wc_status status, char* text,
                           size_t size);

/// Whether the log has the line (`whether` 1, as from the beginning) or not (0): for programs that tell
/// their users themselves, or whose peers end when they like. It is explained all the same. Of
/// failures that come after the call. 0, or EINVAL: no queue pair.
int vbt_log_failures(struct ibv_qp* qp, int whether);

#ifdef __cplusplus
}
#endif

#endif  // VERBATIM_EXPLAIN_H
