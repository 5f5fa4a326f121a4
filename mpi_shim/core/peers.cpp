// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/peers.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "mpi_shim/core/output.hpp"
#include "mpi_shim/core/process_life.hpp"
#include "mpi_shim/core/rings.hpp"
#include "mpi_shim/core/sharing.hpp"
#include "mpi_shim/core/streams.hpp"
#include "mpi_shim/core/world.hpp"
#include "runtime/time/clock.hpp"

namespace vmpi {

LastingArray<Peer*> peers;

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kLongestInterval = 200 * kMillisecond;
/// A peer elsewhere, of which nothing is seen, may compute so long before it looks at its messages.
constexpr std::int64_t kPatience = 1'800 * 1'000 * kMillisecond;

Peer* first_asking = nullptr;

void key_of(std::uint32_t rank, char (&out)[32]) noexcept {
  (void)std::snprintf(out, sizeof out, "verbatim-%" PRIu32, rank);
}

void greet(Peer& peer, bool please_answer) noexcept {
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.job = hash_of_job();
  hello.rank = world.is_of_teams ? fabric.address.token : static_cast<std::uint32_t>(world.rank);
  hello.qpn = peer.qp->qp_num;
  hello.has_yours = peer.is_connected ? 1 : 0;
  hello.please_answer = please_answer ? 1 : 0;
  fabric.say_hello(peer.ah, peer.address.ud_qpn, hello);
}

/// Peers with a queue pair, hashed by its number: it has room for twice as many.
LastingArray<Peer*> by_qp;
std::size_t pairs = 0;

void put_by_qp(Peer& peer) noexcept {
  const std::size_t mask = by_qp.size() - 1;
  std::size_t at = peer.qp->qp_num & mask;
  while (by_qp[at] != nullptr) at = (at + 1) & mask;
  by_qp[at] = &peer;
}

bool remember_qp(Peer& peer) noexcept {
  if (2 * (pairs + 1) > by_qp.size()) {
    Array<Peer*> more;
    if (!more.resize(by_qp.empty() ? 16 : 2 * by_qp.size())) return false;
    const Array<Peer*> old(std::exchange(by_qp, std::move(more)));
    for (Peer* known : old)
      if (known != nullptr) put_by_qp(*known);
  }
  ++pairs;
  put_by_qp(peer);
  return true;
}

/// What a Hello needs: where the peer is, and a queue pair for it.
bool prepare(Peer& peer) noexcept {
  if (!peer.has_address && !learn_address(peer)) {
    fail_peer(peer, "its address is not known to the launcher");
    return false;
  }
  if (peer.ah == nullptr) peer.ah = fabric.make_handle(peer.address);
  if (peer.ah != nullptr && peer.qp == nullptr) {
    peer.qp = fabric.make_queue_pair();
    if (peer.qp != nullptr && !remember_qp(peer)) {
      fail_peer(peer, "no memory");
      return false;
    }
  }
  if (peer.ah == nullptr || peer.qp == nullptr) {
    fail_peer(peer, std::strerror(errno));
    return false;
  }
  return true;
}

}  // namespace

void be_ready(Peer& peer) noexcept {
  if (peer.is_ready) return;
  peer.is_ready = true;
  if (gone_ranks != 0) tell_of_losses(peer);
  if (peer.has_work()) mark_busy(peer);
}

Peer* peer_of_qp(std::uint32_t qpn) noexcept {
  if (by_qp.empty()) return nullptr;
  const std::size_t mask = by_qp.size() - 1;
  for (std::size_t at = qpn & mask; by_qp[at] != nullptr; at = (at + 1) & mask)
    if (by_qp[at]->qp->qp_num == qpn) return by_qp[at];
  return nullptr;
}

std::int64_t now_ns() noexcept { return static_cast<std::int64_t>(verbatim::now_ns()); }

Peer* peer_of(std::uint32_t world_rank) noexcept {
  if (Peer* const known = known_peer(world_rank); known != nullptr) return known;
  if (world_rank >= static_cast<std::uint32_t>(world.size)) return nullptr;
  if (world_rank >= peers.size() && !peers.resize(static_cast<std::size_t>(world.size)))
    return nullptr;
  void* const memory = std::malloc(sizeof(Peer));
  if (memory == nullptr) return nullptr;
  Peer* const made = ::new (memory) Peer();
  made->rank = world_rank;
  peers[world_rank] = made;
  return made;
}

Peer* meet_peer(const Address& address) noexcept {
  for (Peer* known : peers)
    if (known != nullptr && std::memcmp(&known->address, &address, sizeof address) == 0)
      return known;
  ++world.size;
  Peer* const met = peer_of(static_cast<std::uint32_t>(world.size - 1));
  if (met == nullptr) {
    --world.size;
    return nullptr;
  }
  met->address = address;
  met->has_address = true;
  return met;
}

void know_own_address() noexcept {
  Address& own = fabric.address;
  own.host = host_identity();
  own.process = static_cast<std::int32_t>(::getpid());
  own.began = start_of_process(own.process);
}

