// SPDX-License-Identifier: BSD-2-Clause
//
// What a queue pair made with send_ops_flags has beside others: entries for the requests being
// built between ibv_wr_start and ibv_wr_complete. An entry that the hot calls fill is in the shape
// that the last call performs; beside each lies a general request, in the words of ibv_post_send,
// for what those calls cannot say. FLUSH and ATOMIC_WRITE, for which ibv_send_wr has no words,
// stand there as
//
//   ATOMIC_WRITE  wr.rdma, and its 8 bytes inline
//   FLUSH         wr.atomic: compare_add = length, swap = type | level << 8
//
// The hot calls are in work_fast.hpp. Source: man ibv_wr_post, ibv_create_qp_ex.
#pragma once

#include "providers/shm/qp.hpp"

namespace verbatim::shm {

/// A request being built. What the hot calls say of it stands here; all else in `general_work()`.
struct alignas(kCacheLine) WorkEntry {
  std::uint64_t wr_id;
  std::uint64_t address;  ///< WRITE: of the peer's memory; SEND: its header (send_header)
  std::uint64_t from;     ///< kPiece: where its bytes lie
  std::uint32_t lkey;     ///< kPiece
  std::uint32_t rkey;     ///< WRITE
  std::uint32_t how;      ///< ibv_send_flags, and those below
  std::uint32_t length;
  unsigned char bytes[kMaxInline];  ///< its bytes, unless kPiece or kListed

  static constexpr std::uint32_t kFlags = 0xff & ~unsigned{IBV_SEND_INLINE};
  /// What it is: one of these; kGeneral is what the general request says.
  static constexpr std::uint32_t kSend = 0x100, kWrite = 0x200, kGeneral = 0x400;
  /// Where its bytes are, if not here: where one SGE, or those of the general request, say.
  static constexpr std::uint32_t kPiece = 0x800, kListed = 0x1000;
};

/// Before the queue pair is made: 0, or EOPNOTSUPP and why in the log.
int check_work_calls(const ibv_qp_init_attr_ex& attr) noexcept;
/// REQUIRES: check_work_calls(attr) == 0. 0 or ENOMEM; free_work() in either case.
int wire_work_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept;
void free_work(Qp& qp) noexcept;

}  // namespace verbatim::shm
