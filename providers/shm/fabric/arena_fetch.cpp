// SPDX-License-Identifier: BSD-2-Clause
// The connection manager's arenas: peers ask for ours, we ask for theirs and map what comes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "providers/shm/fabric/connection_manager.hpp"
#include "providers/shm/fabric/offenders.hpp"
#include "runtime/base/log.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/memory/memory_file.hpp"

namespace verbatim::shm {
namespace {

static_assert(kMaxArenas == kMaxArenaNumbers);

/// An answer that did not fit for so long goes to somebody who does not read. He may do so again:
/// a debugger had stopped him.
constexpr std::uint64_t kOwedNs = 5'000'000'000;

template <class F>
void each_bit(std::uint64_t word, F f) noexcept {
  for (; word != 0; word &= word - 1) f(static_cast<std::uint32_t>(__builtin_ctzll(word)));
}

/// Sends the arena, or the refusal. 0, EAGAIN, or what ended the connection.
int send_arena(Connection& connection, std::uint32_t number) noexcept {
  ArenaMessage message;
  message.arena = number;
  UniqueFd file;
  int error = arena_give(number, file, message.size);
  if (error == EMFILE || error == ENFILE) return EAGAIN;
  if (error != 0) {
    message.head.type = MessageType::kRefused;
    return send_message(connection.socket.get(), &message, sizeof message, {});
  }
  message.head.type = MessageType::kArena;
  const int fd = file.get();
  return send_message(connection.socket.get(), &message, sizeof message, {&fd, 1});
}

}  // namespace

void ConnectionManager::answer_want(Connection& connection, std::uint32_t arena) noexcept {
  // An ended connection shows when it is read.
  if (!connection.owes_hello && send_arena(connection, arena) != EAGAIN) return;
  connection.owed.set(arena);
  unsent_ = true;
}

void ConnectionManager::refuse(Peer& peer, std::uint32_t arena) noexcept {
  if (!peer.asked.test(arena)) return;
  peer.refused.set(arena);
  peer.sent.clear(arena);
  peer.asked.clear(arena);
  peer.wanted_arena_count.fetch_sub(1, std::memory_order_relaxed);
  around_.hooks.arena_ready(peer);
}

void ConnectionManager::take_arena(Peer& peer, const ArenaMessage& message,
                                   UniqueFd& file) noexcept {
  const std::uint32_t number = message.arena;
  Arena& arena = peer.arenas[number];
  // Asked twice (two sockets), answered twice: the first mapping stays.
  if (!peer.asked.test(number) || arena.base.load(std::memory_order_relaxed) != nullptr) return;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0 ||
      static_cast<std::uint64_t>(status.st_size) != message.size ||
      (memory_file_seals(file.get()) & F_SEAL_SHRINK) == 0) {
    if (may_blame({file.get()}) && offenders.first_word_of(peer.pid))
      log_warn("process %d sent an arena that is not what it must be", static_cast<int>(peer.pid));
    refuse(peer, number);
    return;
  }
  unsigned char* base = nullptr;
  if (map_memory_file(file.get(), message.size, "a peer's shared memory", base, 1, true) != 0) {
    refuse(peer, number);
    return;
  }
  arena.size = message.size;
  // Publishes size and mapping; pairs with the acquire of whoever reaches into the arena.
  arena.base.store(base, std::memory_order_release);
  peer.sent.clear(number);
  peer.asked.clear(number);
  peer.wanted_arena_count.fetch_sub(1, std::memory_order_relaxed);
  around_.hooks.arena_ready(peer);
}

void ConnectionManager::ask_peer_for_arenas(Peer& peer) noexcept {
  Connection* connection = nullptr;
  for (Connection* held : peer.connections) {
    if (held != nullptr && !held->owes_hello) connection = held;
  }
  if (connection == nullptr) return;
  for (std::uint32_t w = 0; w < kMaxArenas / 64; ++w) {
    const std::uint64_t due = peer.asked.words[w].load(std::memory_order_acquire) &
                              ~peer.sent.words[w].load(std::memory_order_relaxed);
    each_bit(due, [&](std::uint32_t bit) {
      ArenaMessage message;
      message.arena = w * 64 + bit;
      const int error = send_message(connection->socket.get(), &message, sizeof message, {});
      if (error == 0) peer.sent.set(message.arena);
      if (error == EAGAIN) unsent_ = true;
    });
  }
}

void ConnectionManager::ask_for_arenas() noexcept {
  for (Peer* peer = around_.peers.first(); peer != nullptr; peer = peer->next) {
    if (peer->wanted_arena_count.load(std::memory_order_acquire) == 0) continue;
    if (!peer->self) {
      if (peer->alive.load(std::memory_order_relaxed)) ask_peer_for_arenas(*peer);
      continue;
    }
    // Ours: Process::want_arena has filled them in, here they are only announced.
    peer->wanted_arena_count.store(0, std::memory_order_relaxed);
    around_.hooks.arena_ready(*peer);
  }
}

void ConnectionManager::forget_refusals() noexcept {
  for (Peer* peer = around_.peers.first(); peer != nullptr; peer = peer->next) {
    for (auto& word : peer->refused.words) {
      if (word.load(std::memory_order_relaxed) != 0) word.store(0, std::memory_order_release);
    }
  }
}

void ConnectionManager::send_unsent(Connection& connection, std::uint64_t now) noexcept {
  bool left = false;
  bool sent = false;
  for (std::uint32_t w = 0; w < kMaxArenas / 64; ++w) {
    each_bit(connection.owed.words[w].load(std::memory_order_relaxed), [&](std::uint32_t bit) {
      const std::uint32_t number = w * 64 + bit;
      if (!left && send_arena(connection, number) != EAGAIN) {
        connection.owed.clear(number);
        sent = true;
      } else {
        left = true;
      }
    });
  }
  if (!left) {
    connection.owed_since = 0;
  } else if (sent || connection.owed_since == 0) {
    connection.owed_since = now;
  }
  if (left) (now - connection.owed_since > kOwedNs ? unread_ : unsent_) = true;
  ask_peer_for_arenas(*connection.peer);
}

}  // namespace verbatim::shm
