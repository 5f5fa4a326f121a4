// SPDX-License-Identifier: BSD-2-Clause
// Records over the SEQPACKET sockets that join the supervisor and the two ends: one plain structure
// per packet.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <type_traits>

namespace verbatim::perf {

// Where an end finds its sockets and the shared page.
inline constexpr int kSupervisorFd = 3;
inline constexpr int kPeerFd = 4;
inline constexpr int kSharedFd = 5;
// The hub of a crowd has one for each peer, from here on.
inline constexpr int kFirstOfHubFd = 10;

template <class Record>
void send_record(int fd, const Record& record) {
  static_assert(std::is_trivially_copyable_v<Record>);
  while (send(fd, &record, sizeof record, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof record)) {
    if (errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "send to the peer process");
  }
}

/// False when the other side has closed.
template <class Record>
bool receive_record(int fd, Record& record) {
  static_assert(std::is_trivially_copyable_v<Record>);
  while (true) {
    const ssize_t got = recv(fd, &record, sizeof record, 0);
    if (got == static_cast<ssize_t>(sizeof record)) return true;
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return false;
    if (got < 0 && errno == EINTR) continue;
    throw std::system_error(got < 0 ? errno : EPROTO, std::generic_category(),
                            "receive from the peer process");
  }
}

/// Gives ours, takes the peer's.
template <class Record>
Record exchange_record(int fd, const Record& ours) {
  Record theirs;
  send_record(fd, ours);
  if (!receive_record(fd, theirs)) {
    throw std::system_error(ECONNRESET, std::generic_category(), "the peer process has ended");
  }
  return theirs;
}

}  // namespace verbatim::perf
