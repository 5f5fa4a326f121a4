// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/transfer/reach.hpp"

#include <poll.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/null_memory.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/transfer/mapped.hpp"
#include "providers/shm/windows/authorize.hpp"
#include "runtime/base/log.hpp"
#include "runtime/memory/address_space.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// By CMA: long enough to hide the microsecond before its first byte, short enough that a
/// deregistration waits for a tenth of a millisecond at most.
constexpr std::uint64_t kChunk = 1u << 20;
static_assert(kChunk <= kNullBytes);
/// Through a mapping: what memcpy still writes to the cache, not around it, for a reader at hand.
constexpr std::uint64_t kMappedChunk = 256u << 10;

/// No pid gets a new owner within this time of its old owner's death: that takes a wrap of all
/// pids.
constexpr std::uint64_t kPidReuseNs = 1'000'000;

/// The process behind the pid is still the one that we met: a pid alone may have a new owner.
bool still_there(Qp& qp) noexcept {
  const Peer& peer = *qp.link.peer;
  if (!peer.alive.load(std::memory_order_acquire)) return false;
  const std::uint64_t now = now_ns();
  if (now - qp.out.peer_seen_ns < kPidReuseNs) return true;
  pollfd death{peer.pidfd.get(), POLLIN, 0};
  int dead = 0;
  if (peer.pidfd.get() >= 0) {
    do {
      dead = ::poll(&death, 1, 0);
    } while (dead < 0 && errno == EINTR);  // even without a wait: a signal of ours is no death
  }
  if (dead != 0) return false;
  qp.out.peer_seen_ns = now;
  return true;
}

/// For null memory. A chunk is no longer than that; what is read from is only read.
unsigned char* stand_in(const Transfer& transfer) noexcept {
  return transfer.direction == Direction::kToPeer ? const_cast<unsigned char*>(null_source())
                                                  : null_sink();
}

/// Is it our own memory at which a copy ended?
[[gnu::cold]] bool is_missing(const Transfer& transfer, const iovec& at) noexcept {
  return find_missing(reinterpret_cast<std::uint64_t>(at.iov_base), 1,
                      transfer.direction == Direction::kFromPeer)
             .lack != Lack::kNothing;
}

/// One chunk, of which the peer's side is on demand and in this process.
Reach copy_at_home(const Transfer& transfer, std::uint64_t from, std::uint64_t address,
                   std::uint64_t length) noexcept {
  Reach result = Reach::kDone;
  (void)walk(transfer.local, transfer.local_count, from, length,
             [&](const LocalRange& part, std::uint64_t distance) noexcept {
               unsigned char* const at = part.at != nullptr ? part.at : stand_in(transfer);
               const std::uint64_t there = address + distance;
               if (transfer.direction == Direction::kToPeer
                       ? copy_to_doubtful(there, at, part.length)
                       : copy_from_doubtful(at, there, part.length))
                 return true;
               const bool ours = find_missing(reinterpret_cast<std::uint64_t>(at), part.length,
                                              transfer.direction == Direction::kFromPeer)
                                     .lack != Lack::kNothing;
               result = ours ? Reach::kMissing : Reach::kDenied;
               return false;
             });
  return result;
}

/// One chunk by CMA. kDone also for a short copy: `moved` tells.
Reach copy_cma(Qp& qp, const Transfer& transfer, std::uint64_t from, std::uint64_t address,
               std::uint64_t length, std::uint64_t& moved) noexcept {
  Peer& peer = *qp.link.peer;
  if (!still_there(qp)) return Reach::kGone;
  iovec local[kMaxSge];
  unsigned long count = 0;
  (void)walk(transfer.local, transfer.local_count, from, length,
             [&](const LocalRange& part, std::uint64_t) noexcept {
               local[count++] = {part.at != nullptr ? part.at : stand_in(transfer), part.length};
               return true;
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
    case EFAULT:  // registered, but no memory is there (any more), at the first byte of either
      return is_missing(transfer, local[0]) ? Reach::kMissing : Reach::kDenied;
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
  const auto is_forgetful = [&](const Region& there) noexcept {
    return need == IBV_ACCESS_LOCAL_WRITE && is_null_memory(there, qp.link.remote_pd);
  };
  const auto admits = [&](const Region& there) noexcept {
    return OpenToRequests{qp}(there) || is_forgetful(there);
  };
  if (authorize(regions_of_peer(qp), {key, need, iova, length}, admits, region, offset) !=
      KeyFault::kNone)
    return Reach::kDenied;
  if (is_forgetful(region)) {
    mapped = null_sink();  // a posted receive that forgets; a copy goes in chunks that fit
    return Reach::kDone;
  }
  address = region.arena == RegionRecord::kOwnerOnly ? 0 : region.address + offset;
  mapped = mapped_bytes(qp, key, iova, length, need);
  if (mapped != nullptr) return Reach::kDone;
  if ((region.access & IBV_ACCESS_ON_DEMAND) != 0) return Reach::kKernel;
  Peer& peer = *qp.link.peer;
  // Memory that cannot be mapped for writing by everybody is reached like ordinary memory.
  bool arena_coming = false;
  if (region.arena != 0 && region.arena <= kMaxArenas &&
      peer.arenas[region.arena - 1].base.load(std::memory_order_acquire) == nullptr &&
      !Process::get().arena_refused(peer, region.arena - 1)) {
    Process::get().want_arena(peer, region.arena - 1);
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
    if (way != Reach::kDone && all != Reach::kKernel) all = way;
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
    if (qp.link.remote->accepts.load(std::memory_order_acquire) != qp.link.remote_session)
      return Reach::kGone;

    unsigned char* mapped;
    std::uint64_t address;
    const Reach way =
        way_to(qp, range.key, range.iova + within, chunk, transfer.need, mapped, address);
    if (way == Reach::kDone) {
      if (chunk > kMappedChunk) chunk = kMappedChunk;
      if (!(transfer.direction == Direction::kToPeer
                ? gather(mapped, transfer.local, transfer.local_count, done, chunk)
                : scatter(transfer.local, transfer.local_count, done, mapped, chunk)))
        return Reach::kMissing;
    } else if (way == Reach::kKernel && qp.link.self) {
      const Reach result = copy_at_home(transfer, done, address, chunk);
      if (result != Reach::kDone) return result;
    } else if ((way == Reach::kService || way == Reach::kKernel) && address != 0 &&
               qp.link.peer->cma.load(std::memory_order_acquire) == Cma::kWorks) {
      const Reach result = copy_cma(qp, transfer, done, address, chunk, chunk);
      if (result != Reach::kDone) return result;
    } else {
      return way == Reach::kKernel ? Reach::kService : way;
    }
    done += chunk;
    if (done < total) lock.beat();
  }
  return Reach::kDone;
}

}  // namespace verbatim::shm
