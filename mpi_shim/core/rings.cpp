// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/rings.hpp"

#include <verbatim/map.h>
#include <verbatim/memory.h>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <string_view>

#include "mpi_shim/core/input.hpp"
#include "mpi_shim/core/output.hpp"
#include "runtime/base/environment.hpp"

namespace vmpi {

LastingArray<InRing*> rings;

namespace {

/// Messages that a peer must have sent: most pairs of a large job talk little.
constexpr std::uint64_t kHeardBefore = 8;
/// Each costs a look at every poll, and its memory.
constexpr std::uint32_t kMostRings = 64;
/// Messages of one ring, before others and the completion queue have their turn.
constexpr int kAtOnce = 16;

std::uint32_t made_rings = 0;

InRing* make_ring(Peer& peer) noexcept {
  void* const shared = vbt_alloc_shared(sizeof(RingMemory));
  if (shared == nullptr) return nullptr;
  // It is zeroed: that is an empty ring.
  auto* const memory = static_cast<RingMemory*>(shared);
  ibv_mr* const mr =
      ibv_reg_mr(fabric.pd, shared, sizeof(RingMemory),
                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  auto* const place = mr != nullptr ? std::malloc(sizeof(InRing)) : nullptr;
  if (place != nullptr) return ::new (place) InRing{memory, mr, &peer, RingReader(*memory), false};
  if (mr != nullptr) (void)ibv_dereg_mr(mr);
  (void)vbt_free_shared(shared);
  return nullptr;
}

void destroy_ring(InRing& ring) noexcept {
  (void)ibv_dereg_mr(ring.mr);
  (void)vbt_free_shared(ring.memory);
  std::free(&ring);
  --made_rings;
}

bool poll_ring(InRing& ring) noexcept {
  int taken = 0;
  for (; taken < kAtOnce; ++taken) {
    const unsigned char* message = nullptr;
    std::size_t bytes = 0;
    const RingReader::Found found = ring.reader.next(message, bytes);
    if (found == RingReader::Found::kNothing) break;
    if (found == RingReader::Found::kNonsense) {
      fail_peer(*ring.peer, "its ring says what cannot be");
      return true;
    }
    take_message(*ring.peer, message, bytes);
    ring.reader.take();
    if (!ring.is_live) return true;
  }
  return taken != 0;
}

}  // namespace

bool is_mapping_wanted() noexcept {
  static constexpr std::string_view kWords[] = {"on", "off"};
  enum : std::uint8_t { kUnknown, kOn, kOff };
  static std::uint8_t known = kUnknown;
  if (known == kUnknown)
    known = verbatim::environment_choice("VERBATIM_MPI_MAPPED", kWords, 0) == 0 ? kOn : kOff;
  return known == kOn;
}

void consider_ring(Peer& peer) noexcept {
  if (peer.in != nullptr || peer.heard < kHeardBefore || waiting == Waiting::kSleep ||
      made_rings == kMostRings || !peer.has_address || peer.address.host == 0 ||
      peer.address.host != fabric.address.host || peer.room() == 0 || !is_mapping_wanted())
    return;
  peer.in = make_ring(peer);
  if (peer.in == nullptr) {
    made_rings = kMostRings;
    return;
  }
  ++made_rings;
  RingHead offer{};
  offer.head.kind = MessageKind::kRing;
  offer.rkey = peer.in->mr->rkey;
  offer.address = reinterpret_cast<std::uintptr_t>(peer.in->memory);
  if (send_offer(peer, offer)) return;
  destroy_ring(*peer.in);
  peer.in = nullptr;
}

void take_ring(Peer& peer, const RingHead& offer) noexcept {
  if (peer.out != nullptr || !is_mapping_wanted()) return;
  peer.offered_ring = offer.address;
  peer.offered_key = offer.rkey;
  try_ring(peer);
}

void try_ring(Peer& peer) noexcept {
  void* mapped = nullptr;
  const int error = vbt_map_remote(peer.qp, peer.offered_key, peer.offered_ring, sizeof(RingMemory),
                                   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, &mapped);
  if (error == EAGAIN) return;
  if (error != 0 || reinterpret_cast<std::uintptr_t>(mapped) % alignof(RingMemory) != 0) {
    peer.offered_ring = 0;
    return;
  }
  void* const place = std::malloc(sizeof(RingWriter));
  if (place == nullptr) return;
  if (!announce_ring(peer)) {
    std::free(place);
    return;
  }
  peer.offered_ring = 0;
  peer.out = ::new (place) RingWriter(*static_cast<RingMemory*>(mapped));
}

void read_from_ring(Peer& peer) noexcept {
  if (peer.in == nullptr || peer.in->is_live) return;
  // Without memory for it nothing that the peer says would be heard.
  if (!rings.push_back(peer.in)) {
    fail_peer(peer, "there is no memory to look at its ring");
    return;
  }
  peer.in->is_live = true;
}

bool poll_rings(const InRing* but) noexcept {
  bool has_moved = false;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    InRing& ring = *rings[i];
    if (&ring != but && ring.reader.has_message() && poll_ring(ring)) has_moved = true;
    // Whoever was failed meanwhile has left the row, which another has closed up to.
    if (i < rings.size() && rings[i] != &ring) --i;
  }
  return has_moved;
}

void leave_ring(Peer& peer) noexcept {
  if (peer.in == nullptr || !peer.in->is_live) return;
  peer.in->is_live = false;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    if (rings[i] != peer.in) continue;
    rings[i] = rings[rings.size() - 1];
    rings.pop_back();
    return;
  }
}

void drop_rings(Peer& peer) noexcept {
  leave_ring(peer);
  if (peer.in != nullptr) destroy_ring(*peer.in);
  std::free(peer.out);
  peer.in = nullptr;
  peer.out = nullptr;
  peer.offered_ring = 0;
}

}  // namespace vmpi
