// SPDX-License-Identifier: BSD-2-Clause
//
// How peers wake our service thread: a datagram socket that only we read. With the HELLO a peer
// gets its place, a descriptor (O_PATH) that can do nothing but lead a socket there; it connects
// one of its own, which nobody else has, and sends a byte through it without waiting. (A socket of
// ours that is handed out could be tampered with; and sockets under way between processes occupy
// the kernel's collector of garbage, for which senders wait when many processes meet.)
//
// The queue holds few datagrams: when it is full we have been woken already, and whoever finds it
// so goes on. A byte that is lost (no memory for it) is made good by the sweep; so are all of them
// where there is no /proc, which leads to a place.
//
// The service thread's own, but for open() and close(). Spec: unix(7), open(2).
#pragma once

#include <cstdint>

#include "providers/shm/fabric/fabric_folder.hpp"
#include "runtime/base/kept_fd.hpp"

namespace verbatim::shm {

class WakeSocket {
 public:
  /// 0 or an errno. Silent.
  int open(FabricFolder& folder) noexcept;
  void close() noexcept;
  /// Whether the places are in one file system, so that who takes the one takes the other.
  [[nodiscard]] bool is_beside(const WakeSocket& other) const noexcept {
    return device_ == other.device_;
  }

  /// Readable when somebody woke us.
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  /// Still open under its number.
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_ours(); }
  /// What peers get.
  [[nodiscard]] int place() const noexcept { return place_.get(); }
  /// Takes what has come, some of it when there is much: then fd() stays readable.
  void drain() noexcept;

  /// A socket of ours that leads to a stranger's place. 0, and `out` is invalid without /proc;
  /// EPROTO when that is no such place, in our folder's file system; another errno.
  int connect(int place, UniqueFd& out) const noexcept;

 private:
  KeptFd socket_;
  KeptFd place_;
  std::uint64_t device_ = 0;  ///< of the file system
};

/// The sockets by which peers wake us: the one that we tell of, and those that we told of while the
/// folder lay in other file systems (a peer takes a place only in its own), for whom we met then.
class WakeSockets {
 public:
  /// Logins of the user, each of which brings a new file system, that a peer may have slept through
  /// before it is no longer heard at once, but at the next sweep.
  static constexpr std::uint32_t kFormer = 4;

  /// The first. 0 or an errno. Silent.
  int open(FabricFolder& folder) noexcept { return told_.open(folder); }
  void close() noexcept;

  /// The one that peers are told of. Always the same object.
  [[nodiscard]] const WakeSocket& told() const noexcept { return told_; }
  /// Has told() be one beside `other`. False: there is none, nothing changes.
  [[nodiscard]] bool tell_of_one_beside(const WakeSocket& other) noexcept;
  /// Has told() be a new one. Of too many former ones the oldest goes.
  void tell_of(WakeSocket fresh) noexcept;
  /// Takes what has come to any of them.
  void drain() noexcept;

 private:
  WakeSocket told_;
  WakeSocket former_[kFormer];  ///< the latest first, then places that are free
};

/// Wakes the process that `socket` leads to. Never waits.
void wake_through(int socket) noexcept;

}  // namespace verbatim::shm
