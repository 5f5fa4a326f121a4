// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_wr_*: requests built by calls. Each call stores what only it knows in the request's entry,
// and nothing else; ibv_wr_complete performs the entries as ibv_post_send would.
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

#include "providers/shm/calls/work_calls.hpp"
#include "providers/shm/transfer/send_fast.hpp"

namespace verbatim::shm {

/// Remembers the first error.
[[gnu::cold, gnu::noinline]] void refuse_work(WorkBatch& work, int error) noexcept;
[[gnu::cold, gnu::noinline]] void refuse_long_inline(Qp& qp, std::uint64_t bytes) noexcept;
/// ibv_wr_complete of a batch with errors, with requests for the general path, or of a queue pair
/// that is not at its best. The send lock is held.
[[gnu::cold, gnu::noinline]] int complete_slowly(Qp& qp) noexcept;
/// Performs one request of a sound batch the general way. The send lock is held.
[[gnu::cold, gnu::noinline]] void perform_slowly(Qp& qp, WorkEntry& entry) noexcept;
/// A SEND to a queue pair whose receives are shared. False: it takes the general way.
[[gnu::noinline]] bool send_shared_work(Qp& qp, WorkEntry& entry) noexcept;
/// The request in the words of ibv_post_send, which stand until the next batch.
ibv_send_wr& in_post_words(Qp& qp, WorkEntry& entry) noexcept;

/// What the setters speak of.
inline WorkEntry& current_work(Qp& qp) noexcept { return qp.work.next[-1]; }

/// nullptr: there is no room for another, and the batch fails.
[[gnu::always_inline]] inline WorkEntry* add_work(Qp& qp, std::uint32_t kind) noexcept {
  WorkBatch& work = qp.work;
  WorkEntry* const entry = work.next;
  if (entry == work.end) [[unlikely]] {
    refuse_work(work, ENOMEM);
    return nullptr;
  }
  work.next = entry + 1;
  entry->wr_id = qp.extended.wr_id;
  entry->how = (qp.extended.wr_flags & WorkEntry::kFlags) | work.always | kind;
  entry->piece.length = 0;
  return entry;
}

[[gnu::always_inline]] inline void add_send(Qp& qp, std::uint32_t flags, __be32 imm) noexcept {
  WorkEntry* const entry = add_work(qp, WorkEntry::kSend);
  if (entry == nullptr) [[unlikely]]
    return;
  entry->address = send_header(flags, qp.extended.wr_flags, imm);
}

[[gnu::always_inline]] inline void add_write(Qp& qp, std::uint32_t rkey,
                                             std::uint64_t address) noexcept {
  WorkEntry* const entry = add_work(qp, WorkEntry::kWrite);
  if (entry == nullptr) [[unlikely]]
    return;
  entry->address = address;
  entry->rkey = rkey;
}

[[gnu::always_inline]] inline void set_sge(Qp& qp, std::uint32_t lkey, std::uint64_t address,
                                           std::uint32_t length) noexcept {
  WorkEntry& entry = current_work(qp);
  entry.how |= WorkEntry::kPiece;
  entry.piece.length = length;
  entry.piece.lkey = lkey;
  entry.piece.addr = address;
}

[[gnu::always_inline]] inline void set_inline_data(Qp& qp, const void* data,
                                                   std::size_t length) noexcept {
  WorkEntry& entry = current_work(qp);
  const auto* const from = static_cast<const unsigned char*>(data);
  if (length <= 64) [[likely]]
    copy_small(entry.bytes, from, length);
  else if (length <= kMaxInline)
    copy_inline(entry.bytes, from, length);
  else
    return refuse_long_inline(qp, length);
  entry.piece.length = static_cast<std::uint32_t>(length);
}

/// A built request's one piece.
struct BuiltPiece {
  const Qp& qp;
  const WorkEntry& entry;

  [[gnu::always_inline]] bool find(const unsigned char*& from) const noexcept {
    from = entry.bytes;
    if ((entry.how & WorkEntry::kPiece) == 0) [[likely]]
      return true;
    return entry.piece.length <= kFastWriteBytes &&
           find_local_bytes(qp.keys(), entry.piece.lkey, entry.piece.addr, entry.piece.length, 0,
                            from);
  }
  std::uint64_t header() const noexcept { return entry.address; }
};

/// The same of one that is known to be inline: no key is looked up, which would take registers that
/// the shortest way does not have to save.
struct BuiltInline {
  const WorkEntry& entry;

