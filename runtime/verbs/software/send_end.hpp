// SPDX-License-Identifier: BSD-2-Clause
// How a send queue comes to an end: in an error, of which the oldest request says the cause and
// those behind it that they were flushed, or in SQD, where those that have begun are finished and
// the others wait. The provider completes requests and raises events. Under the send queue's lock,
// but for what says otherwise. Spec: IBTA 10.3.1.5 (SQD), 10.3.1.6 (SQE), 10.3.1.7 (Error).
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <utility>

namespace verbatim {

/// The cause of an error, until a request has said it.
class FirstError {
 public:
  /// The oldest request ends in `status`, or the next one that is posted when there is none.
  void set(ibv_wc_status status) noexcept { status_ = status; }
  void forget() noexcept { status_ = IBV_WC_WR_FLUSH_ERR; }
  bool is_untold() const noexcept { return status_ != IBV_WC_WR_FLUSH_ERR; }
  /// What the next request to be flushed ends in.
  [[nodiscard]] ibv_wc_status take() noexcept {
    return std::exchange(status_, IBV_WC_WR_FLUSH_ERR);
  }

 private:
  ibv_wc_status status_ = IBV_WC_WR_FLUSH_ERR;
};

/// The way to SQD.
class Drain {
 public:
  /// It begins. `tells`: en_sqd_async_notify; `has_begun`: there are requests to be finished. True:
  /// there are none, and IBV_EVENT_SQ_DRAINED is due.
  [[nodiscard]] bool begin(bool tells, bool has_begun) noexcept {
    tells_ = tells;
    is_under_way_.store(has_begun, std::memory_order_relaxed);
    return !has_begun && end();
  }
  /// They are finished. True: the event is due.
  [[nodiscard]] bool end() noexcept {
    is_under_way_.store(false, std::memory_order_relaxed);
    return std::exchange(tells_, false);
  }
  /// Those that had begun are being finished: sq_draining (man ibv_query_qp), in SQD. Any thread.
  bool is_under_way() const noexcept { return is_under_way_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> is_under_way_{false};
  bool tells_ = false;
};

}  // namespace verbatim
