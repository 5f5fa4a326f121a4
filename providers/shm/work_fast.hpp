// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_wr_*: requests built by calls. Each call stores what only it knows, in the words of
// ibv_post_send, and nothing else; ibv_wr_complete performs them as that would.
//
//   start      takes the send lock
//   operation  the next entry: opcode, address
//   setter     its bytes: copied (inline), or where they lie
//   complete   performs all entries in order; or none, when any call had something to refuse
//
// So a batch must be known to be sound before its first request is performed. What the hot calls
// build is (SENDs and WRITEs of one piece, or inline within the limit); all else makes the batch a
// general one, judged request by request.
#pragma once

#include <cerrno>

#include "providers/shm/send_fast.hpp"
#include "providers/shm/work_calls.hpp"

namespace verbatim::shm {

/// Remembers the first error.
[[gnu::cold, gnu::noinline]] void refuse_work(WorkBatch& work, int error) noexcept;
/// ibv_wr_complete of a batch with errors, with requests for the general path, or of a queue pair
/// that is not at its best. The send lock is held.
[[gnu::cold, gnu::noinline]] int complete_slowly(Qp& qp) noexcept;

/// What the setters speak of.
inline WorkEntry& current_work(Qp& qp) noexcept { return qp.work.next[-1]; }

/// nullptr: there is no room for another, and the batch fails.
[[gnu::always_inline]] inline ibv_send_wr* add_work(Qp& qp, ibv_wr_opcode opcode) noexcept {
  WorkBatch& work = qp.work;
  WorkEntry* const entry = work.next;
  if (entry == work.end) [[unlikely]] {
    refuse_work(work, ENOMEM);
    return nullptr;
  }
  work.next = entry + 1;
  ibv_send_wr& wr = entry->wr;
  wr.wr_id = qp.extended.wr_id;
  wr.num_sge = 0;
  wr.opcode = opcode;
  wr.send_flags = qp.extended.wr_flags & ~unsigned{IBV_SEND_INLINE};
  return &wr;
}

[[gnu::always_inline]] inline void set_sge(Qp& qp, std::uint32_t lkey, std::uint64_t address,
                                           std::uint32_t length) noexcept {
  ibv_send_wr& wr = current_work(qp).wr;
  *wr.sg_list = {address, length, lkey};
  wr.num_sge = 1;
}

[[gnu::always_inline]] inline void set_inline_data(Qp& qp, const void* data,
                                                   std::size_t length) noexcept {
  WorkEntry& entry = current_work(qp);
  if (length > kMaxInline) [[unlikely]]
    return refuse_work(qp.work, EINVAL);
  copy_inline(entry.inline_bytes, static_cast<const unsigned char*>(data), length);
  *entry.wr.sg_list = {reinterpret_cast<std::uint64_t>(entry.inline_bytes),
                       static_cast<std::uint32_t>(length), 0};
  entry.wr.num_sge = 1;
  entry.wr.send_flags |= IBV_SEND_INLINE;
}

template <bool kDomain>
[[gnu::always_inline]] inline int complete_work(Qp& qp) noexcept {
  WorkBatch& work = qp.work;
  const PostLock<kDomain> lock(qp, typename PostLock<kDomain>::Kept{});
  const WorkEntry* const end = work.next;
  const auto count = static_cast<std::uint32_t>(end - work.first);
  if (work.notes != 0 || !qp.fast || qp.in_send_queue() + count > qp.sq_entries) [[unlikely]]
    return complete_slowly(qp);
  work.next = work.first;
  CompletionWriter completions(*qp.send_cq);
  for (const WorkEntry* entry = work.first; entry != end; ++entry) {
    if (post_one_fast(qp, entry->wr, completions)) [[likely]]
      continue;
    completions.let_go();
    // It has room and its form is sound: nothing is left to be refused.
    (void)post_slowly_locked(qp, entry->wr);
  }
  return 0;
}

}  // namespace verbatim::shm
