// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_post_send on RC: the whole journey of a small message out.
//
// What runs here: one SGE, the QP in RTS, attached, nothing waiting before us; SEND that fits a
// slot, and RDMA WRITE into memory that we have mapped. Everything else takes post_slowly(), which
// can do all that is done here too. The work is done when the call returns: a SEND lies in the ring
// against a receive that the peer had posted, a WRITE lies in the peer's memory. Its completion is
// stored at once.
#pragma once

#include <cerrno>

#include "providers/shm/copy_fast.hpp"
#include "providers/shm/qp.hpp"
#include "providers/shm/region_fast.hpp"
#include "providers/shm/send_queue.hpp"
#include "providers/shm/window_access.hpp"

namespace verbatim::shm {

/// A WRITE up to this size is copied here; a longer one in chunks, so that a deregistration need
/// not wait for all of it.
inline constexpr std::uint64_t kFastWriteBytes = 16u << 10;

/// Takes the send lock like SendLock, when somebody else has it.
[[gnu::cold, gnu::noinline]] void take_send_lock_slowly(Qp& qp) noexcept;
/// post_slowly() for whoever holds a PostLock.
[[gnu::cold, gnu::noinline]] int post_slowly_locked(Qp& qp, const ibv_send_wr& wr) noexcept;

/// The send lock of a post, of a queue pair that is known to be of a thread domain or not: all that
/// it needs is in the record's word, so it costs nothing to hold.
template <bool kDomain>
class PostLock {
 public:
  explicit PostLock(Qp& qp) noexcept : qp_(qp) {
    std::atomic<std::uint64_t>& word = qp.own->active;
    if constexpr (kDomain) {
      qp.domain_lock.lock_in_domain();
      // Not before: a guest may have been inside until now.
      word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      // As SendLock::mark_by_domain().
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      // Of a word that is odd already, it changes nothing.
      if ((word.fetch_or(1, std::memory_order_seq_cst) & 1) != 0) [[unlikely]]
        take_send_lock_slowly(qp);
    }
  }
  /// Takes over the lock that keep() left.
  struct Kept {};
  PostLock(Qp& qp, Kept) noexcept : qp_(qp) {}
  /// Takes the lock and leaves it taken.
  static void keep(Qp& qp) noexcept {
    union Left {
      explicit Left(Qp& of) noexcept : lock(of) {}
      ~Left() {}
      PostLock lock;
    } const left(qp);
  }
  ~PostLock() { let_go(qp_); }
  /// Release: as SendLock's. Of a lock that keep() left too.
  [[gnu::always_inline]] static void let_go(Qp& qp) noexcept {
    QpRecord& own = *qp.own;
    own.active.store(own.active.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    if constexpr (kDomain) qp.domain_lock.unlock();
  }
  PostLock(const PostLock&) = delete;
  PostLock& operator=(const PostLock&) = delete;

 private:
  Qp& qp_;
};

/// Stores completions of one post call under one hold of the CQ's lock.
class CompletionWriter {
 public:
  explicit CompletionWriter(Cq& cq) noexcept : cq_(cq) {}
  ~CompletionWriter() { let_go(); }
  CompletionWriter(const CompletionWriter&) = delete;
  CompletionWriter& operator=(const CompletionWriter&) = delete;

  void push(const Completion& completion) noexcept {
    if (!held_) {
      // A queue of a domain has only queue pairs of it, and we are one of their posts.
      if (cq_.in_domain.load(std::memory_order_relaxed)) [[unlikely]]
        cq_.lock.lock_in_domain();
      else
        cq_.lock.lock();
      held_ = true;
    }
    push_locked(cq_, completion);
  }
  void let_go() noexcept {
    if (held_) cq_.lock.unlock();
    held_ = false;
  }

