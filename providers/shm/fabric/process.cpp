// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/process.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "providers/shm/fabric/cma_probe.hpp"
#include "providers/shm/fabric/peer_table.hpp"
#include "providers/shm/fabric/qpn_blocks.hpp"
#include "providers/shm/fabric/service.hpp"
#include "providers/shm/fabric/wake_socket.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/sync/membarrier.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

constinit Mutex start_mutex;
constinit std::uint32_t users = 0;            ///< start() less stop()
constinit std::uint32_t inherited_users = 0;  ///< of those, what our parent had when it forked
constinit bool process_hooks_set = false;

}  // namespace

struct Process::Parts {
  explicit Parts(const ServiceHooks& given) noexcept : hooks(given) {}

  ServiceHooks hooks;
  OwnSegment segment;
  FabricFolder folder;
  PeerTable peers;
  WantedBlocks wanted;
  Service service{Surroundings{segment, folder, peers, wanted, hooks}};
  QpnBlocks qpns{segment, service.names()};
  Peer* self = nullptr;
  std::atomic<std::uint64_t> all_met_at{0};  ///< the folder had changed then when all were met
  bool membarrier_works = false;
  bool forked = false;  ///< our parent's: no thread, no names, only memory and descriptors

  int open() noexcept;
  void close() noexcept;
  void await_names(std::uint64_t fresh_ns) noexcept;
};

namespace {
// Constant-initialised; holds a pointer only.
constinit Process process;
}  // namespace

int Process::Parts::open() noexcept {
  int error = folder.open();
  if (error != 0) return error;
  error = segment.create();
  if (error != 0) return error;
  segment.head().fabric = folder.number();
  membarrier_works = register_for_membarrier();
  if (!membarrier_works) {
    log_info("membarrier is refused (%s): peers pay a fence for each message",
             std::strerror(errno));
    segment.head().sender_fence = 1;
  }
  permit_cma();
  error = service.start();
  if (error != 0) return error;

  self = peers.make();
  if (self == nullptr) return ENOMEM;
  self->segment.view(segment);
  self->identity = segment.head().identity;
  self->pid = ::getpid();
  self->self = true;
  self->knows_us.store(true, std::memory_order_relaxed);
  self->wake = UniqueFd(::fcntl(service.wake_fd(), F_DUPFD_CLOEXEC, 0));
  if (!self->wake.valid()) {
    const int wrong = errno;
    log_error("a descriptor to wake the service thread: %s%s", std::strerror(wrong),
              wrong == EMFILE ? " (raise 'ulimit -n')" : "");
    peers.rest(self);
    return wrong;
  }
  self->cma.store(Cma::kWorks, std::memory_order_relaxed);
  self->sender_fence.store(!membarrier_works, std::memory_order_relaxed);
  peers.add(*self);
  return 0;
}

void Process::Parts::close() noexcept {
  if (!forked) hooks.ends();
  if (!forked) service.names().release_all();
  service.stop(forked);
  peers.clear(service.has_failed() || !segment.has_its_files());
  segment.destroy();
  folder.close();
}

int Process::start(const ServiceHooks& hooks) noexcept {
  const LockGuard guard(start_mutex);
  if (process.parts_ != nullptr && !process.parts_->forked) {
    if (process.has_failed()) return EIO;
    ++users;
    return 0;
  }
  return start_locked(hooks);
}

int Process::start_locked(const ServiceHooks& hooks) noexcept {
  if (!process_hooks_set) {
    const int error = ::pthread_atfork(lock_for_fork, unlock_after_fork, continue_in_child);
    if (error != 0) return error;
    if (::atexit(remove_names_at_exit) != 0) return ENOMEM;
    process_hooks_set = true;
  }
  // What a parent left us stays where it is: inherited objects may still point into it.
  auto* const parts = make_nothrow<Parts>(hooks);
  if (parts == nullptr) return ENOMEM;
  Parts* const before = process.parts_;
  process.parts_ = parts;  // before the service thread exists: its hooks come here
  const int error = parts->open();
  if (error != 0) {
    parts->close();
    process.parts_ = before;
    destroy_nothrow(parts);
    return error;
  }
  ++users;
  return 0;
}

void Process::stop() noexcept {
  const LockGuard guard(start_mutex);
  if (users + inherited_users == 0) return;
  // Whose stop this is cannot be told: the inherited ones go first, so that nothing ends too early.
  if (inherited_users != 0) {
    --inherited_users;
  } else {
    --users;
  }
  if (users + inherited_users == 0) stop_locked();
}