bool publish_address() noexcept {
  char key[32];
  key_of(static_cast<std::uint32_t>(world.rank), key);
  know_own_address();
  const Address& own = fabric.address;
  char value[160];
  int length = std::snprintf(value, sizeof value,
                             "1:%" PRIu32 ":%" PRIu32 ":%" PRIx64 ":%" PRId32 ":%" PRIu64 ":",
                             std::uint32_t{own.lid}, own.ud_qpn, own.host, own.process, own.began);
  for (unsigned char byte : own.gid.raw)
    length += std::snprintf(value + length, sizeof value - static_cast<std::size_t>(length), "%02x",
                            byte);
  return publish(key, value);
}

bool learn_address(Peer& peer) noexcept {
  char key[32];
  key_of(peer.rank, key);
  char value[256];
  if (look_up(key, value, sizeof value) != KeyAnswer::kValue) return false;
  Address found = {};
  std::uint32_t lid = 0;
  char gid[33] = {};
  if (std::sscanf(value,
                  "1:%" SCNu32 ":%" SCNu32 ":%" SCNx64 ":%" SCNd32 ":%" SCNu64 ":%32[0-9a-f]", &lid,
                  &found.ud_qpn, &found.host, &found.process, &found.began, gid) != 6 ||
      lid > 0xffff || found.ud_qpn > 0xffffff || std::strlen(gid) != 32)
    return false;
  found.lid = static_cast<std::uint16_t>(lid);
  for (int i = 0; i < 16; ++i) {
    const char digits[3] = {gid[2 * i], gid[2 * i + 1], '\0'};
    found.gid.raw[i] = static_cast<std::uint8_t>(std::strtoul(digits, nullptr, 16));
  }
  peer.address = found;
  peer.has_address = true;
  return true;
}

void begin_connecting(Peer& peer) noexcept {
  if (peer.is_asking || peer.is_ready || peer.is_dead || !prepare(peer)) return;
  peer.is_asking = true;
  peer.next_asking = first_asking;
  first_asking = &peer;
  peer.ask_interval = kMillisecond;
  peer.asked_since = now_ns();
  peer.ask_at = peer.asked_since + peer.ask_interval;
  greet(peer, true);
}

namespace {

/// Null: nobody that it could be from, or no memory.
Peer* sender_of(const Hello& hello, std::uint32_t from_qpn) noexcept {
  if (!world.is_of_teams) {
    const bool is_other = hello.rank < static_cast<std::uint32_t>(world.size) &&
                          hello.rank != static_cast<std::uint32_t>(world.rank);
    return is_other ? peer_of(hello.rank) : nullptr;
  }
  // One that is in a team with us before we know its address asks again.
  for (Peer* known : peers)
    if (known != nullptr && known->address.token == hello.rank && known->address.ud_qpn == from_qpn)
      return known;
  return nullptr;
}

}  // namespace

void hear_hello(const Hello& hello, std::uint32_t from_qpn) noexcept {
  // A datagram may come from anybody who guesses the Q_Key: it must be of this job, and from where
  // the launcher, or the team's exchange, says that this rank is.
  if (hello.magic != kHelloMagic || hello.job != hash_of_job() || hello.qpn > 0xffffff) return;
  Peer* const peer = sender_of(hello, from_qpn);
  if (peer == nullptr || peer->is_dead) return;
  if (!peer->has_address && !learn_address(*peer)) return;
  if (peer->address.ud_qpn != from_qpn || !prepare(*peer)) return;
  const bool was_connected = peer->is_connected;
  if (!was_connected) {
    if (!fabric.connect(peer->qp, peer->address, hello.qpn)) {
      fail_peer(*peer, std::strerror(errno));
      return;
    }
    peer->is_connected = true;
  }
  if (hello.has_yours != 0) be_ready(*peer);
  if (hello.please_answer != 0 || !was_connected) greet(*peer, !peer->is_ready);
}

bool is_anybody_asked() noexcept { return first_asking != nullptr; }

bool ask_again() noexcept {
  bool has_said = false;
  const std::int64_t now = now_ns();
  for (Peer** link = &first_asking; *link != nullptr;) {
    Peer& peer = **link;
    if (peer.is_ready || peer.is_dead) {
      peer.is_asking = false;
      *link = peer.next_asking;
      continue;
    }
    link = &peer.next_asking;
    if (now < peer.ask_at) continue;
    peer.ask_interval = std::min(2 * peer.ask_interval, kLongestInterval);
    peer.ask_at = now + peer.ask_interval;
    if (now - peer.asked_since > kPatience) {
      fail_peer(peer, "it has not answered for half an hour");
    } else {
      greet(peer, true);
      has_said = true;
    }
  }
  return has_said;
}

void stop_peers() noexcept {
  each_peer([](Peer& peer) noexcept {
    drop_windows(peer);
    drop_rings(peer);
    if (peer.qp != nullptr) (void)ibv_destroy_qp(peer.qp);
    if (peer.ah != nullptr) (void)ibv_destroy_ah(peer.ah);
    while (peer.first_answer != nullptr) {
      Answer* const gone = peer.first_answer;
      peer.first_answer = gone->next;
      std::free(gone);
    }
    peer.~Peer();
    std::free(&peer);
  });
  peers = {};
  by_qp = {};
  pairs = 0;
  first_asking = nullptr;
  talked_to = nullptr;
}

}  // namespace vmpi