 private:
  Cq& cq_;
  bool held_ = false;
};

/// The record's counts, in registers while a list is performed.
class Counts {
 public:
  explicit Counts(const Qp& qp) noexcept : posted_(qp.own->posted), bytes_(qp.own->sent_bytes) {}
  void put_back(Qp& qp) const noexcept {
    poke(qp.own->posted, posted_);
    poke(qp.own->sent_bytes, bytes_);
  }
  /// The next request's place in the send queue, cut.
  std::uint32_t next() const noexcept { return static_cast<std::uint32_t>(posted_); }
  void add(std::uint64_t bytes) noexcept {
    ++posted_;
    bytes_ += bytes;
  }

 private:
  std::uint64_t posted_;
  std::uint64_t bytes_;
};

/// Where the peer's bytes lie in our address space, or nullptr: not mapped, or not allowed.
inline unsigned char* mapped_bytes(const Qp& qp, std::uint32_t rkey, std::uint64_t address,
                                   std::uint64_t bytes, std::uint32_t need) noexcept {
  Region region;
  std::uint64_t offset;
  if (!find_region(qp.remote_regions, qp.remote_region_capacity, rkey, region) ||
      (region.pd != qp.remote_pd && !opens_window(qp, region)) || (region.access & need) != need ||
      !region.contains(address, bytes, offset))
    return nullptr;
  if (qp.self) return reinterpret_cast<unsigned char*>(region.address + offset);
  const std::uint32_t number = region.arena - 1;
  if (number >= kMaxArenas) return nullptr;
  const Arena& arena = qp.peer->arenas[number];
  unsigned char* base = arena.base.load(std::memory_order_acquire);
  const std::uint64_t at = region.arena_offset + offset;
  // The record's word for where the region lies in the arena is the peer's: hold it against our
  // mapping.
  if (base == nullptr || at < offset || at > arena.size || bytes > arena.size - at) return nullptr;
  return base + at;
}

/// Looks `rkey` up and makes it the queue pair's write target. False: not mapped, not allowed.
[[gnu::noinline]] bool find_write_target(Qp& qp, std::uint32_t rkey) noexcept;

/// Tells the peer, which does not poll this ring, that a message is in it. Not [[gnu::cold]]: GCC
/// then takes the whole way to it for cold.
[[gnu::noinline]] void ring_peer(Qp& qp, bool solicited) noexcept;

/// A SEND that fits a slot, to a queue pair whose receives are shared.
[[gnu::noinline]] bool send_shared_fast(Qp& qp, const ibv_send_wr& wr,
                                        std::uint32_t flags) noexcept;

/// Where WRITEs with one key go, and SENDs, of however many requests in a row: their loops have it
/// in registers. put() performs a request of one piece; `piece.find(from)` says where its bytes
/// lie. False: it takes the general way.
struct Writes {
  std::uint64_t iova;
  std::uint64_t length;
  unsigned char* base;

  explicit Writes(const WriteTarget& target) noexcept
      : iova(target.iova), length(target.length), base(target.base) {}

  static bool may_write(const Qp& qp) noexcept {
    return (peek(qp.remote->access) & IBV_ACCESS_REMOTE_WRITE) != 0;
  }

  /// May `rkey` be written by the queue pair, and is it that of its write target? It is from here
  /// on, until the send lock is let go.
  [[gnu::always_inline]] static bool is_known(const Qp& qp, std::uint32_t rkey) noexcept {
    const WriteTarget& target = qp.write_target;
    return may_write(qp) && rkey != 0 && rkey == target.rkey &&
           target.serial->load(std::memory_order_acquire) == target.serial_seen;
  }
  /// The same when it has been looked up, if it must be.
  [[gnu::always_inline]] static bool find(Qp& qp, std::uint32_t rkey) noexcept {
    if (is_known(qp, rkey)) [[likely]]
      return true;
    return may_write(qp) && find_write_target(qp, rkey);
  }
  template <class Piece>
  [[gnu::always_inline]] bool put(std::uint64_t address, std::uint64_t bytes,
                                  const Piece& piece) const noexcept {
    const std::uint64_t offset = address - iova;
    if (offset > length || bytes > length - offset) return false;
    const unsigned char* from;
    if (!piece.find(from)) return false;
    if (bytes <= 64)
      copy_small(base + offset, from, bytes);
    else
      std::memcpy(base + offset, from, bytes);
    return true;
  }
};

/// The peer does not poll for what we send: it must be told.
inline bool must_ring(const Qp& qp) noexcept {
  // The receiver turns this word on before its last look at the ring, with a fence on both sides
  // (Node::fence_everyone), so reading it late is enough.
  return qp.remote->attention.load(std::memory_order_relaxed) != kPolled || qp.ring_always;
}

/// SENDs of at most Slot::kInlineBytes, to a queue pair that has receives of its own. Whoever makes
/// it puts `sent` back, and rings if must_ring().
struct Sends {
  std::uint64_t sent;
  std::uint64_t mask;
  std::uint32_t log;
  const std::atomic<std::uint64_t>* credits;
  Slot* ring;