void Process::stop_locked() noexcept {
  Parts* const parts = process.parts_;
  parts->close();
  process.parts_ = nullptr;  // only now: until its end the service thread's hooks come here
  destroy_nothrow(parts);
}

Process& Process::get() noexcept { return process; }

void Process::lock_for_fork() noexcept {
  start_mutex.lock();
  if (process.parts_ == nullptr) return;
  process.parts_->qpns.lock_for_fork();
  process.parts_->service.names().lock_for_fork();
  process.parts_->segment.lock_for_fork();
  process.parts_->peers.lock_for_fork();
  process.parts_->wanted.lock_for_fork();
}

void Process::unlock_after_fork() noexcept {
  if (process.parts_ != nullptr) {
    process.parts_->wanted.unlock_after_fork();
    process.parts_->peers.unlock_after_fork();
    process.parts_->segment.unlock_after_fork();
    process.parts_->service.names().unlock_after_fork();
    process.parts_->qpns.unlock_after_fork();
  }
  start_mutex.unlock();
}

void Process::continue_in_child() noexcept {
  if (process.parts_ != nullptr) {
    process.parts_->forked = true;
    process.parts_->segment.become_private();
    process.parts_->service.close_in_child();
    inherited_users += users;
    users = 0;
  }
  unlock_after_fork();
}

void Process::remove_names_at_exit() noexcept {
  const LockGuard guard(start_mutex);
  if (process.parts_ == nullptr || process.parts_->forked) return;
  process.parts_->hooks.ends();
  process.parts_->service.names().release_all();
}

bool Process::has_failed() noexcept { return parts_->service.has_failed(); }

const ServiceHooks& Process::hooks() const noexcept { return parts_->hooks; }
OwnSegment& Process::segment() noexcept { return parts_->segment; }

Peer& Process::self() noexcept { return *parts_->self; }

int Process::take_qpn(std::uint32_t& index, std::uint32_t& qpn) noexcept {
  return parts_->forked || has_failed() ? EIO : parts_->qpns.take(index, qpn);
}

void Process::give_qpn(std::uint32_t index) noexcept { parts_->qpns.give(index); }

std::uint32_t Process::free_qpn_count() noexcept { return parts_->qpns.free_count(); }

int Process::hold_name(HeldName& name, bool create, bool exclusive) noexcept {
  if (parts_->forked || has_failed()) return EIO;
  parts_->await_names(0);
  return parts_->service.names().hold(name, create, exclusive);
}

void Process::let_name_go(HeldName& name) noexcept {
  if (parts_->forked)
    name.file.reset();
  else
    parts_->service.names().let_go(name);
}

bool Process::can_be_met() noexcept {
  if (has_failed()) return false;
  if (parts_->forked) return parts_->service.names().are_whole();
  return parts_->service.look_at_names(now_ns(), 0);
}

void Process::await_names() noexcept {
  if (!parts_->forked) parts_->await_names(parts_->qpns.are_full() ? 0 : OwnNames::kFreshNs);
}

