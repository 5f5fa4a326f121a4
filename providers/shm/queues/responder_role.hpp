// SPDX-License-Identifier: BSD-2-Clause
//
// The receiving half of a connection: what has come of what the peer sent, and what its process asks
// ours to do. Consumption is under the receive CQ's lock, serving under live.mutex.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "providers/shm/queues/pending_send.hpp"
#include "providers/shm/queues/request_progress.hpp"
#include "providers/shm/queues/srq.hpp"
#include "providers/shm/wire/layout.hpp"
#include "providers/shm/wire/message_pack.hpp"

namespace verbatim::shm {

struct Peer;

/// A place in the ring: of message `index`, when it has come.
struct Arrival {
  const Slot* ring = nullptr;
  std::uint32_t log = 0;
  std::uint64_t line = 0;
  std::uint64_t index = 0;
};

struct Responder {
  static constexpr std::uint8_t kNotHot = 0xff;

  // On the first line is what is looked at for each message: of many that take turns it is all that
  // has to come, beside the message.
  const Slot* ring = nullptr;  ///< nullptr until the peer's first message was met
  std::uint64_t line = 0;      ///< number of the line behind what was taken, and behind `pack`
  std::atomic<std::uint64_t> head{0};  ///< receives that messages have used up
  const QpRecord* remote = nullptr;
  std::uint64_t remote_session = 0;  ///< the peer's tx_session when we attached
  std::uint8_t log = 0;              ///< of the ring's lines
  std::uint8_t hot_index = kNotHot;
  bool is_muted = false;     ///< of UD: what the sender says is taken no more
  bool has_opened = false;   ///< a pack, of which something may be left
  bool shares_bell = false;  ///< there is a next_same_bit
  // How completions name the two ends.
  std::uint16_t slid = 0;
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t announced = 0;  ///< doorbells that led to messages since it was last hot
  std::uint32_t held_count = 0;

  MessagePack pack;
  Qp* next_same_bit = nullptr;  ///< CQ members that share a doorbell
  std::uint32_t session = 0;    ///< what `accepts` says, or said before an error
  Peer* peer = nullptr;
  Arrival pulled{};  ///< messages below its index are where they belong, completed or not
  std::uint64_t stream_taken = 0;  ///< bytes copied out of the first message that is not
  /// Receives taken from the shared queue for messages that are not whole yet, by message.
  HeldReceive* held = nullptr;
  std::uint32_t held_capacity = 0;  ///< power of two, or 0
  bool last_receive_said = false;   ///< IBV_EVENT_QP_LAST_WQE_REACHED
  std::uint32_t fenced_for = 0;     ///< session whose sender, of a domain, has passed a fence since
  std::uint64_t flush_after = 0;    ///< now_ns() from which a flush no longer waits for the sender
  std::uint64_t ending_message = ~std::uint64_t{0};  ///< whose window was closed last
  std::uint64_t ended_messages = 0;                  ///< of those below it, nobody copies any more
  QuietWait ending{};
  std::uint64_t failed_receives = 0;  ///< of `head`
  bool broken = false;                ///< met an error that must end the QP, see settle_marks()
  bool lied = false;                  ///< and no honest peer brings one about

  std::uint64_t served = 0;  ///< last service request of the peer we have answered
  Serving serving;

  /// Is the next message one of a pack that was opened?
  bool has_kept() noexcept {
    if (!has_opened) return false;
    has_opened = pack.has(head.load(std::memory_order_relaxed));
    return has_opened;
  }
  /// The next one at the same doorbell.
  Qp* next_at_bell() const noexcept { return shares_bell ? next_same_bit : nullptr; }
  void put_at_bell_before(Qp* next) noexcept {
    next_same_bit = next;
    shares_bell = next != nullptr;
  }
};
// The pack begins behind the first line.
static_assert(offsetof(Responder, pack) == kCacheLine);

}  // namespace verbatim::shm