  explicit Sends(const Qp& qp) noexcept
      : sent(qp.sent),
        mask(qp.remote_rq_mask),
        log(qp.remote_rq_log),
        credits(qp.credits),
        ring(qp.ring) {}

  /// `piece.header()` is the slot's, but for place and length; asked for when it is stored, since
  /// kept from before it costs the registers that the copy needs.
  template <class Piece>
  [[gnu::always_inline]] bool put(std::uint32_t bytes, const Piece& piece) noexcept {
    // The receive that this message will use up: posted (its lap), sound, long enough?
    const std::uint64_t at = sent & mask;
    const std::uint64_t credit = credits[at].load(std::memory_order_acquire);
    const std::uint32_t lap = static_cast<std::uint32_t>(sent >> log) + 1;
    // A receive with a bad key has a length below zero.
    static_assert(Credit::kBadKey == 1u << 31 && Slot::kInlineBytes < Credit::kLengthMask);
    if (static_cast<std::uint32_t>(credit >> 32) != lap ||
        static_cast<std::int32_t>(credit) < static_cast<std::int32_t>(bytes))
      return false;
    const unsigned char* from;
    if (!piece.find(from)) return false;
    // That receive being posted means that the slot's last message was taken: no fullness to check.
    Slot& slot = ring[at];
    copy_small(slot.data, from, bytes);
    // Publishes the slot; pairs with the load in poll_rings().
    slot.header.store(piece.header() | header::place(lap, bytes), std::memory_order_release);
    ++sent;
    return true;
  }
};

/// A SEND's header, but for place and length.
inline std::uint64_t send_header(std::uint32_t flags, unsigned send_flags, __be32 imm) noexcept {
  static_assert(IBV_SEND_SOLICITED == header::kSolicited << 1);
  return header::make(0, SlotKind::kInline, flags | (send_flags >> 1 & header::kSolicited), 0, imm);
}

/// A posted request's one piece.
struct PostedPiece {
  const Qp& qp;
  const ibv_send_wr& wr;
  const ibv_sge& sge;
  std::uint64_t most_inline;
  std::uint64_t most;
  std::uint32_t flags;  ///< of the header, by its opcode

