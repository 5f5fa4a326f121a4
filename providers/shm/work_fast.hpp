// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_wr_*: requests built by calls. Each call finds out at once what only it knows (where a WRITE
// goes, where its bytes lie), so ibv_wr_complete has nothing left to do for a small request but to
// copy and to publish.
//
//   start      takes the send lock; the keys looked up from here on hold until it is let go
//   operation  the next entry: opcode, address, a WRITE's destination
//   setter     its bytes, copied (inline) or looked up (one SGE)
//   complete   performs all entries in order; or none, when any call had something to refuse
//
// What cannot be done so (no receive posted, unmapped memory, READ, lists ...) is an ibv_send_wr
// for post_slowly() like any other.
#pragma once

#include <cerrno>

#include "providers/shm/send_fast.hpp"
#include "providers/shm/work_calls.hpp"

namespace verbatim::shm {

/// Remembers the first error.
[[gnu::cold, gnu::noinline]] void refuse_work(WorkBatch& work, int error) noexcept;
/// ibv_wr_complete of a batch with errors, with requests for the general path, or of a queue pair
/// that is not at its best. The send lock is held.
[[gnu::cold, gnu::noinline]] int complete_slowly(Qp& qp, SendLock& lock) noexcept;
/// A SEND or WRITE of up to kFastWriteBytes.
[[gnu::noinline]] void copy_long(unsigned char* to, const unsigned char* from,
                                 std::size_t bytes) noexcept;

[[gnu::always_inline]] inline WorkEntry& add_work(Qp& qp, ibv_wr_opcode opcode) noexcept {
  WorkBatch& work = *qp.work;
  WorkEntry& entry = *work.next;
  if (&entry == work.end) [[unlikely]]
    refuse_work(work, ENOMEM);  // the entry at the end takes what nobody will look at
  else
    work.next = &entry + 1;
  work.current = &entry;
  entry.wr.wr_id = qp.extended.wr_id;
  entry.wr.sg_list = &entry.sge;
  entry.wr.num_sge = 0;
  entry.wr.opcode = opcode;
  entry.wr.send_flags = qp.extended.wr_flags & ~unsigned{IBV_SEND_INLINE};
  entry.from = nullptr;
  return entry;
}

[[gnu::always_inline]] inline void add_send(Qp& qp, ibv_wr_opcode opcode, __be32 imm) noexcept {
  WorkEntry& entry = add_work(qp, opcode);
  entry.wr.imm_data = imm;
  entry.to = nullptr;
  entry.room = Slot::kInlineBytes;
}

[[gnu::always_inline]] inline void add_write(Qp& qp, std::uint32_t rkey,
                                             std::uint64_t address) noexcept {
  WorkEntry& entry = add_work(qp, IBV_WR_RDMA_WRITE);
  entry.wr.wr.rdma = {address, rkey};
  entry.room = kNoRoom;
  if (!qp.fast || (peek(qp.remote->access) & IBV_ACCESS_REMOTE_WRITE) == 0 || rkey == 0)
      [[unlikely]]
    return;
  const WriteTarget& target = qp.write_target;
  if (rkey != target.rkey || target.serial->load(std::memory_order_acquire) != target.serial_seen)
      [[unlikely]] {
    if (!find_write_target(qp, rkey)) return;
  }
  const std::uint64_t offset = address - target.iova;
  if (offset > target.length) [[unlikely]]
    return;
  const std::uint64_t room = target.length - offset;
  entry.to = target.base + offset;
  entry.room = room < kFastWriteBytes ? static_cast<std::int64_t>(room) : kFastWriteBytes;
}

/// For everything that takes the general path.
[[gnu::always_inline]] inline WorkEntry& add_general(Qp& qp, ibv_wr_opcode opcode) noexcept {
  WorkEntry& entry = add_work(qp, opcode);
  qp.work->is_general = true;
  entry.room = kNoRoom;
  return entry;
}

[[gnu::always_inline]] inline void set_sge(Qp& qp, std::uint32_t lkey, std::uint64_t address,
                                           std::uint32_t length) noexcept {
  WorkEntry& entry = *qp.work->current;
  entry.sge = {address, length, lkey};
  entry.wr.num_sge = 1;
  if (static_cast<std::int64_t>(length) <= entry.room)
    (void)find_local_bytes(qp.keys(), lkey, address, length, 0, entry.from);
}

[[gnu::always_inline]] inline void set_inline_data(Qp& qp, const void* data,
                                                   std::size_t length) noexcept {
  WorkBatch& work = *qp.work;
  WorkEntry& entry = *work.current;
  if (length > kMaxInline) [[unlikely]]
    return refuse_work(work, EINVAL);
  unsigned char* const bytes = entry.inline_bytes;
  copy_inline(bytes, static_cast<const unsigned char*>(data), length);
  entry.sge = {reinterpret_cast<std::uint64_t>(bytes), static_cast<std::uint32_t>(length), 0};
  entry.wr.num_sge = 1;
  entry.wr.send_flags |= IBV_SEND_INLINE;
  if (static_cast<std::int64_t>(length) <= entry.room) entry.from = bytes;
}

[[gnu::always_inline]] inline bool send_entry(Qp& qp, const WorkEntry& entry) noexcept {
  if (qp.credits == nullptr) [[unlikely]]
    return send_shared_fast(qp, entry.wr,
                            entry.wr.opcode == IBV_WR_SEND_WITH_IMM ? header::kImmediate : 0);
  std::uint32_t flags = entry.wr.opcode == IBV_WR_SEND_WITH_IMM ? header::kImmediate : 0;
  if ((entry.wr.send_flags & IBV_SEND_SOLICITED) != 0) flags |= header::kSolicited;
  return publish_small(qp, entry.from, entry.sge.length, flags, entry.wr.imm_data);
}

/// Only SENDs and WRITEs have bytes that were looked up.
[[gnu::always_inline]] inline bool perform_entry(Qp& qp, const WorkEntry& entry) noexcept {
  if (!qp.fast || entry.from == nullptr) [[unlikely]]
    return false;
  if (entry.wr.opcode != IBV_WR_RDMA_WRITE) return send_entry(qp, entry);
  if (entry.sge.length <= 64)
    copy_small(entry.to, entry.from, entry.sge.length);
  else
    copy_long(entry.to, entry.from, entry.sge.length);
  return true;
}

[[gnu::always_inline]] inline void start_work(Qp& qp) noexcept {
  WorkBatch& work = *qp.work;
  SendLock lock(qp, SendLock::As::kUser);
  work.next = work.first;
  work.error = 0;
  work.is_general = false;
  work.lock_value = lock.keep();
}

[[gnu::always_inline]] inline int complete_work(Qp& qp) noexcept {
  WorkBatch& work = *qp.work;
  SendLock lock(qp, work.lock_value);
  const auto count = static_cast<std::uint32_t>(work.next - work.first);
  // The peer's half may have left at any time; our odd active word makes it wait for us from here
  // on.
  if (work.error != 0 || work.is_general || !qp.fast ||
      qp.sq_next + count - qp.sq_polled.load(std::memory_order_relaxed) > qp.sq_entries ||
      qp.remote->accepts.load(std::memory_order_acquire) != qp.remote_session) [[unlikely]]
    return complete_slowly(qp, lock);
  CompletionWriter completions(*qp.send_cq);
  for (const WorkEntry* entry = work.first; entry != work.next; ++entry) {
    if (!perform_entry(qp, *entry)) [[unlikely]] {
      completions.let_go();
      // It has room and its form was judged by the calls: nothing is left to be refused.
      (void)post_slowly(qp, lock, entry->wr);
      continue;
    }
    const std::uint32_t sq_index = qp.sq_next++;
    if ((entry->wr.send_flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all) {
      const std::uint16_t opcode =
          entry->wr.opcode == IBV_WR_RDMA_WRITE ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
      completions.push({entry->wr.wr_id, &qp, 0, sq_index, opcode, IBV_WC_SUCCESS, true, 0});
    }
  }
  return 0;
}

}  // namespace verbatim::shm
