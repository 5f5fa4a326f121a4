// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/connection_manager.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "providers/shm/fabric/offenders.hpp"
#include "providers/shm/fabric/peer_life.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

constexpr int kAcceptsPerWake = 16;
constexpr int kMessagesPerWake = 8;

}  // namespace

void ConnectionManager::open(int epoll, const WakeSocket& wakes) noexcept {
  epoll_ = epoll;
  wakes_ = &wakes;
}

void ConnectionManager::close(bool forked, bool keeps_epoll) noexcept {
  if (forked || keeps_epoll) epoll_ = -1;  // it is the parent's too, or a stranger's
  while (oldest_ != nullptr) {
    // Not only closed: a child of ours may hold the socket too, and the peer would wait for it.
    if (!forked && oldest_->socket.is_ours()) ::shutdown(oldest_->socket.get(), SHUT_RDWR);
    close_connection(*oldest_);
  }
  bury();
  close_listeners();
  listener_count_.store(0, std::memory_order_relaxed);
}

bool ConnectionManager::has_its_listeners() const noexcept {
  const std::uint32_t count = listener_count_.load(std::memory_order_acquire);
  for (std::uint32_t n = 0; n < count; ++n) {
    // One that could not be made anew is missing, not lost.
    if (listeners_[n].socket.valid() && !listeners_[n].socket.is_ours()) return false;
  }
  return true;
}

bool ConnectionManager::watch(int fd, EventSource& source) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &source;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0) return true;
  const int error = errno;
  if (may_blame({epoll_, fd})) log_warn("watching a descriptor: %s", std::strerror(error));
  return false;
}

bool ConnectionManager::may_blame(std::initializer_list<int> used) const noexcept {
  for (const int fd : used) {
    if (::fcntl(fd, F_GETFD) < 0) return false;
  }
  return has_its_listeners() && around_.folder.is_open() && around_.segment.has_its_files();
}

void ConnectionManager::close_listeners() noexcept {
  const std::uint32_t count = listener_count_.load(std::memory_order_acquire);
  for (std::uint32_t n = 0; n < count; ++n) listeners_[n].socket.reset();
}

int ConnectionManager::add_listener(UniqueFd socket) noexcept {
  const std::uint32_t n = listener_count_.load(std::memory_order_relaxed);
  if (n == kMaxBlocksPerProcess) return ENOMEM;
  Listener& listener = listeners_[n];
  listener.source = {EventSource::kListener, &listener};
  listener.socket = static_cast<UniqueFd&&>(socket);
  if (!watch(listener.socket.get(), listener.source)) {
    listener.socket.reset();
    return EIO;
  }
  // Publishes the listener; pairs with resume_accepting().
  listener_count_.store(n + 1, std::memory_order_release);
  return 0;
}

int ConnectionManager::replace_listener(std::uint32_t n, UniqueFd socket) noexcept {
  Listener& listener = listeners_[n];
  if (listener.socket.valid())
    (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, listener.socket.get(), nullptr);
  listener.socket = static_cast<UniqueFd&&>(socket);
  if (watch(listener.socket.get(), listener.source)) return 0;
  listener.socket.reset();
  return EIO;
}

void ConnectionManager::on_listener(EventSource& source) noexcept {
  const int listener = static_cast<Listener*>(source.object)->socket.get();
  const std::uint64_t now = now_ns();
  for (int i = 0; i < kAcceptsPerWake; ++i) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        static constinit LogOnce once;
        if (once.first())
          log_error("a peer cannot connect: %s (raise 'ulimit -n')", std::strerror(errno));
        pause_accepting(now);
      }
      return;
    }
    pid_t pid = 0;
    unsigned uid = 0;
    if (!peer_credentials(socket.get(), pid, uid)) {
      if (may_blame({socket.get()}) && offenders.first_word_of(pid))
        log_warn("refused a connection of user %u: only processes of one user meet", uid);
      continue;
    }
    make_room_for(pid);
    Connection* const connection = open_connection(static_cast<UniqueFd&&>(socket), now);
    if (connection != nullptr) connection->pid = pid;
    // Who connects speaks at once: its first words are probably here.
    if (connection != nullptr) on_connection(*connection);
  }
}

