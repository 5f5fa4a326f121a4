// SPDX-License-Identifier: BSD-2-Clause
//
// Does the process at the other end of a socket live? A socket's end of file waits for its forked
// children, so the answer is a pidfd, or, where its pid is not visible here, the record lock it
// holds on its segment.
#pragma once

#include <sys/types.h>

#include "runtime/base/unique_fd.hpp"

namespace verbatim::shm {

/// Who is at the other end. False unless it runs as our user. `pid` is 0 when it is not visible in
/// our pid namespace.
[[nodiscard]] bool peer_credentials(int socket, pid_t& pid, unsigned& uid) noexcept;

/// Becomes readable when the process ends; invalid when there is none to be had, and errno says
/// why: ESRCH, it has ended.
[[nodiscard]] UniqueFd open_peer_pidfd(int socket, pid_t pid) noexcept;

/// Whether the process at the other end is known to have ended, while somebody who inherited its
/// end keeps the socket open.
[[nodiscard]] bool peer_has_ended(int socket, pid_t pid) noexcept;

/// Whether the owner of the segment `fd` (another process) still holds its lock.
[[nodiscard]] bool life_lock_held(int fd) noexcept;

/// Whether another process than `pid` holds it: the file is not his who sent it.
[[nodiscard]] bool life_lock_is_others(int fd, pid_t pid) noexcept;

}  // namespace verbatim::shm
