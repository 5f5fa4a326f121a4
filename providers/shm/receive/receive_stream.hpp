// SPDX-License-Identifier: BSD-2-Clause
//
// Messages that came through the sender's stream ring: taking their bytes out of it. What the
// sender says of the stream ring is judged from copies of its words.
//
// Under the receive CQ's lock.
#pragma once

#include "providers/shm/memory/local_range.hpp"
#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

enum class Pull : std::uint8_t {
  kWhole,    ///< the message is where it belongs
  kPart,     ///< so is what has come of it, or as much as was to be pulled
  kMissing,  ///< a part of the receive is not there
  kBroken    ///< the peer speaks of bytes that it does not have
};

/// Copies out a message that lies whole in the stream ring.
Pull pull_whole(Qp& qp, std::uint64_t length, std::uint64_t start, const LocalRange* ranges,
                std::uint32_t count) noexcept;
/// Copies out at most `most` bytes, in pieces, of a message that flows through the stream ring.
Pull pull_stream(Qp& qp, const Slot& slot, std::uint64_t length, std::uint64_t start,
                 const LocalRange* ranges, std::uint32_t count, std::uint64_t most) noexcept;

}  // namespace verbatim::shm
