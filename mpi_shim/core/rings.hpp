// SPDX-License-Identifier: BSD-2-Clause
// Rings (ring.hpp) between processes of one host that spin or share: who has heard a few messages
// from a peer offers it one (kRing), and the peer says by its queue pair that it goes on there
// (kByRing). From then on all messages go by the ring, and by the queue pair RDMA alone, so there is
// one order of messages at any time. Where memory cannot be mapped the offer comes to nothing.
// Who sleeps offers none: nobody would wake it.
#pragma once

#include <cstdint>

#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/peers.hpp"

namespace vmpi {

/// The receiver's end, with the memory that is its own.
struct InRing {
  RingMemory* memory;
  ibv_mr* mr;
  Peer* peer;
  RingReader reader;
  bool is_live;  ///< the peer has said that it writes there
};

/// VERBATIM_MPI_MAPPED.
[[nodiscard]] bool is_mapping_wanted() noexcept;
/// A message of the peer's was taken: perhaps it gets a ring.
void consider_ring(Peer& peer) noexcept;
void take_ring(Peer& peer, const RingHead& offer) noexcept;
void read_from_ring(Peer& peer) noexcept;
/// Goes on by the ring that the peer has offered, if it is mapped by now.
void try_ring(Peer& peer) noexcept;

/// Rings that have writers.
extern LastingArray<InRing*> rings;
/// Takes what lies in them but for one, if there is such a one. True: something did.
bool poll_rings(const InRing* but) noexcept;
/// progress() without a look at one ring, which its caller looks at.
bool progress_beside(const InRing* ring) noexcept;

/// Of a peer that is gone: what lies in its ring is not looked at.
void leave_ring(Peer& peer) noexcept;
/// REQUIRES: nobody writes any more.
void drop_rings(Peer& peer) noexcept;

}  // namespace vmpi
