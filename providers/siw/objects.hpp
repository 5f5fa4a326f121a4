// SPDX-License-Identifier: BSD-2-Clause
// siw's objects: the half in the kernel (providers/uverbs) and the queues that the data path works
// on. Of a queue pair's locks the send lock is taken first; its state is written under both, and
// read under either.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "abi/kernel/write_call.hpp"
#include "providers/siw/failed_request.hpp"
#include "providers/siw/flushed.hpp"
#include "providers/siw/qp_directory.hpp"
#include "providers/siw/ring_fast.hpp"
#include "providers/siw/work_calls.hpp"
#include "providers/uverbs/completion.hpp"
#include "providers/uverbs/context.hpp"
#include "providers/uverbs/memory.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "providers/uverbs/shared_receive.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/software/copying_cursor.hpp"

namespace verbatim::siw {

struct Context : uverbs::Context {
  Context(Device& owner, std::uint32_t driver,
          const uverbs::System& system = uverbs::linux_system) noexcept
      : uverbs::Context(owner, driver, system) {
    eyes = &failure_eyes;
    heeds_ipc_lock = false;
  }

  QpDirectory queue_pairs;
  std::atomic<std::uint32_t> regions_made{0};  ///< so far: their keys' last byte
};

using Mr = uverbs::Mr;

struct Cq : uverbs::Cq {
  SpinLock lock;
  CompletionRing ring;
  Flushed flushed;
  CopiedCompletion cursor;
};

struct Srq : uverbs::Srq {
  SpinLock lock;
  WorkRing<siw_rqe> ring;
  std::uint32_t max_sge = 0;
};

/// Whether a connection lets us READ is its maker's word, which is asked for once.
enum class Reads : std::uint8_t { kNotAsked, kAllowed, kRefused };

struct Qp : uverbs::Qp {
  ~Qp() { std::free(pending_flags); }

  SpinLock send_lock;
  SpinLock receive_lock;
  WorkRing<siw_sqe> send_ring;
  WorkRing<siw_rqe> receive_ring;  ///< not mapped with a shared receive queue, or without receives
  std::uint32_t max_send_sge = 0;
  std::uint32_t max_recv_sge = 0;
  /// Its connection has ended, as a completion or the doorbell told: what is posted from then on is
  /// flushed here, and what lies in the rings that the kernel looks at no more (send.hpp).
  std::atomic<bool> failed{false};
  std::atomic<std::uint8_t> rings_left{2};  ///< of a failed one, that are still to be flushed
  bool sends_settled = false;               ///< under the send lock
  bool receives_settled = false;            ///< under the receive lock
  Mutex ending;
  bool ended = false;              ///< led to ERR in the kernel; under `ending`
  Reads reads = Reads::kNotAsked;  ///< under the send lock
  WorkBatch work;                  ///< between ibv_wr_start and its end, under the send lock
  std::uint16_t* pending_flags = nullptr;  ///< of the batch's elements, until they are published
  Qp* next_in_bucket = nullptr;            ///< QpDirectory
  ib_uverbs_post_send_resp doorbell_reply{};
  kernel::Doorbell doorbell{};  ///< constant after create_qp
};

/// The state as we know it: the runtime's field, which applications read. Any thread.
[[nodiscard]] inline ibv_qp_state state_of(Qp& qp) noexcept {
  return std::atomic_ref(qp.plain.state).load(std::memory_order_relaxed);
}
inline void set_state(Qp& qp, ibv_qp_state state) noexcept {
  std::atomic_ref(qp.plain.state).store(state, std::memory_order_relaxed);
}

[[nodiscard]] inline Context& context_of(ibv_context* handle) noexcept {
  return static_cast<Context&>(verbatim::Context::from(handle));
}

}  // namespace verbatim::siw
