// SPDX-License-Identifier: BSD-2-Clause
//
// What a queue pair remembers of its failures: the first of its sends, and the first of its
// receives or of the peer's requests. Part of the queue pair, so that remembering never allocates,
// and behind everything that a message touches.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/failure.hpp"

namespace verbatim::shm {

struct Qp;

struct FailureRecord {
  enum class First : std::uint8_t { kNone, kSend, kReceive };

  SpinLock lock;  ///< of the members up to the blank line; nothing is done under it but copying
  First first = First::kNone;
  bool has_send = false;
  bool has_receive = false;
  bool is_past = false;  ///< the program has led the sends back to RTS: the next replaces `send`
  Failure send;
  Failure receive;

  /// Of the receive that a message was too long for; the send lock is held.
  std::uint64_t refused_room = 0;

  // Under the lock of the list of failures that are to be said.
  Qp* next_unsaid = nullptr;
  bool is_unsaid = false;
  bool was_said = false;  ///< until it is reset
};

}  // namespace verbatim::shm
