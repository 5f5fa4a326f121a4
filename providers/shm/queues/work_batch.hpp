// SPDX-License-Identifier: BSD-2-Clause
//
// What a queue pair made with send_ops_flags has beside others: entries for the requests being
// built between ibv_wr_start and ibv_wr_complete. An entry that the hot calls fill is in the shape
// that the last call performs; beside each lies a general request, in the words of ibv_post_send
// (built_requests.hpp), for what those calls cannot say.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "runtime/base/cache_line.hpp"

namespace verbatim::shm {

inline constexpr std::uint32_t kMaxInline = 256;

/// A request being built. What the hot calls say of it stands here; all else in `general_work()`.
struct alignas(kCacheLine) WorkEntry {
  std::uint64_t wr_id;
  std::uint64_t address;            ///< WRITE: of the peer's memory; SEND: its header (send_header)
  ibv_sge piece;                    ///< its length; kPiece: and where its bytes lie
  std::uint32_t rkey;               ///< WRITE
  std::uint32_t how;                ///< ibv_send_flags, and those below
  unsigned char bytes[kMaxInline];  ///< its bytes, unless kPiece or kListed

  static constexpr std::uint32_t kFlags = 0xff & ~unsigned{IBV_SEND_INLINE};
  /// What it is: one of these; kGeneral is what the general request says.
  static constexpr std::uint32_t kSend = 0x100, kWrite = 0x200, kGeneral = 0x400;
  /// Where its bytes are, if not here: where one SGE, or those of the general request, say.
  static constexpr std::uint32_t kPiece = 0x800, kListed = 0x1000;
};

/// Requests being built between ibv_wr_start and ibv_wr_complete (work_calls.hpp); guarded by the
/// send lock, which the one holds for the other. All null in a queue pair that was not made for it.
struct WorkBatch {
  WorkEntry* next = nullptr;       ///< behind the last one built
  WorkEntry* first = nullptr;      ///< one lies before it, for setters that come too early
  WorkEntry* end = nullptr;        ///< as many as the send queue has entries; one more lies there
  ibv_send_wr* general = nullptr;  ///< behind the entries: each in the words of ibv_post_send
  /// Those of each entry with a list, as many as the queue pair takes.
  ibv_sge* sges = nullptr;
  std::uint32_t always = 0;  ///< ibv_send_flags of all requests
  /// The first error, and kGeneral when some request must be judged like a posted one.
  std::uint32_t notes = 0;

  static constexpr std::uint32_t kGeneral = 1u << 31;
};

}  // namespace verbatim::shm
