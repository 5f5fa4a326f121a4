// SPDX-License-Identifier: BSD-2-Clause
// What the processes of this user show of themselves in shared memory, read by a stranger.
//
// Nobody is asked and nothing is mapped: a segment is found through /proc, opened for reading only
// and read by pread(2), so that a process that is stopped, dying or hostile can neither be harmed
// nor do harm. What is read is checked copies; a segment that does not hold together is left out.
// Whose it is says the kernel (the owner's record lock), not the segment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace verbatim::cli {

struct QueuePairView {
  std::uint32_t number = 0;
  std::uint32_t type = 0;           // ibv_qp_type
  bool is_xrc_queue = false;        // no queue pair, but an XRC shared receive queue
  std::uint32_t state = 0;          // ibv_qp_state
  std::uint32_t peer = 0;           // number of the other half; 0: none
  pid_t peer_pid = 0;               // 0: in no process that is seen
  std::uint64_t sent_messages = 0;  // requests that were a success
  std::uint64_t sent_bytes = 0;     // of the same
  std::uint64_t received_messages = 0;
  std::uint64_t received_bytes = 0;
  std::uint32_t errors = 0;
  std::uint32_t sends_outstanding = 0;
  std::uint32_t send_depth = 0;
  std::uint32_t receives_posted = 0;
  std::uint32_t receive_depth = 0;
  bool shares_receives = false;  // of a shared queue: how many it has posted
};

struct ProcessView {
  pid_t pid = 0;
  std::string name;
  std::uint64_t fabric = 0;
  std::uint32_t keys = 0, cqs = 0, srqs = 0;
  std::vector<QueuePairView> queue_pairs;
};

/// By pid, queue pairs by number.
std::vector<ProcessView> read_processes();

}  // namespace verbatim::cli
