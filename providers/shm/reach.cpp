// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/reach.hpp"

#include <poll.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "providers/shm/fabric/node.hpp"
#include "providers/shm/null_memory.hpp"
#include "providers/shm/region_fast.hpp"
#include "providers/shm/send_fast.hpp"
#include "providers/shm/window_access.hpp"
#include "runtime/base/log.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// By CMA: long enough to hide the microsecond before its first byte, short enough that a
/// deregistration waits for a tenth of a millisecond at most.
constexpr std::uint64_t kChunk = 1u << 20;
static_assert(kChunk <= kNullBytes);
/// Through a mapping: what memcpy still writes to the cache, not around it, for a reader at hand.
constexpr std::uint64_t kMappedChunk = 256u << 10;

/// Walks a message's ranges from byte `from` on: calls f(address, bytes, distance from `from`).
template <class F>
void walk(const LocalRange* ranges, std::uint32_t count, std::uint64_t from, std::uint64_t length,
          F f) noexcept {
  std::uint64_t distance = 0;
  for (std::uint32_t i = 0; i < count && distance < length; ++i) {
    if (from >= ranges[i].length) {
      from -= ranges[i].length;
      continue;
    }
    std::uint64_t n = ranges[i].length - from;
    if (n > length - distance) n = length - distance;
    f(ranges[i].at == nullptr ? nullptr : ranges[i].at + from, n, distance);
    distance += n;
    from = 0;
  }
}

/// No pid gets a new owner within this time of its old owner's death: that takes a wrap of all
/// pids.
constexpr std::uint64_t kPidReuseNs = 1'000'000;

/// The process behind the pid is still the one that we met: a pid alone may have a new owner.
bool still_there(Qp& qp) noexcept {
  const Peer& peer = *qp.peer;
  if (!peer.alive.load(std::memory_order_acquire)) return false;
  const std::uint64_t now = now_ns();
  if (now - qp.peer_seen_ns < kPidReuseNs) return true;
  pollfd death{peer.pidfd.get(), POLLIN, 0};
  int dead = 0;
  if (peer.pidfd.get() >= 0) {
    do {
      dead = ::poll(&death, 1, 0);
    } while (dead < 0 && errno == EINTR);  // even without a wait: a signal of ours is no death
  }
  if (dead != 0) return false;
  qp.peer_seen_ns = now;
  return true;
}

/// One chunk by CMA. kDone also for a short copy: `moved` tells.
Reach copy_cma(Qp& qp, const Transfer& transfer, std::uint64_t from, std::uint64_t address,
               std::uint64_t length, std::uint64_t& moved) noexcept {
  Peer& peer = *qp.peer;
  if (!still_there(qp)) return Reach::kGone;
  iovec local[kMaxSge];
  unsigned long count = 0;
  walk(transfer.local, transfer.local_count, from, length,
       [&](unsigned char* at, std::uint64_t n, std::uint64_t) {
         // A chunk is no longer than what stands in for null memory, which is only read here.
         if (at == nullptr)
           at = transfer.direction == Direction::kToPeer ? const_cast<unsigned char*>(null_source())
                                                         : null_sink();
         local[count++] = {at, n};
       });
  const iovec remote{reinterpret_cast<void*>(address), length};
  const ssize_t n = transfer.direction == Direction::kToPeer
                        ? ::process_vm_writev(peer.pid, local, count, &remote, 1, 0)
                        : ::process_vm_readv(peer.pid, local, count, &remote, 1, 0);
  if (n > 0) {
    moved = static_cast<std::uint64_t>(n);
    return Reach::kDone;
  }
  switch (errno) {
    case ESRCH:
      return Reach::kGone;
    case EFAULT:
      return Reach::kDenied;  // registered, but no memory is there (any more)
    default:
      peer.cma.store(Cma::kRefused, std::memory_order_release);
      log_info(
          "shm: process_vm_%sv to process %d failed after it had worked (%s): copies go through "
          "its service thread from now on",
          transfer.direction == Direction::kToPeer ? "write" : "read", static_cast<int>(peer.pid),
          std::strerror(errno));
      return Reach::kService;
  }
}

}  // namespace

