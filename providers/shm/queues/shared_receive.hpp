// SPDX-License-Identifier: BSD-2-Clause
//
// A shared receive queue: many queue pairs take from one store, in the order of posting, when they
// poll a message. The messages themselves lie in each connection's own ring until then.
//
// When does a sender's SEND complete? When it lies in the ring, as with a queue of one's own; and
// it may lie there if the sender sees a receive posted beyond those that its own untaken messages
// will use up. So one sender meets RNR exactly when a HCA's would. Several senders may count on
// the same receive: then all complete, none is lost, and those that find none are delivered when
// the next receives are posted.
//
// Lock order: a CQ's lock < the queue's lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/queues/receive_store.hpp"
#include "runtime/base/cache_line.hpp"
#include "runtime/sync/biased_lock.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

struct Qp;

/// The most SGEs a work request can have, of either kind.
inline constexpr std::uint32_t kMaxSge = 16;

/// A receive that was taken out of a shared queue: nobody else has it any more.
struct TakenReceive {
  std::uint64_t wr_id;
  std::uint32_t num_sge;
  ReceiveSge sges[kMaxSge];
};

/// A shared receive that belongs to message number `index` of its queue pair.
struct HeldReceive {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t index = kNone;
  TakenReceive receive;
};

/// The shared receive queue that the peer's half takes from.
struct SharedCredits {
  /// Of our messages, one in so many looks what others have used up.
  static constexpr std::uint64_t kLookEvery = 64;
  const SrqRecord* record = nullptr;  ///< nullptr: it has receives of its own
  std::uint64_t store = 0;            ///< what record->store said
  const std::atomic<std::uint64_t>* credits = nullptr;
  std::uint64_t mask = 0;  ///< the number of credits, less one
  /// Of our messages, those below it need no other look than at their credit. 0 without credits.
  std::uint64_t unlooked = 0;
  std::uint64_t next = 0;  ///< receive that our next message may use up, or an older one
};

struct Srq : verbatim::Srq {
  alignas(kCacheLine) BiasedLock lock;
  ReceiveStore store;
  std::uint64_t offset = 0;  ///< of the store in the segment, 0 until the first receive
  std::uint64_t posted = 0;
  std::uint32_t limit = 0;  ///< SRQ_LIMIT_REACHED when fewer are left; 0: not armed
  bool starving = false;    ///< a message found it empty: the next post must say so
  SrqRecord* own = nullptr;
  std::uint64_t own_offset = 0;
  KeyHolder keys{};
  QueueMemory memory;
  Srq* next = nullptr;  ///< of all queues of the process
  Srq* prev = nullptr;
  Qp* presence = nullptr;  ///< of an XRC queue (xrc_queue.hpp)

  static Srq& from(ibv_srq* srq) noexcept { return *reinterpret_cast<Srq*>(srq); }
};

/// What a queue can have: 0, or EINVAL and why in the log.
int check_srq_sizes(const char* verb, std::uint32_t max_wr, std::uint32_t max_sge) noexcept;
/// A queue for `max_wr` receives, and its end. nullptr: no memory.
Srq* make_srq(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t pd,
              const QueueMemory& memory) noexcept;
void free_srq(Srq& srq) noexcept;
/// In a forked child: whoever had their locks was a thread of the parent's, and posts are refused.
void retire_shared_queues_in_child() noexcept;
/// Forgets what is posted.
void empty_srq(Srq& srq) noexcept;
/// ibv_post_srq_recv.
int post_shared(Srq& srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;

/// Takes the oldest receive for a message of `qp`. False: there is none; whoever posts the next
/// announces it. The receive CQ's lock is held.
bool take_receive(Qp& qp, TakenReceive& out) noexcept;
/// Room for `capacity` (a power of two) receives that are held, empty; free() it. nullptr: no
/// memory.
HeldReceive* make_held(std::uint32_t capacity) noexcept;
/// Is there a receive to be taken? False also makes the next post announce.
bool has_receive(Srq& srq) noexcept;

/// Receive `index`, the oldest, goes to a message of `qp`. The queue's lock is held.
inline void use_up_locked(Srq& srq, Qp& qp, std::uint64_t index) noexcept;

// The plug's slots.
int modify_srq(verbatim::Srq& srq, ibv_srq_attr& attr, int mask) noexcept;
int query_srq(verbatim::Srq& srq, ibv_srq_attr& attr) noexcept;
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;

}  // namespace verbatim::shm