  [[gnu::always_inline]] bool find(const unsigned char*& from) const noexcept {
    from = reinterpret_cast<const unsigned char*>(sge.addr);
    if ((wr.send_flags & IBV_SEND_INLINE) != 0) return sge.length <= most_inline;
    return sge.length <= most &&
           find_local_bytes(qp.keys(), sge.lkey, sge.addr, sge.length, 0, from);
  }
  [[gnu::always_inline]] std::uint64_t header() const noexcept {
    return send_header(flags, wr.send_flags, wr.imm_data);
  }
};

[[gnu::always_inline]] inline bool write_fast(Qp& qp, const ibv_send_wr& wr) noexcept {
  if (wr.num_sge != 1) return false;
  const ibv_sge sge = *wr.sg_list;
  return Writes::find(qp, wr.wr.rdma.rkey) &&
         Writes(qp.write_target)
             .put(wr.wr.rdma.remote_addr, sge.length,
                  PostedPiece{qp, wr, sge, qp.max_inline, kFastWriteBytes, 0});
}

[[gnu::always_inline]] inline bool send_fast(Qp& qp, const ibv_send_wr& wr,
                                             std::uint32_t flags) noexcept {
  if (wr.num_sge != 1) return false;
  const ibv_sge& sge = *wr.sg_list;
  if (sge.length > Slot::kInlineBytes) return false;
  if (qp.credits == nullptr) return send_shared_fast(qp, wr, flags);
  Sends sends(qp);
  if (!sends.put(sge.length,
                 PostedPiece{qp, wr, sge, Slot::kInlineBytes, Slot::kInlineBytes, flags}))
    return false;
  qp.sent = sends.sent;
  if (must_ring(qp)) [[unlikely]]
    ring_peer(qp, (wr.send_flags & IBV_SEND_SOLICITED) != 0);
  return true;
}

/// May requests be performed at once? If so, until the send lock is let go or one took the general
/// way.
inline bool is_ready(const Qp& qp) noexcept {
  // The peer's half may have left at any time; our odd active word makes it wait for us from here
  // on.
  return qp.fast && qp.remote->accepts.load(std::memory_order_acquire) == qp.remote_session;
}

/// REQUIRES: is_ready(qp).
[[gnu::always_inline]] inline bool perform_fast(Qp& qp, const ibv_send_wr& wr,
                                                std::uint16_t& opcode) noexcept {
  switch (wr.opcode) {
    case IBV_WR_RDMA_WRITE:
      opcode = IBV_WC_RDMA_WRITE;
      return write_fast(qp, wr);
    case IBV_WR_SEND:
      opcode = IBV_WC_SEND;
      return send_fast(qp, wr, 0);
    case IBV_WR_SEND_WITH_IMM:
      opcode = IBV_WC_SEND;
      return send_fast(qp, wr, header::kImmediate);
    default:
      return false;
  }
}

/// Takes the lock of a queue that has room for a completion and nobody to tell of it.
[[gnu::always_inline]] inline bool take_quiet(Cq& cq) noexcept {
  if (!(cq.in_domain.load(std::memory_order_relaxed) ? cq.lock.take_as_domain()
                                                     : cq.lock.take_as_owner())) [[unlikely]]
    return false;
  const std::uint32_t used =
      cq.tail.load(std::memory_order_relaxed) - cq.head.load(std::memory_order_relaxed);
  if (used <= cq.mask && cq.times == nullptr &&
      cq.armed->load(std::memory_order_relaxed) == CqRecord::kIdle) [[likely]]
    return true;
  cq.lock.let_go_as_owner();
  return false;
}

/// What is asked of perform_one().
struct OneRequest {
  std::uint64_t wr_id;
  std::uint64_t address;  ///< of a WRITE
  std::uint32_t rkey;     ///< of a WRITE
  std::uint32_t bytes;
  bool is_write;
};

/// A WRITE of at most 64 B, or a SEND to receives of the peer's own.
template <class Piece>
struct MoveFast {
  Qp& qp;
  const Piece& piece;

