// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/sharing.hpp"

#include <sched.h>

#include "mpi_shim/core/rings.hpp"

namespace vmpi {

Peer* talked_to = nullptr;

namespace {

/// Messages in a row that came only when the processor had been given away to their sender.
constexpr std::uint32_t kMeetingsBeforeMove = 64;

std::uint32_t told_processor = 0;
std::size_t told_rings = 0;
std::uint32_t meetings = 0;
std::uint64_t heard_before = 0;

void tell_processor(std::uint32_t processor) noexcept {
  if (processor == told_processor && rings.size() == told_rings) return;
  told_processor = processor;
  told_rings = rings.size();
  for (InRing* ring : rings) ring->memory->processor.store(processor, std::memory_order_relaxed);
}

/// To any other one that this thread may run on; where it may run stays as it is.
void move_away(std::uint32_t processor) noexcept {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (::sched_setaffinity(0, sizeof others, &others) != 0) return;
  // The move takes a while. Whoever has bound the thread meanwhile is right.
  cpu_set_t found;
  if (::sched_getaffinity(0, sizeof found, &found) != 0 || CPU_EQUAL(&found, &others))
    (void)::sched_setaffinity(0, sizeof allowed, &allowed);
}

/// Whether the one that we talk to waits for this very processor, and it is for us to leave it.
bool meets_again(std::uint32_t processor) noexcept {
  const Peer* const peer = talked_to;
  // Both order themselves alike, also where they number each other as they like.
  if (peer == nullptr || peer->out == nullptr || peer->is_dead ||
      peer->address.process > fabric.address.process)
    return false;
  // Who hears nothing waits for nobody in particular.
  if (peer->heard == heard_before) return false;
  heard_before = peer->heard;
  meetings = peer->out->processor() == processor ? meetings + 1 : 0;
  return meetings >= kMeetingsBeforeMove;
}

}  // namespace

void give_processor_away() noexcept {
  const int here = ::sched_getcpu();
  if (here >= 0) {
    const std::uint32_t processor = static_cast<std::uint32_t>(here) + 1;
    tell_processor(processor);
    if (meets_again(processor)) {
      meetings = 0;
      move_away(static_cast<std::uint32_t>(here));
    }
  }
  ::sched_yield();
}

}  // namespace vmpi
