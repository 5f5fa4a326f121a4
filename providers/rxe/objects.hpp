// SPDX-License-Identifier: BSD-2-Clause
// rxe's objects: the half in the kernel (providers/uverbs) and the rings that the data path works
// on. Locks are taken by the data path (hot.hpp), and by whoever changes a ring.
#pragma once

#include <atomic>
#include <cstdint>

#include "abi/kernel/write_call.hpp"
#include "providers/rxe/failed_request.hpp"
#include "providers/rxe/hidden_error.hpp"
#include "providers/rxe/queue.hpp"
#include "providers/rxe/work_calls.hpp"
#include "providers/uverbs/completion.hpp"
#include "providers/uverbs/context.hpp"
#include "providers/uverbs/memory.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "providers/uverbs/shared_receive.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/software/copying_cursor.hpp"

namespace verbatim::rxe {

struct Context : uverbs::Context {
  Context(Device& owner, std::uint32_t driver,
          const uverbs::System& system = uverbs::linux_system) noexcept
      : uverbs::Context(owner, driver, system) {
    eyes = &failure_eyes;
  }
};

using Mr = uverbs::Mr;

struct Cq : uverbs::Cq {
  SpinLock lock;
  Queue ring;               ///< of ib_uverbs_wc; the kernel produces, polling consumes
  std::uint64_t taken = 0;  ///< completions, so far; under the lock
  CopiedCompletion cursor;
};

struct Ah : verbatim::Ah {
  std::uint32_t number = 0;  ///< the driver's, which a send names; never 0
};

struct Srq : uverbs::Srq {
  SpinLock lock;
  Queue ring;  ///< of rxe_recv_wqe; posting produces
  std::uint32_t max_sge = 0;
};

/// Ends the posted receives of a uverbs::Qp that may have come to ERR by itself (receive.cpp).
void flush_what_waits(void* object);

struct Qp : uverbs::Qp {
  SpinLock send_lock;
  SpinLock receive_lock;
  Queue send_ring;                 ///< of rxe_send_wqe; posting produces
  Queue receive_ring;              ///< of rxe_recv_wqe; not mapped with a shared receive queue
  std::uint32_t max_send_sge = 0;  ///< what fits into a send element
  std::uint32_t max_recv_sge = 0;
  std::uint32_t max_inline = 0;
  std::uint32_t troubles_seen = 0;  ///< of Context::troubles; under receive_lock
  /// Bit n: requests of opcode n, which hang in the driver because no number of them was agreed on.
  std::atomic<std::uint32_t> barred{0};
  /// The Q_Key and the longest datagram of UD, as modify_qp last saw them: the driver sends with
  /// any key, and drops what is too long without a word.
  std::atomic<std::uint32_t> qkey{0};
  std::atomic<std::uint32_t> max_datagram{UINT32_MAX};
  WorkBatch work;  ///< requests being built between ibv_wr_start and its end, under send_lock
  HiddenError hidden_error;
  ib_uverbs_post_send_resp doorbell_reply{};
  kernel::Doorbell doorbell{};  ///< constant after create_qp
};

}  // namespace verbatim::rxe
