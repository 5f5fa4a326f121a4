// SPDX-License-Identifier: BSD-2-Clause
//
// Queue pair numbers: which of our blocks' 4096 numbers are in use. Table index k * 4096 + n stands
// for number n of the k-th block. Any thread; the mutex is held while a further block is claimed,
// which enters the kernel.
#pragma once

#include <cstdint>

#include "providers/shm/fabric/own_names.hpp"
#include "providers/shm/fabric/segment.hpp"
#include "runtime/sync/mutex.hpp"

namespace verbatim::shm {

class QpnBlocks {
 public:
  QpnBlocks(OwnSegment& segment, OwnNames& names) noexcept : segment_(segment), names_(names) {}

  int take(std::uint32_t& index, std::uint32_t& qpn) noexcept;
  void give(std::uint32_t index) noexcept;
  /// The next number needs a further block.
  bool are_full() noexcept;
  /// Numbers that nothing has.
  std::uint32_t free_count() noexcept;

  void lock_for_fork() noexcept { mutex_.lock(); }
  void unlock_after_fork() noexcept { mutex_.unlock(); }

 private:
  struct Block {
    std::uint32_t number;
    std::uint32_t used;
    std::uint32_t next;  ///< where the search goes on: a number rests after its use
    std::uint64_t in_use[kQpnsPerBlock / 64];
  };
  bool take_from(Block& block, std::uint32_t& low) noexcept;
  int add_block() noexcept;

  OwnSegment& segment_;
  OwnNames& names_;
  Mutex mutex_;
  std::uint32_t count_ = 0;
  std::uint32_t used_ = 0;  ///< in all blocks
  Block blocks_[kMaxBlocksPerProcess] = {};
};

}  // namespace verbatim::shm