void ConnectionManager::make_room_for(pid_t pid) noexcept {
  if (half_open_ < kMaxHalfOpenOfOne) return;
  Connection* oldest = nullptr;
  Connection* oldest_of_his = nullptr;
  std::uint32_t all = 0;
  std::uint32_t his = 0;
  for (Connection* c = oldest_; c != nullptr; c = c->next) {
    if (c->peer != nullptr || c->we_connected) continue;
    if (all++ == 0) oldest = c;
    if (pid != 0 && c->pid == pid && his++ == 0) oldest_of_his = c;
  }
  if (his >= kMaxHalfOpenOfOne) {
    log_info("process %d makes connections and no handshakes: the oldest goes",
             static_cast<int>(pid));
    close_connection(*oldest_of_his);
  } else if (all >= kMaxHalfOpen) {
    log_info("too many connections wait for their handshake: the oldest goes");
    close_connection(*oldest);
  }
}

Connection* ConnectionManager::open_connection(UniqueFd socket, std::uint64_t now) noexcept {
  auto* const connection = make_nothrow<Connection>();
  if (connection == nullptr) return nullptr;
  connection->socket = static_cast<UniqueFd&&>(socket);
  connection->opened_at = now;
  if (!watch(connection->socket.get(), connection->source)) {
    destroy_nothrow(connection);
    return nullptr;
  }
  connection->prev = newest_;
  (newest_ != nullptr ? newest_->next : oldest_) = connection;
  newest_ = connection;
  ++half_open_;
  return connection;
}

