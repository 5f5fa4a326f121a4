// SPDX-License-Identifier: BSD-2-Clause
//
// What a queue pair made with send_ops_flags has beside others: the requests being built between
// ibv_wr_start and ibv_wr_complete, guarded by the send lock, which the one holds for the other.
// The hot calls are in work_fast.hpp. Source: man ibv_wr_post, ibv_create_qp_ex.
#pragma once

#include "providers/shm/qp.hpp"

namespace verbatim::shm {

/// Of a request that takes the general path: no bytes fit.
inline constexpr std::int64_t kNoRoom = -1;

/// A request being built. `wr` is all of it, in the words of ibv_post_send; FLUSH and ATOMIC_WRITE,
/// for which ibv_send_wr has no words, stand there as
///   ATOMIC_WRITE  wr.rdma, and its 8 bytes inline
///   FLUSH         wr.atomic: compare_add = length, swap = type | level << 8
struct alignas(kCacheLine) WorkEntry {
  ibv_sge sge;
  unsigned char* to;          ///< a WRITE's destination in our address space
  const unsigned char* from;  ///< its bytes, looked up; nullptr: takes the general path
  std::int64_t room;          ///< bytes that the fast path may move for it
  unsigned char* inline_bytes;
  ibv_send_wr wr;
};

struct WorkBatch {
  std::uint64_t lock_value = 0;  ///< what the send lock needs to be let go
  WorkEntry* first = nullptr;
  WorkEntry* next = nullptr;     ///< behind the last one built
  WorkEntry* end = nullptr;      ///< as many as the send queue has entries; one more lies there
  WorkEntry* current = nullptr;  ///< what the setters speak of
  int error = 0;                 ///< the first one
  bool is_general = false;       ///< some request must be judged like a posted one
  unsigned char* inline_bytes = nullptr;
  ibv_sge* lists = nullptr;  ///< max_send_sge for each entry
};

/// Before the queue pair is made: 0, or EOPNOTSUPP and why in the log.
int check_work_calls(const ibv_qp_init_attr_ex& attr) noexcept;
/// REQUIRES: check_work_calls(attr) == 0. 0 or ENOMEM; free_work() in either case.
int wire_work_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept;
void free_work(Qp& qp) noexcept;

}  // namespace verbatim::shm