Reach way_to(const Qp& qp, std::uint32_t key, std::uint64_t iova, std::uint64_t length,
             std::uint32_t need, unsigned char*& mapped, std::uint64_t& address) noexcept {
  Region region;
  std::uint64_t offset;
  if (!find_region(qp.remote_regions, qp.remote_region_capacity, key, region) ||
      (region.access & need) != need || !region.contains(iova, length, offset))
    return Reach::kDenied;
  if (region.pd != qp.remote_pd && !opens_window(qp, region)) {
    if (need != IBV_ACCESS_LOCAL_WRITE || !is_null_memory(region, qp.remote_pd))
      return Reach::kDenied;
    mapped = null_sink();  // a posted receive that forgets; a copy goes in chunks that fit
    return Reach::kDone;
  }
  address = region.arena == RegionRecord::kOwnerOnly ? 0 : region.address + offset;
  mapped = mapped_bytes(qp, key, iova, length, need);
  if (mapped != nullptr) return Reach::kDone;
  Peer& peer = *qp.peer;
  // Memory that cannot be mapped for writing by everybody is reached like ordinary memory.
  bool arena_coming = false;
  if (region.arena != 0 && region.arena <= kMaxArenas &&
      peer.arenas[region.arena - 1].base.load(std::memory_order_acquire) == nullptr &&
      !Node::get().arena_refused(peer, region.arena - 1)) {
    Node::get().want_arena(peer, region.arena - 1);
    arena_coming = true;
  }
  if (peer.cma.load(std::memory_order_acquire) == Cma::kWorks) return Reach::kService;
  return arena_coming ? Reach::kArena : Reach::kService;
}

Reach way_to_all(const Qp& qp, const RemoteRange* remote, std::uint32_t count,
                 std::uint32_t need) noexcept {
  Reach all = Reach::kDone;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (remote[i].length == 0) continue;
    unsigned char* mapped;
    std::uint64_t address;
    const Reach way =
        way_to(qp, remote[i].key, remote[i].iova, remote[i].length, need, mapped, address);
    if (way == Reach::kDenied) return way;
    if (way != Reach::kDone) all = way;
  }
  return all;
}

Reach copy(Qp& qp, SendLock& lock, const Transfer& transfer, std::uint64_t& done,
           std::uint64_t total) noexcept {
  std::uint64_t skipped = 0;
  std::uint32_t at = 0;
  while (done < total) {
    while (at < transfer.remote_count && done - skipped >= transfer.remote[at].length)
      skipped += transfer.remote[at++].length;
    if (at == transfer.remote_count) return Reach::kDenied;
    const RemoteRange& range = transfer.remote[at];
    const std::uint64_t within = done - skipped;
    std::uint64_t chunk = range.length - within;
    if (chunk > total - done) chunk = total - done;
    if (chunk > kChunk) chunk = kChunk;
    if (qp.remote->accepts.load(std::memory_order_acquire) != qp.remote_session)
      return Reach::kGone;

    unsigned char* mapped;
    std::uint64_t address;
    const Reach way =
        way_to(qp, range.key, range.iova + within, chunk, transfer.need, mapped, address);
    if (way == Reach::kDone) {
      if (chunk > kMappedChunk) chunk = kMappedChunk;
      if (transfer.direction == Direction::kToPeer)
        gather(mapped, transfer.local, transfer.local_count, done, chunk);
      else
        scatter(transfer.local, transfer.local_count, done, mapped, chunk);
    } else if (way == Reach::kService && address != 0 &&
               qp.peer->cma.load(std::memory_order_acquire) == Cma::kWorks) {
      const Reach result = copy_cma(qp, transfer, done, address, chunk, chunk);
      if (result != Reach::kDone) return result;
    } else {
      return way;
    }
    done += chunk;
    if (done < total) lock.beat();
  }
  return Reach::kDone;
}

void gather(unsigned char* to, const LocalRange* ranges, std::uint32_t count, std::uint64_t from,
            std::uint64_t length) noexcept {
  walk(ranges, count, from, length,
       [to](const unsigned char* bytes, std::uint64_t n, std::uint64_t distance) {
         if (bytes != nullptr)
           std::memcpy(to + distance, bytes, n);
         else
           std::memset(to + distance, 0, n);
       });
}

void scatter(const LocalRange* ranges, std::uint32_t count, std::uint64_t from,
             const unsigned char* bytes, std::uint64_t length) noexcept {
  walk(ranges, count, from, length,
       [bytes](unsigned char* at, std::uint64_t n, std::uint64_t distance) {
         if (at != nullptr) std::memcpy(at, bytes + distance, n);
       });
}

}  // namespace verbatim::shm
