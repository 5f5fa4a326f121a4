// SPDX-License-Identifier: BSD-2-Clause
//
// Sending, the general way: every operation of any size, also when it cannot be done at once. What
// waits is kept in the QP's queue and moved on by later posts, by polls of the send CQ, and by the
// service thread's tick when the application does neither.
#pragma once

#include <cstring>

#include "providers/shm/queues/message_ring.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/send_lock.hpp"
#include "providers/shm/queues/step.hpp"
#include "providers/shm/transfer/reach.hpp"
#include "runtime/verbs/software/operations.hpp"

namespace verbatim::shm {

/// Posts one work request behind what waits already. 0, EINVAL, or ENOMEM (queue full). The send
/// lock is held. Not [[gnu::cold]]: every READ and atomic takes this way, and what is cold is made
/// small (`rep stos` for the fields of a request took longer than the rest of it).
[[gnu::noinline]] int post_slowly(Qp& qp, SendLock& lock, const ibv_send_wr& wr) noexcept;

/// What a post refuses: 0, EINVAL, or ENOMEM (queue full).
int check_request(const Qp& qp, const ibv_send_wr& wr) noexcept;
/// A SEND that was performed as it was posted: its place in the queue, and its completion.
void complete_now(Qp& qp, const SendLock& lock, const ibv_send_wr& wr,
                  std::uint32_t bytes) noexcept;

/// At the way to SQD (IBTA 10.3.1.5): what has begun is finished, what lies behind it waits for
/// RTS. A request has begun when it is at the head, whatever it waits for there. `tells`:
/// SQ_DRAINED is raised when it has ended. The send lock is held.
void drain(Qp& qp, bool tells) noexcept;

/// Performs what can be performed, in order; sets link.fast when nothing is left. The send lock is
/// held.
void advance(Qp& qp, SendLock& lock) noexcept;

/// Completes everything queued with WR_FLUSH_ERR. The send lock is held.
void flush_sends(Qp& qp) noexcept;
/// Ends the QP in the error state and the head of its queue, or else the next post, in `status`:
/// the cause must be seen, also when nothing was under way. The send lock is held.
void fail_sends(Qp& qp, ibv_wc_status status) noexcept;
/// Forgets everything queued (RESET, destroy). The send lock is held.
void drop_sends(Qp& qp) noexcept;

/// Bytes of the peer's memory that a request names.
std::uint64_t remote_bytes(const PendingSend& send) noexcept;
/// The local side of a request, with its keys resolved. False: a key does not allow it.
bool resolve_local(const Qp& qp, const PendingSend& send, const ibv_sge* sges, std::uint32_t need,
                   LocalRange* out) noexcept;

/// The request as one step, over a connection that is attached.
Step perform(Qp& qp, SendLock& lock, const PendingSend& send, const LocalRange* local) noexcept;

/// Operations (send_message.cpp, send_rdma.cpp).
Step send_message(Qp& qp, SendLock& lock, const PendingSend& send,
                  const LocalRange* local) noexcept;
Step write_or_read(Qp& qp, SendLock& lock, const PendingSend& send,
                   const LocalRange* local) noexcept;
Step write_word(Qp& qp, const PendingSend& send, const LocalRange* local) noexcept;
Step flush_memory(Qp& qp, const PendingSend& send) noexcept;
Step do_atomic(Qp& qp, const PendingSend& send, const LocalRange* local) noexcept;

/// The next receive of the peer, for a message of so many bytes, and its `length`.
CreditState next_credit(Qp& qp, std::uint64_t bytes, std::uint32_t& length) noexcept;
/// The same when its receives are shared (send_shared.cpp).
CreditState next_shared_credit(Qp& qp, std::uint64_t bytes, std::uint32_t& length) noexcept;
/// Is the next shared receive posted, sound and long enough for so many bytes? The credits of a peer
/// that takes turns with many are looked at in rows.
[[gnu::always_inline]] inline bool takes_next_in_turn(Qp& way, std::uint32_t bytes) noexcept {
  const SharedCredits& shared = way.shared;
  if (shared.known.has(shared.next, bytes) && way.out.sent < shared.unlooked &&
      shared.record->store.load(std::memory_order_acquire) == shared.store) [[likely]]
    return true;
  std::uint32_t room;
  return next_shared_credit(way, bytes, room) == CreditState::kGood && bytes <= room;
}
/// Publishes a message whose bytes the receiver finds by `kind`; rings the peer if it must. There is
/// a line for it.
void publish(Qp& qp, SlotKind kind, std::uint32_t flags, std::uint32_t inline_length,
             std::uint32_t immediate) noexcept;
/// What a slot with header::kPath carries beside its message.
inline void say_path(Slot& slot, std::uint64_t path) noexcept {
  std::memcpy(slot.data + Slot::kPathAt, &path, sizeof path);
}
inline Slot& next_slot(Qp& qp) noexcept { return qp.out.ring.slot(); }
/// Gives a stream ring back that was not used since the last time. True: there is none.
bool trim_stream_ring(Qp& qp) noexcept;
/// The same of a SEND that lies whole in the ring, for which there is room (has_room_for()): `gather`
/// puts its bytes where it is told to. False: they are not all there, and nothing was published.
template <class Gather>
bool publish_whole(Qp& qp, std::uint32_t bytes, std::uint32_t flags, std::uint32_t immediate,
                   const Gather& gather) noexcept {
  Slot& slot = next_slot(qp);
  if (bytes <= Slot::kInlineBytes) {
    if (!gather(slot.data)) return false;
    publish(qp, SlotKind::kInline, flags, bytes, immediate);
    return true;
  }
  if (!gather(slot.data + Slot::kLongAt)) {
    // Bytes lie where headers will.
    qp.out.ring.mixed = qp.out.ring.next + lines_of(bytes);
    qp.out.ring.limit = qp.out.ring.next;
    return false;
  }
  slot.large.length = bytes;
  publish(qp, SlotKind::kLines, flags, 0, immediate);
  return true;
}
inline Lines find_lines(Qp& qp, std::uint32_t lines) noexcept {
  return qp.out.ring.has_lines(lines) ? Lines::kThere : make_lines(qp, lines);
}
/// Is there room for a SEND of `bytes`, at most kMostInLines, without more memory?
inline bool has_room_for(Qp& qp, std::uint32_t bytes) noexcept {
  const std::uint32_t lines = bytes <= Slot::kInlineBytes ? 1 : lines_of(bytes);
  return qp.out.ring.has_lines(lines) || look_for_lines(qp, lines);
}
/// Moves on the QPs that wait to send. Takes send locks: called before the CQ's lock.
[[gnu::cold, gnu::noinline]] void progress_pending(Cq& cq, SendLock::As as) noexcept;
/// Publishes, in place of a message, that the receive it would use up ends in `status`; `length` is
/// that of the message, for whoever explains it.
void publish_fault(Qp& qp, ibv_wc_status status, std::uint64_t length = 0) noexcept;

}  // namespace verbatim::shm
