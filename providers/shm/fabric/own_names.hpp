// SPDX-License-Identifier: BSD-2-Clause
//
// What of this process stands in the fabric folder: the names of its blocks of numbers, with
// the sockets that listen under them, and the names that it holds beside others. And how they come
// back when somebody removed them: nobody would tell us, so we look.
//
// A look is a handful of stat(2) and makes nothing. Whoever looks says that names are lost; the
// service thread brings them back, under the same numbers, and declares them whole.
//
// Any thread, but for heal() and declare_whole(). The mutex is held while a name is made or given
// back, which enters the kernel; the service thread never waits for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "providers/shm/fabric/fabric_folder.hpp"
#include "providers/shm/fabric/held_name.hpp"
#include "runtime/sync/mutex.hpp"

namespace verbatim::shm {

class ConnectionManager;

class OwnNames {
 public:
  /// Those who ask often are answered by one look for so long.
  static constexpr std::uint64_t kFreshNs = 10'000'000;
  /// What keeps names from coming back, or had them go.
  struct Reason {
    char text[PATH_MAX + 256] = "what is ours in it was removed";
  };

  OwnNames(FabricFolder& folder, ConnectionManager& connections) noexcept
      : folder_(folder), connections_(connections) {}

  /// A further block of ours, listened under. ENOMEM, ENOSPC, or EIO with the cause logged.
  int claim(std::uint32_t& block) noexcept;
  int hold(HeldName& name, bool create, bool exclusive) noexcept;
  void let_go(HeldName& name) noexcept;
  /// Removes the names of our blocks, once and for all: then they may be somebody else's. No more
  /// are claimed.
  void release_all() noexcept;

  /// Whether newcomers can meet us, as far as is known.
  [[nodiscard]] bool are_whole() const noexcept { return whole_.load(std::memory_order_acquire); }
  /// now_ns() of the look that found them lost.
  [[nodiscard]] std::uint64_t lost_at() const noexcept {
    return lost_at_.load(std::memory_order_relaxed);
  }
  /// Looks, unless that was done within `fresh_ns`. False: they are lost.
  [[nodiscard]] bool look(std::uint64_t now, std::uint64_t fresh_ns) noexcept;

  /// Why they are lost, for the log.
  void say_why(Reason& reason) noexcept;
  /// Brings back what is lost. 0; EBUSY: soon; another errno, with what stands in the way.
  int heal(Reason& reason) noexcept;
  void declare_whole() noexcept { whole_.store(true, std::memory_order_release); }

  void lock_for_fork() noexcept { mutex_.lock(); }
  void unlock_after_fork() noexcept { mutex_.unlock(); }

 private:
  struct BlockName {
    std::uint32_t number;
    std::uint64_t inode;
  };
  bool find_loss_locked(Reason* reason) const noexcept;
  int return_to_folder_locked(Reason& reason) noexcept;
  int heal_locked(Reason& reason) noexcept;

  FabricFolder& folder_;
  ConnectionManager& connections_;
  Mutex mutex_;
  BlockName blocks_[kMaxBlocksPerProcess] = {};
  std::uint32_t count_ = 0;
  HeldName* held_ = nullptr;
  bool released_ = false;
  std::atomic<bool> whole_{true};
  std::atomic<std::uint64_t> looked_at_{0};
  std::atomic<std::uint64_t> lost_at_{0};
};

}  // namespace verbatim::shm
