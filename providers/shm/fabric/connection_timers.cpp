// SPDX-License-Identifier: BSD-2-Clause
// What the connection manager does by the clock, and when it wants to be called next.
#include <sys/epoll.h>

#include <cerrno>

#include "providers/shm/fabric/connection_manager.hpp"
#include "providers/shm/fabric/peer_life.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {
namespace {

constexpr std::uint64_t kAcceptPauseNs = 100'000'000;
constexpr std::uint64_t kLifeCheckNs = 10'000'000;
constexpr std::uint64_t kUnsentRetryNs = 2'000'000;
/// ... of what its reader leaves unread for long.
constexpr std::uint64_t kUnreadRetryNs = 100'000'000;
/// An own connection that is late, and still wanted, is looked at again after this.
constexpr std::uint64_t kLateLookNs = 1'000'000'000;
/// Whoever releases the last hold of a dead peer says so; a word that crossed with its death is
/// made good after this.
constexpr std::uint64_t kRetireLookNs = 1'000'000'000;

}  // namespace

std::uint64_t ConnectionManager::run_due(std::uint64_t now) noexcept {
  std::uint64_t next = connect_wanted(now);
  for (const std::uint64_t when :
       {close_late_handshakes(now), resume_accepting(now), send_all_unsent(now), seek_lost(now),
        check_life_locks(now), retire_peers(now)}) {
    if (when < next) next = when;
  }
  return next;
}

std::uint64_t ConnectionManager::retire_peers(std::uint64_t now) noexcept {
  if (dead_ == 0) return kNever;
  const bool released = around_.peers.take_released();
  if (now < next_retire_ && !released) return next_retire_;
  if (now >= next_retire_) {
    next_retire_ = now + kRetireLookNs;
    around_.hooks.dead_stay();
  }
  Peer* retired = around_.peers.take_retired(now > kRetireAfterNs ? now - kRetireAfterNs : 0);
  while (retired != nullptr) {
    Peer* const following = retired->next;
    remove_names(
        *retired);  // again: a child that it was forking then has let go of its sockets now
    log_debug("forgot process %d", static_cast<int>(retired->pid));
    around_.peers.rest(retired);
    --dead_;
    retired = following;
  }
  return dead_ != 0 ? next_retire_ : kNever;
}

std::uint64_t ConnectionManager::connect_wanted(std::uint64_t now) noexcept {
  // What does not fit now would not fit on another connection either.
  if (owes_hellos_) return unsent_tried_ + kUnsentRetryNs;
  std::uint32_t due[WantedBlocks::kCapacity];
  std::uint64_t next = kNever;
  const std::uint32_t count = around_.wanted.take_due(now, due, next);
  for (std::uint32_t i = 0; i < count && !owes_hellos_; ++i)
    (void)connect_block(due[i], now, nullptr);
  return next;
}

/// Who is slow still has our HELLO before him: another connection would only come after it. If he
/// ends, so does this one.
bool ConnectionManager::is_awaited(const Connection& connection) noexcept {
  if (!connection.we_connected) return false;
  if (around_.wanted.has(connection.block)) return true;
  if (connection.sought == 0) return false;
  const Peer* const peer = around_.peers.find_living(connection.sought);
  return peer != nullptr && peer->lost_at != 0;
}

std::uint64_t ConnectionManager::close_late_handshakes(std::uint64_t now) noexcept {
  std::uint64_t next = kNever;
  for (Connection* c = half_open_ != 0 ? oldest_ : nullptr; c != nullptr;) {
    Connection* const following = c->next;
    if (c->peer == nullptr) {
      std::uint64_t look = c->opened_at + kHandshakeNs;
      if (now >= look) {
        look = now + kLateLookNs;
        if (!is_awaited(*c)) {
          log_info("a connection made no handshake within %llu s", kHandshakeNs / 1'000'000'000ull);
          close_connection(*c);
          look = kNever;
        }
      }
      if (look < next) next = look;
      // The others are younger.
      if (look == c->opened_at + kHandshakeNs) return next;
    }
    c = following;
  }
  return next;
}

void ConnectionManager::pause_accepting(std::uint64_t now) noexcept {
  // A listener that cannot be served stays readable: watching it would turn the thread into a
  // spinner.
  const std::uint32_t count = listener_count_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, listeners_[i].socket.get(), nullptr);
  }
  accept_paused_until_ = now + kAcceptPauseNs;
}

std::uint64_t ConnectionManager::resume_accepting(std::uint64_t now) noexcept {
  if (accept_paused_until_ == 0) return kNever;
  if (now < accept_paused_until_) return accept_paused_until_;
  accept_paused_until_ = 0;
  const std::uint32_t count = listener_count_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &listeners_[i].source;
    // One that came while the others paused is watched already.
    (void)::epoll_ctl(epoll_, EPOLL_CTL_ADD, listeners_[i].socket.get(), &event);
  }
  return kNever;
}

std::uint64_t ConnectionManager::send_all_unsent(std::uint64_t now) noexcept {
  const auto again = [this] {
    return unsent_   ? unsent_tried_ + kUnsentRetryNs
           : unread_ ? unsent_tried_ + kUnreadRetryNs
                     : kNever;
  };
  if (now < again()) return again();
  unsent_ = unread_ = owes_hellos_ = false;
  unsent_tried_ = now;
  for (Connection* c = oldest_; c != nullptr; c = c->next) {
    // A HELLO is the first on its socket: when one does not fit, none does.
    if (c->owes_hello && !owes_hellos_) {
      const int error = say_hello(*c);
      c->owes_hello = error != 0;
      owes_hellos_ = error == EAGAIN;
    }
    if (c->owes_hello) unsent_ = true;
    if (c->owes_met) say_met(*c);
    if (!c->owes_hello && c->peer != nullptr) send_unsent(*c, now);
  }
  return again();
}

std::uint64_t ConnectionManager::seek_lost(std::uint64_t now) noexcept {
  if (lost_ == 0) return kNever;
  if (now < next_seek_) return next_seek_;
  next_seek_ = now + kSlowSeekNs;
  for (Peer* peer = around_.peers.first(); peer != nullptr; peer = peer->next) {
    if (peer->lost_at == 0) continue;
    // It may be slow, or stopped: it lives while nothing that it is watched by says otherwise.
    const bool is_missed =
        peer->holders.load(std::memory_order_relaxed) != 0 || now - peer->lost_at < kHandshakeNs;
    const std::uint64_t due = peer->sought_at + (is_missed ? kSeekNs : kSlowSeekNs);
    if (now >= due && !seek(*peer, now)) {
      declare_dead(*peer, "it left");
      continue;
    }
    const std::uint64_t next = is_missed ? now + kSeekNs : now >= due ? now + kSlowSeekNs : due;
    if (next < next_seek_) next_seek_ = next;
  }
  return lost_ == 0 ? kNever : next_seek_;
}

std::uint64_t ConnectionManager::check_life_locks(std::uint64_t now) noexcept {
  if (life_locks_ == 0) return kNever;
  if (now < next_life_check_) return next_life_check_;
  next_life_check_ = now + kLifeCheckNs;
  for (Peer* peer = around_.peers.first(); peer != nullptr; peer = peer->next) {
    if (peer->alive.load(std::memory_order_relaxed) && !peer->pidfd.valid() &&
        peer->life_fd.valid() && !life_lock_held(peer->life_fd.get())) {
      declare_dead(*peer, "its process ended");
    }
  }
  return next_life_check_;
}

}  // namespace verbatim::shm