  [[gnu::always_inline]] bool operator()(const OneRequest& request) const noexcept {
    if (request.is_write)
      return request.bytes <= 64 && Writes::is_known(qp, request.rkey) &&
             Writes(qp.write_target).put(request.address, request.bytes, piece);
    if (request.bytes > Slot::kInlineBytes || must_ring(qp)) return false;
    Sends sends(qp);
    if (!sends.put(request.bytes, piece)) return false;
    qp.sent = sends.sent;
    return true;
  }
};

/// A single request under the send lock, which it lets go: `move(request)` moves its bytes, with
/// no more than stores. Nothing is called on the way, so no registers have to be saved for it.
/// False: nothing was done.
template <bool kDomain, bool kSignaled, class Move>
[[gnu::always_inline]] inline bool perform_one(Qp& qp, const OneRequest& request,
                                               const Move& move) noexcept {
  if (qp.in_send_queue() >= qp.sq_entries) [[unlikely]]
    return false;
  if constexpr (!kSignaled) {
    if (!move(request)) [[unlikely]]
      return false;
    qp.take_places(1);
  } else {
    Cq& cq = *qp.send_cq;
    if (!take_quiet(cq)) [[unlikely]]
      return false;
    if (!move(request)) [[unlikely]] {
      cq.lock.let_go_as_owner();
      return false;
    }
    const std::uint32_t tail = cq.tail.load(std::memory_order_relaxed);
    cq.ring[tail & cq.mask] = {
        request.wr_id,
        &qp,
        0,
        qp.take_places(1),
        static_cast<std::uint16_t>(request.is_write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND),
        IBV_WC_SUCCESS,
        true,
        0};
    cq.tail.store(tail + 1, std::memory_order_relaxed);
    cq.lock.let_go_as_owner();
  }
  qp.count_sent(request.bytes);
  PostLock<kDomain>::let_go(qp);
  return true;
}

/// The same of a WRITE of at most 64 B, or of a SEND to a queue pair with receives of its own.
template <bool kDomain, bool kSignaled, class Piece>
[[gnu::always_inline]] inline bool perform_one_fast(Qp& qp, const OneRequest& request,
                                                    const Piece& piece) noexcept {
  if (!is_ready(qp)) [[unlikely]]
    return false;
  // To shared receives: not after the completion's lock has been taken for it.
  if (!request.is_write && qp.credits == nullptr) return false;
  return perform_one<kDomain, kSignaled>(qp, request, MoveFast<Piece>{qp, piece});
}

/// The only request of a list, if it completes with a word or without as kSignaled says.
template <bool kDomain, bool kSignaled>
[[gnu::always_inline]] inline bool post_one_fast(Qp& qp, const ibv_send_wr& wr) noexcept {
  const bool is_signaled = (wr.send_flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all;
  if (is_signaled != kSignaled || wr.next != nullptr || wr.num_sge != 1) return false;
  const ibv_sge& sge = *wr.sg_list;
  const bool is_write = wr.opcode == IBV_WR_RDMA_WRITE;
  if (!is_write && wr.opcode != IBV_WR_SEND) return false;
  return perform_one_fast<kDomain, kSignaled>(
      qp, {wr.wr_id, wr.wr.rdma.remote_addr, wr.wr.rdma.rkey, sge.length, is_write},
      PostedPiece{qp, wr, sge, Slot::kInlineBytes, Slot::kInlineBytes, 0});
}

/// Any list. The send lock is held.
template <bool kDomain>
[[gnu::always_inline]] inline int post_list_fast(Qp& qp, ibv_send_wr* wr,
                                                 ibv_send_wr** bad_wr) noexcept {
  const PostLock<kDomain> lock(qp, typename PostLock<kDomain>::Kept{});
  CompletionWriter completions(*qp.send_cq);
  bool ready = is_ready(qp);
  Counts counts(qp);
  for (; wr != nullptr; wr = wr->next) {
    const bool has_room =
        counts.next() - qp.own->polled.load(std::memory_order_acquire) < qp.sq_entries;
    std::uint16_t opcode;
    if (has_room && ready && perform_fast(qp, *wr, opcode)) [[likely]] {
      if ((wr->send_flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all)
        completions.push({wr->wr_id, &qp, 0, counts.next(), opcode, IBV_WC_SUCCESS, true, 0});
      counts.add(wr->sg_list->length);
      continue;
    }
    completions.let_go();
    counts.put_back(qp);
    if (const int error = post_slowly_locked(qp, *wr); error != 0) [[unlikely]] {
      *bad_wr = wr;
      return error;
    }
    ready = is_ready(qp);
    counts = Counts(qp);
  }
  counts.put_back(qp);
  return 0;
}

}  // namespace verbatim::shm