  [[gnu::always_inline]] bool find(const unsigned char*& from) const noexcept {
    from = entry.bytes;
    return true;
  }
  std::uint64_t header() const noexcept { return entry.address; }
};

/// Performs WRITEs from `entry` on, all with its key. What ends the run is returned: an entry that
/// is none, or that takes the general way.
[[gnu::always_inline]] inline WorkEntry* run_writes(Qp& qp, WorkEntry* entry,
                                                    const WorkEntry* end) noexcept {
  const std::uint32_t rkey = entry->rkey;
  if (!Writes::find(qp, rkey)) [[unlikely]]
    return entry;
  const Writes writes(qp.direct.write);
  std::uint64_t bytes = 0;
  do {
    if (!writes.put(entry->address, entry->piece.length, BuiltPiece{qp, *entry})) [[unlikely]]
      break;
    bytes += entry->piece.length;
    ++entry;
  } while (entry != end && (entry->how & WorkEntry::kWrite) != 0 && entry->rkey == rkey);
  qp.count_sent(bytes);
  return entry;
}

/// May the two, of which the first one is a SEND, share a slot?
[[gnu::always_inline]] inline bool shares_slot(const WorkEntry* entry, const WorkEntry* next,
                                               const WorkEntry* end) noexcept {
  // A SEND's header is all that its flags ask for.
  return next != end && (next->how & WorkEntry::kWrite) == 0 &&
         (entry->address | next->address) == 0 && entry->piece.length == next->piece.length;
}

/// The same of SENDs.
[[gnu::always_inline]] inline WorkEntry* run_sends(Qp& qp, WorkEntry* entry,
                                                   const WorkEntry* end) noexcept {
  if (qp.link.credits == nullptr) [[unlikely]]
    return send_shared_work(qp, *entry) ? entry + 1 : entry;
  Sends sends(qp);
  std::uint64_t bytes = 0;
  std::uint32_t any = 0;
  do {
    WorkEntry* const first = entry;
    if (first->piece.length > Slot::kInlineBytes) {
      sends.put_back(qp);
      const unsigned char* from;
      const bool is_put = BuiltPiece{qp, *first}.find(from) &&
                          put_long(qp, first->piece.length, from, first->address);
      sends = Sends(qp);
      if (!is_put) [[unlikely]]
        break;
      any |= first->how;
      bytes += first->piece.length;
      ++entry;
      continue;
    }
    const std::uint64_t most =
        sends.most_in_slot(qp, first->piece.length, shares_slot(first, first + 1, end));
    if (most == 0) [[unlikely]]
      break;
    const std::uint32_t count = sends.put_some(
        first->piece.length, most,
        [&](const unsigned char*& from) {
          return BuiltPiece{qp, *entry}.find(from);
        },
        [&] {
          any |= entry->how;
          ++entry;
          return shares_slot(entry - 1, entry, end);
        },
        [&] { return first->address; });
    if (count == 0) [[unlikely]]
      break;
    bytes += std::uint64_t{count} * first->piece.length;
  } while (entry != end && (entry->how & WorkEntry::kWrite) == 0);
  qp.count_sent(bytes);
  sends.put_back(qp);
  if (any != 0 && must_ring(qp)) [[unlikely]]
    ring_peer(qp, (any & IBV_SEND_SOLICITED) != 0);
  return entry;
}

/// Performs entries up to the first that takes the general way, which it returns, and completes
/// them. One for all locks: it is long.
[[gnu::noinline]] inline WorkEntry* perform_run(Qp& qp, WorkEntry* entry,
                                                const WorkEntry* end) noexcept {
  if (!is_ready(qp)) [[unlikely]]
    return entry;
  WorkEntry* done = entry;
  while (entry != end) {
    WorkEntry* const behind = (entry->how & WorkEntry::kWrite) != 0 ? run_writes(qp, entry, end)
                                                                    : run_sends(qp, entry, end);
    if (behind == entry) [[unlikely]]
      break;
    entry = behind;
  }
  std::uint32_t sq_index = qp.take_places(static_cast<std::uint32_t>(entry - done));
  CompletionWriter completions(*qp.send_cq);
  for (; done != entry; ++done, ++sq_index) {
    if ((done->how & IBV_SEND_SIGNALED) == 0) continue;
    const auto opcode = static_cast<std::uint16_t>(
        (done->how & WorkEntry::kWrite) != 0 ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
    completions.push({done->wr_id, &qp, 0, sq_index, opcode, IBV_WC_SUCCESS, true, 0});
  }
  return entry;
}

/// ibv_wr_complete of any batch. The send lock is held.
template <bool kDomain>
[[gnu::always_inline]] inline int complete_work(Qp& qp) noexcept {
  WorkBatch& work = qp.work;
  const PostLock<kDomain> lock(qp, typename PostLock<kDomain>::Kept{});
  const WorkEntry* const end = work.next;
  WorkEntry* entry = work.first;
  const auto count = static_cast<std::uint32_t>(end - entry);
  if (work.notes != 0 || !qp.link.fast || qp.in_send_queue() + count > qp.sq_entries) [[unlikely]]
    return complete_slowly(qp);
  work.next = work.first;
  while ((entry = perform_run(qp, entry, end)) != end) [[unlikely]] {
      // It has room and its form is sound: nothing is left to be refused.
      do perform_slowly(qp, *entry++);
      while (entry != end && !qp.link.fast);
    }
  return 0;
}

/// The same of a single request, if `kWhich` of its flags are set. False: nothing was done.
template <bool kDomain, std::uint32_t kWhich>
[[gnu::always_inline]] inline bool complete_one(Qp& qp) noexcept {
  WorkBatch& work = qp.work;
  const WorkEntry& entry = *work.first;
  const std::uint32_t how = entry.how;
  if (work.next != &entry + 1 || work.notes != 0 ||
      (how & (IBV_SEND_SIGNALED | WorkEntry::kPiece)) != kWhich)
    return false;
  work.next = work.first;
  const OneRequest request{entry.wr_id, entry.address, entry.rkey, entry.piece.length,
                           (how & WorkEntry::kWrite) != 0};
  constexpr bool kSignaled = (kWhich & IBV_SEND_SIGNALED) != 0;
  const auto perform = [&](const auto& piece) {
    return perform_one_fast<kDomain, kSignaled>(qp, request, piece);
  };
  if (kWhich == WorkEntry::kPiece ? perform(BuiltPiece{qp, entry}) : perform(BuiltInline{entry}))
      [[likely]]
    return true;
  work.next = work.first + 1;
  return false;
}

}  // namespace verbatim::shm
