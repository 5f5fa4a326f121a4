// SPDX-License-Identifier: BSD-2-Clause
// Ranks that share processors. Who waits in vain gives its processor away. Two that talk to each
// other may have been put on one processor, each waiting for the other to get its turn, while
// others wait for nothing on the next: the kernel sees as many on both and leaves them there. So
// each says on which one it waits (RingMemory), and of two that meet again and again one moves.
#pragma once

#include "mpi_shim/core/peers.hpp"

namespace vmpi {

/// From whom the last message came; null: nobody yet.
extern Peer* talked_to;

/// REQUIRES: there was nothing to do for a while.
void give_processor_away() noexcept;

}  // namespace vmpi
