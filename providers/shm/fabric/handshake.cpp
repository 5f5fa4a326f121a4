// SPDX-License-Identifier: BSD-2-Clause
// The connection manager's handshake: from a stranger's HELLO to a Peer.
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "providers/shm/fabric/cma_probe.hpp"
#include "providers/shm/fabric/connection_manager.hpp"
#include "providers/shm/fabric/offenders.hpp"
#include "providers/shm/fabric/peer_life.hpp"
#include "providers/shm/fabric/wake_socket.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {
namespace {

std::uint64_t inode_of(int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

void note_reached(Peer& peer, std::uint32_t block) noexcept {
  const std::uint32_t count = peer.reached_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (peer.reached[i] == block) return;
  }
  if (count == kMaxBlocksPerProcess) return;
  peer.reached[count] = block;
  peer.reached_count.store(count + 1,
                           std::memory_order_release);  // pairs with PeerTable::hold_owner
}

}  // namespace

bool ConnectionManager::meet(Connection& connection, const HelloMessage& hello,
                             Received& received) noexcept {
  if (connection.sought != 0 && hello.identity != connection.sought) {
    Peer* const lost = around_.peers.find_living(connection.sought);
    if (lost != nullptr && lost->lost_at != 0) declare_dead(*lost, "its name is another's");
  }
  if (hello.layout_version != kLayoutVersion) {
    static constinit LogOnce once;
    if (once.first()) {
      log_warn(
          "a peer speaks version %u of the shared memory layout, we speak %u: both must use the "
          "same "
          "version "
          "of the library",
          hello.layout_version, kLayoutVersion);
    }
    return false;
  }
  if (hello.identity == around_.segment.head().identity)
    return false;  // ourselves: loopback needs no socket
  // One that we took for dead is met anew.
  Peer* peer = around_.peers.find_living(hello.identity);
  if (peer != nullptr) {
    // The same process once more, if it shows the same file; an identity alone can be made up. And
    // the file may have come to somebody else: he got it when he met its owner.
    pid_t pid = 0;
    unsigned uid = 0;
    if (inode_of(received.fds[0].get()) != peer->segment_inode ||
        !peer_credentials(connection.socket.get(), pid, uid) || pid != peer->pid) {
      return false;
    }
    return join(connection, *peer);
  }
  peer = make_acquaintance(connection, hello, received);
  if (peer == nullptr) return false;
  peer->cma.store(probe_cma(peer->pid, hello.header_address, hello.identity),
                  std::memory_order_relaxed);
  connection.peer = peer;
  peer->connections[0] = &connection;
  --half_open_;
  if (connection.we_connected) {
    note_reached(*peer, connection.block);
    // It met us before it answered.
    peer->knows_us.store(true, std::memory_order_relaxed);
  }
  ++living_;
  if (peer->pidfd.valid()) {
    (void)watch(peer->pidfd.get(), peer->death);
  } else if (peer->life_fd.valid()) {
    ++life_locks_;
  }
  around_.peers.add(*peer);
  // Known before no longer wanted: who finds neither takes it for somebody who is not there.
  if (connection.we_connected) around_.wanted.forget(connection.block);
  log_debug("met process %d (%s direct copies)", static_cast<int>(peer->pid),
            peer->cma.load(std::memory_order_relaxed) == Cma::kWorks ? "with" : "without");
  around_.hooks.peer_ready(*peer);
  // Only now the answer: who has it may send at once, and what it sends must find it known here.
  // Likewise who answered us.
  if (connection.we_connected)
    say_met(connection);
  else
    greet(connection);
  return true;
}

bool ConnectionManager::join(Connection& connection, Peer& peer) noexcept {
  Connection** place = nullptr;
  for (Connection*& held : peer.connections) {
    if (held == nullptr) place = &held;
  }
  if (!connection.we_connected) {
    if (place == nullptr) return false;
    greet(connection);
  } else {
    note_reached(peer, connection.block);
    note_met_by(peer);
    around_.wanted.forget(connection.block);
    // A further block of a process that we know: the way was worth finding, the socket is not
    // needed.
    for (const Connection* held : peer.connections) {
      if (held != nullptr && held->we_connected) return false;
    }
    if (place == nullptr) return false;
  }
  connection.peer = &peer;
  *place = &connection;
  if (connection.we_connected) say_met(connection);
  --half_open_;
  if (peer.lost_at != 0) {
    stop_seeking(peer);
    unsent_ = true;  // what was asked on the connection that ended
  }
  close_doubles(peer);
  // Who waits for this block may look again: it was unknown that the peer owns it.
  if (connection.we_connected) around_.hooks.peer_ready(peer);
  return true;
}

void ConnectionManager::close_doubles(Peer& peer) noexcept {
  if (around_.segment.head().identity > peer.identity) return;  // the other side's part
  bool ours = false;
  for (const Connection* held : peer.connections)
    ours = ours || (held != nullptr && held->we_connected);
  if (!ours) return;
  for (Connection* held : peer.connections) {
    if (held != nullptr && !held->we_connected) close_connection(*held);
  }
}

Peer* ConnectionManager::make_acquaintance(Connection& connection, const HelloMessage& hello,
                                           Received& received) noexcept {
  if (around_.peers.full()) {
    static constinit LogOnce once;
    if (once.first())
      log_error("%u processes are known to this one: no more fit", PeerTable::kMaxPeers);
    return nullptr;
  }
  const int socket = connection.socket.get();
  Peer* const peer = around_.peers.make();
  if (peer == nullptr) return nullptr;
  UniqueFd& segment = received.fds[0];
  unsigned uid = 0;
  int error = peer->segment.map(segment.get(), received.fds[1].get());
  if (error == 0 && peer->segment.identity() != hello.identity) error = EPROTO;
  UniqueFd wake;
  if (error == 0) error = wakes_->connect(received.fds[2].get(), wake);
  peer->wake = static_cast<UniqueFd&&>(wake);
  if (!peer_credentials(socket, peer->pid, uid) && error == 0) error = EACCES;
  if (error == 0 && life_lock_is_others(segment.get(), peer->pid)) error = EPROTO;
  if (error != 0) {
    const bool is_its_fault =
        may_blame({socket, received.fds[0].get(), received.fds[1].get(), received.fds[2].get()});
    if (is_its_fault && offenders.first_word_of(peer->pid)) {
      log_warn("refused a process (process %d): %s", static_cast<int>(peer->pid),
               error == EPROTO
                   ? "its segment, doorbells or way to wake it are not what they must be"
                   : std::strerror(error));
    }
    around_.peers.rest(peer);
    return nullptr;
  }
  peer->identity = hello.identity;
  peer->segment_inode = inode_of(segment.get());
  peer->pidfd = open_peer_pidfd(socket, peer->pid);
  if (!peer->pidfd.valid()) {
    if (life_lock_held(segment.get())) {
      peer->life_fd = static_cast<UniqueFd&&>(segment);
    } else {
      log_info(
          "process %d can be watched by its socket only: its end shows when its children have "
          "ended too",
          static_cast<int>(peer->pid));
    }
  }
  const bool peer_lacks =
      __atomic_load_n(&peer->segment.live_head().sender_fence, __ATOMIC_RELAXED) != 0;
  const bool we_lack = around_.segment.head().sender_fence != 0;
  peer->sender_fence.store(peer_lacks || we_lack, std::memory_order_relaxed);
  return peer;
}

}  // namespace verbatim::shm
