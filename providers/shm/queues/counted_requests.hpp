// SPDX-License-Identifier: BSD-2-Clause
//
// What completion counters (completion_counters.hpp) count of the requests of a queue pair.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/sync/mutex.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/provider.hpp"

namespace verbatim::shm {

struct Qp;
struct CountedQp;

struct CompCntr : verbatim::CompCntr {
  bool of_bytes = false;
  std::atomic<std::uint64_t> successes{0};
  std::atomic<std::uint64_t> errors{0};
  Mutex lock;
  CountedQp* first = nullptr;  ///< under the lock

  std::atomic<std::uint64_t>& value(CountOf which) noexcept {
    return which == CountOf::kSuccesses ? successes : errors;
  }
};

/// That a counter counts some operations of a queue pair. It is in both their lists: in the queue
/// pair's while that is made, under its send lock.
struct CountedQp {
  CompCntr* counter = nullptr;
  Qp* qp = nullptr;
  std::uint32_t ops = 0;  ///< ibv_qp_attach_comp_cntr_op
  CountedQp* next_of_counter = nullptr;
  CountedQp* next_of_qp = nullptr;
  // What the counter has of its receives, under the receive CQ's lock.
  std::uint64_t received = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t failed = 0;
};

/// A request of a counted queue pair has completed. The send lock is held.
[[gnu::cold]] void count_request(const Qp& qp, unsigned opcode, std::uint64_t bytes,
                                 bool succeeded) noexcept;

}  // namespace verbatim::shm
