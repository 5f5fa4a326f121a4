// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/qpn_blocks.hpp"

#include <cerrno>

#include "runtime/base/log.hpp"

namespace verbatim::shm {
namespace {

/// The search wraps within the first numbers as long as these suffice, so that few pages of the
/// table are touched: 128 records fit one step of backing.
constexpr std::uint32_t kLeastSpan = 128;

}  // namespace

bool QpnBlocks::take_from(Block& block, std::uint32_t& low) noexcept {
  if (block.used == kQpnsPerBlock) return false;
  std::uint32_t span = 2 * (block.used + 1);
  if (span < kLeastSpan) span = kLeastSpan;
  if (span > kQpnsPerBlock) span = kQpnsPerBlock;
  for (std::uint32_t i = 0; i < kQpnsPerBlock; ++i) {
    if (block.next >= span) block.next = 0;
    const std::uint32_t n = block.next++;
    const std::uint64_t bit = std::uint64_t{1} << (n % 64);
    if ((block.in_use[n / 64] & bit) != 0) continue;
    block.in_use[n / 64] |= bit;
    ++block.used;
    low = n;
    return true;
  }
  return false;
}

int QpnBlocks::add_block() noexcept {
  if (count_ == kMaxBlocksPerProcess ||
      (count_ + 1) * kQpnsPerBlock > segment_.head().qp_capacity) {
    log_error("all %u queue pairs of this process are in use", count_ * kQpnsPerBlock);
    return ENOMEM;
  }
  std::uint32_t number = 0;
  const int error = names_.claim(number);
  if (error != 0) return error == EIO ? EIO : ENOMEM;
  Block& block = blocks_[count_];
  block = {};
  block.number = number;
  SegmentHeader& head = segment_.head();
  head.blocks[count_].store(number, std::memory_order_relaxed);
  ++count_;
  // Publishes the block to peers; pairs with PeerTable::block_position.
  head.block_count.store(count_, std::memory_order_release);
  return 0;
}

int QpnBlocks::take(std::uint32_t& index, std::uint32_t& qpn) noexcept {
  const LockGuard guard(mutex_);
  for (std::uint32_t k = 0;; ++k) {
    if (k == count_) {
      const int error = add_block();
      if (error != 0) return error;
    }
    std::uint32_t low = 0;
    if (!take_from(blocks_[k], low)) continue;
    const std::uint32_t taken = k * kQpnsPerBlock + low;
    const int error = segment_.back(&segment_.qps()[taken], sizeof(QpRecord));
    if (error != 0) {
      blocks_[k].in_use[low / 64] &= ~(std::uint64_t{1} << (low % 64));
      --blocks_[k].used;
      return error;
    }
    ++used_;
    index = taken;
    qpn = blocks_[k].number << kQpnBlockBits | low;
    return 0;
  }
}

bool QpnBlocks::are_full() noexcept {
  const LockGuard guard(mutex_);
  for (std::uint32_t k = 0; k < count_; ++k) {
    if (blocks_[k].used != kQpnsPerBlock) return false;
  }
  return true;
}

void QpnBlocks::give(std::uint32_t index) noexcept {
  const LockGuard guard(mutex_);
  if (index / kQpnsPerBlock >= count_) return;
  Block& block = blocks_[index / kQpnsPerBlock];
  const std::uint32_t low = index % kQpnsPerBlock;
  const std::uint64_t bit = std::uint64_t{1} << (low % 64);
  if ((block.in_use[low / 64] & bit) == 0) return;
  block.in_use[low / 64] &= ~bit;
  --block.used;
  --used_;
}

std::uint32_t QpnBlocks::free_count() noexcept {
  const LockGuard guard(mutex_);
  return segment_.head().qp_capacity - used_;
}

}  // namespace verbatim::shm
