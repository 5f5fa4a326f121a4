// SPDX-License-Identifier: BSD-2-Clause
// Completions of requests that the kernel will not flush. It flushes what it finds when a queue
// pair fails, once; what is posted later it leaves lying, so that is completed here. They come
// after all that the kernel has written to the queue. REQUIRES: the completion queue's lock.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "providers/uverbs/removal.hpp"

namespace verbatim::siw {

class Flushed {
 public:
  Flushed() noexcept = default;
  Flushed(const Flushed&) = delete;
  Flushed& operator=(const Flushed&) = delete;
  ~Flushed() { std::free(waiting_); }

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// 0, or ENOMEM: as many as the completion queue holds (`most`, always the same) wait already.
  [[nodiscard, gnu::cold]] int add(std::uint32_t most, std::uint64_t wr_id, std::uint32_t qp_num,
                                   ibv_wc_opcode opcode) noexcept {
    if (waiting_ == nullptr) {
      waiting_ = static_cast<Entry*>(std::calloc(most, sizeof(Entry)));
      most_ = most;
    }
    if (waiting_ == nullptr || count_ == most_) return ENOMEM;
    waiting_[(first_ + count_++) % most_] = {wr_id, qp_num, opcode};
    return 0;
  }
  /// REQUIRES: count() != 0.
  [[gnu::cold]] void take(ibv_wc& to) noexcept {
    const Entry& entry = waiting_[first_];
    first_ = (first_ + 1) % most_;
    --count_;
    uverbs::write_flushed(to, entry.wr_id, entry.qp_num, entry.opcode);
  }

  /// Forgets those of a queue pair.
  [[gnu::cold]] void drop(std::uint32_t qp_num) noexcept {
    const std::uint32_t before = std::exchange(count_, 0);
    for (std::uint32_t i = 0; i < before; ++i) {
      const Entry entry = waiting_[(first_ + i) % most_];
      if (entry.qp_num != qp_num) waiting_[(first_ + count_++) % most_] = entry;
    }
  }

 private:
  struct Entry {
    std::uint64_t wr_id;
    std::uint32_t qp_num;
    ibv_wc_opcode opcode;
  };
  Entry* waiting_ = nullptr;
  std::uint32_t most_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace verbatim::siw
