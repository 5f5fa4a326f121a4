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
      std::uint64_t even = word.load(std::memory_order_relaxed) & ~std::uint64_t{1};
      if (!word.compare_exchange_strong(even, even + 1, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) [[unlikely]]
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
  /// Release: as SendLock's.
  ~PostLock() {
    std::atomic<std::uint64_t>& word = qp_.own->active;
    qp_.show_counts();
    word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    if constexpr (kDomain) qp_.domain_lock.unlock();
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

[[gnu::always_inline]] inline bool write_fast(Qp& qp, const ibv_send_wr& wr) noexcept {
  if (wr.num_sge != 1) return false;
  const ibv_sge sge = *wr.sg_list;
  const std::uint64_t bytes = sge.length;
  if ((peek(qp.remote->access) & IBV_ACCESS_REMOTE_WRITE) == 0) return false;
  const WriteTarget& target = qp.write_target;
  const std::uint32_t rkey = wr.wr.rdma.rkey;
  if (rkey == 0) return false;
  if (rkey != target.rkey || target.serial->load(std::memory_order_acquire) != target.serial_seen)
      [[unlikely]] {
    if (!find_write_target(qp, rkey)) return false;
  }
  const std::uint64_t offset = wr.wr.rdma.remote_addr - target.iova;
  if (offset > target.length || bytes > target.length - offset) return false;
  const unsigned char* from = reinterpret_cast<const unsigned char*>(sge.addr);
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    if (bytes > qp.max_inline) return false;
  } else {
    if (bytes > kFastWriteBytes) return false;
    if (!find_local_bytes(qp.keys(), sge.lkey, sge.addr, bytes, 0, from)) return false;
  }
  unsigned char* const to = target.base + offset;
  if (bytes <= 64)
    copy_small(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
  return true;
}

[[gnu::always_inline]] inline bool send_fast(Qp& qp, const ibv_send_wr& wr,
                                             std::uint32_t flags) noexcept {
  if (wr.num_sge != 1) return false;
  const ibv_sge& sge = *wr.sg_list;
  const std::uint32_t bytes = sge.length;
  if (bytes > Slot::kInlineBytes) return false;
  if (qp.credits == nullptr) return send_shared_fast(qp, wr, flags);
  // The receive that this message will use up: posted (its lap), sound, long enough?
  const std::uint64_t sent = qp.sent;
  const std::uint64_t at = sent & qp.remote_rq_mask;
  const std::uint64_t credit = qp.credits[at].load(std::memory_order_acquire);
  const std::uint32_t lap = qp.lap();
  if (static_cast<std::uint32_t>(credit >> 32) != lap ||
      (static_cast<std::uint32_t>(credit) & Credit::kBadKey) != 0 ||
      bytes > (static_cast<std::uint32_t>(credit) & Credit::kLengthMask))
    return false;
  const unsigned char* from = reinterpret_cast<const unsigned char*>(sge.addr);
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) {
    if (!find_local_bytes(qp.keys(), sge.lkey, sge.addr, bytes, 0, from)) return false;
  }
  // That receive being posted means that the slot's last message was taken: no fullness to check.
  Slot& slot = qp.ring[at];
  copy_small(slot.data, from, bytes);
  if ((wr.send_flags & IBV_SEND_SOLICITED) != 0) flags |= header::kSolicited;
  // Publishes the slot; pairs with the load in poll_rings().
  slot.header.store(header::make(lap, SlotKind::kInline, flags, bytes, wr.imm_data),
                    std::memory_order_release);
  qp.sent = sent + 1;
  // The receiver turns this word on before its last look at the ring, with a fence on both sides
  // (Node::fence_everyone), so reading it late is enough.
  if (qp.remote->attention.load(std::memory_order_relaxed) != kPolled || qp.ring_always)
      [[unlikely]]
    ring_peer(qp, (flags & header::kSolicited) != 0);
  return true;
}

[[gnu::always_inline]] inline bool perform_fast(Qp& qp, const ibv_send_wr& wr,
                                                std::uint16_t& opcode) noexcept {
  // The peer's half may have left at any time; our odd active word makes it wait for us from here
  // on.
  if (qp.remote->accepts.load(std::memory_order_acquire) != qp.remote_session) return false;
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

/// Performs and completes one request, for which the send queue has room. False: it takes the
/// general way.
[[gnu::always_inline]] inline bool post_one_fast(Qp& qp, const ibv_send_wr& wr,
                                                 CompletionWriter& completions) noexcept {
  std::uint16_t opcode;
  if (!qp.fast || !perform_fast(qp, wr, opcode)) [[unlikely]]
    return false;
  const auto sq_index = static_cast<std::uint32_t>(qp.sq_next++);
  qp.sent_bytes += wr.sg_list->length;
  if ((wr.send_flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all)
    completions.push({wr.wr_id, &qp, 0, sq_index, opcode, IBV_WC_SUCCESS, true, 0});
  return true;
}

template <bool kDomain>
[[gnu::always_inline]] inline int post_send_fast(Qp& qp, ibv_send_wr* wr,
                                                 ibv_send_wr** bad_wr) noexcept {
  const PostLock<kDomain> lock(qp);
  CompletionWriter completions(*qp.send_cq);
  for (; wr != nullptr; wr = wr->next) {
    const bool has_room = qp.in_send_queue() < qp.sq_entries;
    if (has_room && post_one_fast(qp, *wr, completions)) [[likely]]
      continue;
    completions.let_go();
    if (const int error = post_slowly_locked(qp, *wr); error != 0) [[unlikely]] {
      *bad_wr = wr;
      return error;
    }
  }
  return 0;
}

}  // namespace verbatim::shm