void Process::Parts::await_names(std::uint64_t fresh_ns) noexcept {
  if (service.has_failed() || service.on_thread() || service.look_at_names(now_ns(), fresh_ns))
    return;
  // What is not back after so long does not come back while somebody waits.
  const std::uint64_t deadline = service.names().lost_at() + FabricFolder::kLockPatienceNs;
  while (!service.names().are_whole() && !service.has_failed() && now_ns() < deadline) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

Peer* Process::hold_peer(std::uint32_t qpn) noexcept {
  Peer* const peer = parts_->peers.hold_owner(qpn);
  // A dead owner's numbers may belong to somebody new: whoever keeps asking will meet him.
  if (peer != nullptr && !peer->alive.load(std::memory_order_acquire)) want_peer(qpn);
  return peer;
}

Peer* Process::find_peer(std::uint32_t qpn) noexcept {
  Peer* const peer = hold_peer(qpn);
  if (peer != nullptr) release_peer(*peer);
  return peer;
}

bool Process::hold_too(Peer& peer) noexcept { return parts_->peers.hold(peer); }

Peer* Process::first_peer() noexcept { return parts_->peers.first(); }

void Process::release_peer(Peer& peer) noexcept {
  if (parts_->peers.release(peer) && !parts_->forked && !parts_->service.on_thread())
    parts_->service.wake();
}

std::uint32_t Process::index_in(const Peer& peer, std::uint32_t qpn) noexcept {
  const std::uint32_t k = PeerTable::block_position(peer, qpn);
  if (k == kMaxBlocksPerProcess) return ~0u;
  const std::uint32_t index = k * kQpnsPerBlock + qpn % kQpnsPerBlock;
  return index < peer.segment.qp_capacity() ? index : ~0u;
}

void Process::want_peer(std::uint32_t qpn) noexcept {
  const std::uint32_t block = qpn >> kQpnBlockBits;
  if (block == 0 || block >= kQpnBlocks || parts_->forked) return;
  if (!parts_->wanted.ask(block, now_ns())) return;
  parts_->service.doubt_names();
  parts_->service.wake();
}

bool Process::is_connecting_to_all() noexcept {
  // The clock of file systems ticks: what came in the tick of the last change looks like it.
  constexpr std::uint64_t kSettledNs = 50'000'000;
  const std::uint64_t changed = parts_->folder.changed_at();
  if (changed == parts_->all_met_at.load(std::memory_order_acquire)) return false;
  std::uint64_t words[kQpnBlocks / 64];
  if (!parts_->folder.list_blocks(words)) return false;
  bool connecting = false;
  for (std::uint32_t block = 1; block < kQpnBlocks; ++block) {
    if ((words[block / 64] >> (block % 64) & 1) == 0) continue;
    const std::uint32_t qpn = block << kQpnBlockBits;
    Peer* const peer = hold_peer(qpn);
    const bool lives = peer != nullptr && peer->alive.load(std::memory_order_acquire);
    if (peer != nullptr) release_peer(*peer);
    if (lives) continue;
    want_peer(qpn);
    connecting = connecting || is_connecting(qpn);
  }
  if (!connecting && wall_clock_ns() > changed + kSettledNs)
    parts_->all_met_at.store(changed, std::memory_order_release);
  return connecting;
}

void Process::each_living_peer(void (*look)(const Peer&, void*), void* with) noexcept {
  parts_->peers.each_living(look, with);
}

bool Process::is_connecting(std::uint32_t qpn) noexcept {
  if (parts_->wanted.hopeful(qpn >> kQpnBlockBits)) return true;
  // Who greeted us is met when it knows us too.
  Peer* const peer = hold_peer(qpn);
  if (peer == nullptr) return false;
  const bool half = peer->alive.load(std::memory_order_acquire) &&
                    !peer->knows_us.load(std::memory_order_acquire);
  release_peer(*peer);
  return half;
}

void Process::want_arena(Peer& peer, std::uint32_t arena) noexcept {
  if (arena >= kMaxArenas || peer.arenas[arena].base.load(std::memory_order_acquire) != nullptr)
    return;
  if (!peer.asked.set(arena)) return;
  if (peer.self) {
    std::uint64_t size = 0;
    unsigned char* const base = arena_base(arena, size);
    if (base == nullptr) {
      peer.refused.set(arena);
    } else {
      peer.arenas[arena].size = size;
      peer.arenas[arena].base.store(base, std::memory_order_release);
    }
    peer.asked.clear(arena);
    peer.wanted_arena_count.fetch_add(1, std::memory_order_release);
    parts_->service.wake();
    return;
  }
  peer.refused.clear(arena);
  peer.wanted_arena_count.fetch_add(
      1, std::memory_order_release);  // pairs with ConnectionManager::ask_for_arenas
  parts_->service.wake();
}

bool Process::arena_refused(Peer& peer, std::uint32_t arena) noexcept {
  return arena >= kMaxArenas || peer.refused.test(arena);
}

WaitClock& Process::wait_clock() noexcept { return parts_->service.wait_clock(); }

void Process::want_tick(bool on) noexcept { parts_->service.want_tick(on); }

void Process::fence_everyone() noexcept {
  if (parts_->membarrier_works && fence_registered_threads()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Process::on_service_thread() const noexcept {
  return parts_ != nullptr && parts_->service.on_thread();
}

void Peer::wake_service() noexcept {
  // The application may have closed it, and use its number: for a file, a connection.
  if (!wake.is_ours()) return;
  if (!self) return wake_through(wake.get());
  // Its eventfd cannot be told from the application's.
  if (Process::get().has_failed()) return;
  const std::uint64_t one = 1;
  while (::write(wake.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace verbatim::shm
