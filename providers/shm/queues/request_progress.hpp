// SPDX-License-Identifier: BSD-2-Clause
//
// How far a queue pair has come with the requests that the other process must perform: those that
// it has given out, under its send lock, and those of its peer's, under live.mutex.
#pragma once

#include <cstdint>

#include "providers/shm/wire/layout.hpp"

namespace verbatim::shm {

/// Ours. Those between `ended` and `asked` are under way: the first requests of the send queue.
struct Asking {
  RequestRing* ring = nullptr;  ///< from the first request on
  std::uint64_t asked = 0;      ///< number of the last one given out
  std::uint64_t ended = 0;      ///< of the last whose answer was taken
  std::uint32_t next = 0;       ///< place in the send queue behind the last one given out
  /// Bytes of the last one, a WRITE, that are in the stream ring.
  std::uint64_t filled = 0;
  std::uint64_t produced = 0;        ///< position behind them
  std::uint64_t free_from = 0;       ///< position up to which the responder was seen to have taken
  std::uint64_t next_read = 0;       ///< position of the next READ's bytes in its stream ring
  std::uint64_t rung_ns = 0;         ///< when the responder was last told of something, or moved
  std::uint64_t woken_ns = 0;        ///< when its service thread was woken
  std::uint64_t ended_ns = 0;        ///< when the last of those under way was
  std::uint64_t moves = 0;           ///< times that bytes were seen to have moved
  std::uint32_t polls_in_a_row = 0;  ///< last answers that came from threads of its program
};

/// The peer's.
struct Serving {
  RequestAnswers* answers = nullptr;
  std::uint64_t done = 0;   ///< number of the last one that is done
  std::uint64_t moved = 0;  ///< bytes of the next
  bool has_refused = false;
  bool is_under_way = false;    ///< the last look left the next one unfinished
  std::int32_t processor = -1;  ///< that the requester published from
  /// The service thread stays at it; in the list of such.
  bool is_attended = false;
  std::uint64_t idle_since = 0;  ///< now_ns()
  bool is_quick = false;         ///< requests follow each other at once
};

}  // namespace verbatim::shm
