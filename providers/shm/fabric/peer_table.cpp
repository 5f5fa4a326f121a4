// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/peer_table.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "runtime/memory/sparse_map.hpp"

namespace verbatim::shm {

namespace {

void unmap_arenas(Peer& peer) noexcept {
  if (peer.self) return;
  for (Arena& arena : peer.arenas) {
    unsigned char* const base = arena.base.load(std::memory_order_relaxed);
    if (base != nullptr) ::munmap(base, arena.size);
  }
}

void destroy(Peer* peer) noexcept {
  unmap_arenas(*peer);
  peer->segment.unmap();
  peer->~Peer();
  ::munmap(static_cast<void*>(peer), sizeof(Peer));
}

}  // namespace

std::uint32_t PeerTable::block_position(const Peer& peer, std::uint32_t qpn) noexcept {
  const SegmentHeader& head = peer.segment.live_head();
  const std::uint32_t block = qpn >> kQpnBlockBits;
  std::uint32_t count =
      head.block_count.load(std::memory_order_acquire);  // pairs with QpnBlocks::add_block
  if (count > kMaxBlocksPerProcess) count = kMaxBlocksPerProcess;
  for (std::uint32_t k = 0; k < count; ++k) {
    if (head.blocks[k].load(std::memory_order_relaxed) == block) return k;
  }
  return kMaxBlocksPerProcess;
}

Peer* PeerTable::make() noexcept {
  if (resting_ != nullptr) {
    Peer* const peer = resting_;
    resting_ = peer->next;
    peer->next = nullptr;
    return peer;
  }
  // In memory of its own: its arena table is large and mostly untouched.
  void* const memory =
      map_sparse(nullptr, sizeof(Peer), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  return memory == MAP_FAILED ? nullptr : ::new (memory) Peer;
}

void PeerTable::rest(Peer* peer) noexcept {
  unmap_arenas(*peer);
  peer->segment.rest();
  const PeerSegment addresses = peer->segment;
  peer->~Peer();
  ::new (static_cast<void*>(peer)) Peer;
  peer->segment = addresses;
  peer->next = resting_;
  resting_ = peer;
}

void PeerTable::add(Peer& peer) noexcept {
  const LockGuard guard(lock_);
  peer.next = first_;
  first_ = &peer;
  ++count_;
}

Peer* PeerTable::take_retired(std::uint64_t died_before) noexcept {
  Peer* retired = nullptr;
  const LockGuard guard(lock_);
  for (Peer** link = &first_; *link != nullptr;) {
    Peer* const peer = *link;
    if (peer->alive.load(std::memory_order_relaxed) || peer->died_at > died_before ||
        peer->holders.load(std::memory_order_acquire) != 0) {
      link = &peer->next;
      continue;
    }
    *link = peer->next;
    peer->next = retired;
    retired = peer;
    --count_;
  }
  return retired;
}

void PeerTable::clear(bool in_doubt) noexcept {
  const LockGuard guard(lock_);
  for (Peer** list : {&first_, &resting_}) {
    while (*list != nullptr) {
      Peer* const peer = *list;
      *list = peer->next;
      if (in_doubt) {
        peer->wake.doubt();
        peer->pidfd.doubt();
      }
      destroy(peer);
    }
  }
  count_ = 0;
}

Peer* PeerTable::hold_owner(std::uint32_t qpn) noexcept {
  Peer* reached = nullptr;
  Peer* living = nullptr;
  Peer* dead = nullptr;
  bool disputed = false;
  const LockGuard guard(lock_);
  for (Peer* peer = first_; peer != nullptr; peer = peer->next) {
    if (block_position(*peer, qpn) == kMaxBlocksPerProcess) continue;
    if (!peer->alive.load(std::memory_order_acquire)) {
      if (dead == nullptr) dead = peer;  // the one met last
      continue;
    }
    disputed = living != nullptr;
    living = peer;
    if (peer->self || peer->reached_by_name(qpn)) reached = peer;
  }
  Peer* const found = reached != nullptr  ? reached
                      : disputed          ? nullptr
                      : living != nullptr ? living
                                          : dead;
  if (found != nullptr) found->holders.fetch_add(1, std::memory_order_relaxed);
  return found;
}

bool PeerTable::hold(Peer& peer) noexcept {
  const LockGuard guard(lock_);
  for (const Peer* known = first_; known != nullptr; known = known->next) {
    if (known != &peer) continue;
    peer.holders.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

// Under the lock, or it might be retired between the two looks at it.
bool PeerTable::release(Peer& peer) noexcept {
  const LockGuard guard(lock_);
  if (peer.holders.fetch_sub(1, std::memory_order_acq_rel) != 1 ||
      peer.alive.load(std::memory_order_acquire))
    return false;
  released_.store(true, std::memory_order_release);
  return true;
}

void PeerTable::each_living(void (*look)(const Peer&, void*), void* with) noexcept {
  const LockGuard guard(lock_);
  for (const Peer* peer = first_; peer != nullptr; peer = peer->next)
    if (peer->alive.load(std::memory_order_acquire)) look(*peer, with);
}

Peer* PeerTable::find_living(std::uint64_t identity) noexcept {
  const LockGuard guard(lock_);
  for (Peer* peer = first_; peer != nullptr; peer = peer->next) {
    if (peer->identity == identity && peer->alive.load(std::memory_order_relaxed)) return peer;
  }
  return nullptr;
}

}  // namespace verbatim::shm
