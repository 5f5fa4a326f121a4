// SPDX-License-Identifier: BSD-2-Clause
// One socket to another process of the fabric. Made, used and freed by the service thread only.
#pragma once

#include <cstdint>

#include "providers/shm/fabric/event_source.hpp"
#include "providers/shm/fabric/peer.hpp"
#include "runtime/base/kept_fd.hpp"

namespace verbatim::shm {

struct Connection {
  EventSource source{EventSource::kConnection, this};
  KeptFd socket;
  Peer* peer = nullptr;  ///< nullptr until the other side's HELLO was accepted
  pid_t pid = 0;         ///< who is at the other end, if it is visible
  bool we_connected = false;
  bool owes_met = false;     ///< kMet did not fit yet
  bool owes_hello = false;   ///< ours did not fit yet; nothing else goes before it
  bool closed = false;       ///< waits for the end of the event batch that may still name it
  std::uint32_t block = 0;   ///< what we connected to
  std::uint64_t sought = 0;  ///< the identity of the lost peer that we look for there, if any
  std::uint64_t opened_at = 0;
  std::uint64_t owed_since = 0;  ///< answers that did not fit since then; 0: none
  ArenaBits owed;                ///< arenas whose WANT_ARENA is not answered yet
  Connection* next = nullptr;    ///< oldest first
  Connection* prev = nullptr;
};

}  // namespace verbatim::shm