/// Out of the list and of its peer. The memory stays until bury().
void ConnectionManager::close_connection(Connection& connection) noexcept {
  if (connection.closed) return;
  connection.closed = true;
  (connection.prev != nullptr ? connection.prev->next : oldest_) = connection.next;
  (connection.next != nullptr ? connection.next->prev : newest_) = connection.prev;
  if (connection.peer == nullptr) {
    --half_open_;
  } else {
    Peer& peer = *connection.peer;
    for (Connection*& held : peer.connections) {
      if (held == &connection) held = nullptr;
    }
    // Questions that went out here may never be answered: they go out again on what is left.
    for (auto& word : peer.sent.words) word.store(0, std::memory_order_relaxed);
    unsent_ = true;
  }
  // Explicitly: a forked child's copy of the descriptor would keep the socket in the epoll.
  (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  connection.socket.reset();
  connection.prev = nullptr;
  connection.next = closed_;
  closed_ = &connection;
}

void ConnectionManager::bury() noexcept {
  while (closed_ != nullptr) {
    Connection* const connection = closed_;
    closed_ = connection->next;
    destroy_nothrow(connection);
  }
}

int ConnectionManager::connect_block(std::uint32_t block, std::uint64_t now,
                                     const Peer* sought) noexcept {
  for (Connection* c = oldest_; c != nullptr; c = c->next) {
    if (!c->we_connected || c->peer != nullptr || c->block != block) continue;
    if (!peer_has_ended(c->socket.get(), c->pid)) return 0;  // under way
    close_connection(*c);
    break;
  }
  UniqueFd socket;
  pid_t pid = 0;
  unsigned uid = 0;
  int error = around_.folder.connect(block, socket);
  if (error == 0 && !peer_credentials(socket.get(), pid, uid)) {
    if (may_blame({socket.get()}))
      log_warn(
          "the name of queue pair block 0x%03x belongs to user %u: only processes of one user meet",
          block, uid);
    error = ESRCH;
  }
  if (error == 0 && peer_has_ended(socket.get(), pid)) error = ESRCH;
  // Of a socket whose room is full it is known no better than before whose it is.
  if (error != EAGAIN)
    around_.wanted.note(block, error != ENOENT && error != ECONNREFUSED && error != ESRCH);
  if (error == ECONNREFUSED) around_.folder.remove_stale(block);
  if (error != 0) {
    if (error == EMFILE || error == ENFILE) {
      static constinit LogOnce once;
      if (once.first())
        log_error("cannot connect to a peer: %s (raise 'ulimit -n')", std::strerror(error));
    }
    return error;
  }
  if (sought != nullptr && pid != sought->pid) return ESRCH;
  Connection* const connection = open_connection(static_cast<UniqueFd&&>(socket), now);
  if (connection == nullptr) return ENOMEM;
  connection->we_connected = true;
  connection->block = block;
  connection->pid = pid;
  if (sought != nullptr) connection->sought = sought->identity;
  greet(*connection);
  return 0;
}

int ConnectionManager::say_hello(Connection& connection) noexcept {
  OwnSegment& segment = around_.segment;
  HelloMessage hello;
  hello.identity = segment.head().identity;
  hello.header_address = reinterpret_cast<std::uintptr_t>(segment.base());
  hello.layout_version = kLayoutVersion;
  const int fds[] = {segment.fd(), segment.doorbell_fd(), wakes_->place()};
  return send_message(connection.socket.get(), &hello, sizeof hello, fds);
}

void ConnectionManager::greet(Connection& connection) noexcept {
  // When the other end has gone, that shows when it is read.
  connection.owes_hello = say_hello(connection) != 0;
  if (connection.owes_hello) unsent_ = owes_hellos_ = true;
}

void ConnectionManager::say_met(Connection& connection) noexcept {
  const ArenaMessage met{.head = {.type = MessageType::kMet}};
  connection.owes_met = send_message(connection.socket.get(), &met, sizeof met, {}) == EAGAIN;
  if (connection.owes_met) unsent_ = true;
}

void ConnectionManager::note_met_by(Peer& peer) noexcept {
  if (!peer.knows_us.exchange(true, std::memory_order_acq_rel)) around_.hooks.peer_knows_us(peer);
}

void ConnectionManager::on_connection(Connection& connection) noexcept {
  bool reset_seen = false;
  for (int i = 0; i < kMessagesPerWake && !connection.closed; ++i) {
    Received received;
    const int error = receive_message(connection.socket.get(), received);
    if (error == EAGAIN || error == EWOULDBLOCK) return;
    if (error == ECONNRESET && !reset_seen) {
      // It left without reading all of ours; what it said before may still be there.
      reset_seen = true;
      continue;
    }
    if (error == 0 && handle(connection, received)) continue;
    Peer* const peer = connection.peer;
    close_connection(connection);
    if (peer == nullptr || !peer->alive.load(std::memory_order_relaxed)) return;
    for (const Connection* left : peer->connections) {
      if (left != nullptr) return;
    }
    if (error == 0) {
      declare_dead(*peer, "it broke the protocol");
    } else {
      lose(*peer);
    }
    return;
  }
}

void ConnectionManager::lose(Peer& peer) noexcept {
  // It may have given up a connection that we were slow to accept, or have had no descriptor left
  // for our answer. Who cannot be watched otherwise ends with his socket.
  const std::uint64_t now = now_ns();
  const bool is_watched = peer.pidfd.valid() || peer.life_fd.valid();
  // Who ends each connection at once keeps us no busier than others.
  const bool is_soon = now - peer.sought_at < kSeekNs;
  if (!is_watched || (!is_soon && !seek(peer, now))) return declare_dead(peer, "it left");
  log_info("the connection to process %d has ended: it is looked for", static_cast<int>(peer.pid));
  peer.lost_at = now;
  if (lost_++ == 0 || now + kSeekNs < next_seek_) next_seek_ = now + kSeekNs;
}

bool ConnectionManager::seek(Peer& peer, std::uint64_t now) noexcept {
  peer.sought_at = now;
  const SegmentHeader& head = peer.segment.live_head();
  const std::uint32_t count = head.block_count.load(std::memory_order_acquire);
  for (std::uint32_t k = 0; k < count && k < kMaxBlocksPerProcess; ++k) {
    const std::uint32_t block = head.blocks[k].load(std::memory_order_relaxed);
    if (block == 0 || block >= kQpnBlocks) continue;
    const int error = connect_block(block, now, &peer);
    if (error != ENOENT && error != ECONNREFUSED && error != ESRCH) return true;
  }
  return false;
}

void ConnectionManager::stop_seeking(Peer& peer) noexcept {
  if (peer.lost_at == 0) return;
  peer.lost_at = 0;
  --lost_;
}

bool ConnectionManager::handle(Connection& connection, Received& received) noexcept {
  if (received.lacks_room && !received.too_much) return do_without(connection, received);
  Message message;
  if (received.too_much ||
      !parse_message({received.data, received.bytes}, received.fd_count, message)) {
    log_info("closing a connection: %s",
             received.too_much ? "an oversized message" : "a malformed message");
    return false;
  }
  if (connection.peer == nullptr) {
    return message.type == MessageType::kHello && meet(connection, message.hello, received);
  }
  Peer& peer = *connection.peer;
  switch (message.type) {
    case MessageType::kWantArena:
      answer_want(connection, message.arena.arena);
      return true;
    case MessageType::kArena:
      take_arena(peer, message.arena, received.fds[0]);
      return true;
    case MessageType::kRefused:
      refuse(peer, message.arena.arena);
      return true;
    case MessageType::kMet:
      note_met_by(peer);
      return true;
    case MessageType::kHello:
      return false;  // once is enough
  }
  return false;
}

bool ConnectionManager::do_without(Connection& connection, const Received& received) noexcept {
  static constinit LogOnce once;
  if (once.first())
    log_error("what a peer sent has no room in our table of descriptors (raise 'ulimit -n')");
  // A stranger who is still wanted is met another time; an arena, the only message that has one
  // descriptor, is asked for again.
  Message message;
  if (connection.peer == nullptr || !parse_message({received.data, received.bytes}, 1, message))
    return false;
  refuse(*connection.peer, message.arena.arena);
  return true;
}

void ConnectionManager::on_death(Peer& peer) noexcept { declare_dead(peer, "its process ended"); }

void ConnectionManager::declare_dead(Peer& peer, const char* how) noexcept {
  if (!peer.alive.load(std::memory_order_relaxed)) return;
  log_info("peer %d is gone: %s", static_cast<int>(peer.pid), how);
  // The descriptor itself stays open: the data path polls it before it trusts the pid.
  if (peer.pidfd.valid()) {
    (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, peer.pidfd.get(), nullptr);
  } else if (peer.life_fd.valid()) {
    --life_locks_;
  }
  for (Connection* connection : peer.connections) {
    if (connection != nullptr) close_connection(*connection);
  }
  stop_seeking(peer);
  peer.died_at = now_ns();
  --living_;
  if (dead_++ == 0 || peer.died_at + kRetireAfterNs < next_retire_)
    next_retire_ = peer.died_at + kRetireAfterNs;
  peer.alive.store(false, std::memory_order_release);
  around_.hooks.peer_dead(peer);
  remove_names(peer);
}

/// Of what it says are its blocks, those whose names nobody stands behind.
void ConnectionManager::remove_names(const Peer& peer) noexcept {
  const SegmentHeader& head = peer.segment.live_head();
  const std::uint32_t count = head.block_count.load(std::memory_order_acquire);
  for (std::uint32_t k = 0; k < count && k < kMaxBlocksPerProcess; ++k) {
    const std::uint32_t block = head.blocks[k].load(std::memory_order_relaxed);
    if (block < kQpnBlocks) around_.folder.remove_stale(block);
  }
}

}  // namespace verbatim::shm
