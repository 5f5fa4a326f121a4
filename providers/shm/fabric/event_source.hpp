// SPDX-License-Identifier: BSD-2-Clause
// What an event of the service thread's epoll is about: the address of one of these is its user
// data.
#pragma once

namespace verbatim::shm {

struct EventSource {
  enum Kind { kWake, kPeerWake, kListener, kConnection, kDeath };
  Kind kind;
  void* object;
};

}  // namespace verbatim::shm
