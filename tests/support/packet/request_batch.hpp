// SPDX-License-Identifier: BSD-2-Clause
// Requests that ibv_wr_* build, from start to complete or abort, for a provider that performs them
// as it performs posted ones. Each lies in one piece: its words, its SGEs, and the bytes that it
// was given inline. The batch belongs to the thread that has the queue pair between these calls.
// Source: man ibv_wr_post.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/queue_memory.hpp"

namespace verbatim {

class RequestBatch {
 public:
  /// Takes memory for batches of up to `most` requests. False: there is none.
  [[gnu::cold]] bool make(const QueueMemory& memory, std::uint32_t most, std::uint32_t max_sge,
                          std::uint32_t max_inline) noexcept {
    most_ = most;
    max_sge_ = max_sge;
    max_inline_ = max_inline;
    // What is given inline is an SGE, too, and an ATOMIC_WRITE has 8 bytes.
    sges_ = std::max(max_sge, 1u);
    const std::size_t bytes =
        sizeof(ibv_send_wr) + sges_ * sizeof(ibv_sge) + std::max(max_inline, 8u);
    place_bytes_ = (bytes + alignof(ibv_send_wr) - 1) / alignof(ibv_send_wr) * alignof(ibv_send_wr);
    const std::size_t places = std::size_t{most} + 1;
    places_ =
        static_cast<unsigned char*>(memory.take_unset(places * place_bytes_, alignof(ibv_send_wr)));
    if (places_ == nullptr) return false;
    // A setter may come before the first request.
    current_ = most;
    current() = {};
    start();
    return true;
  }
  void free(const QueueMemory& memory) noexcept {
    memory.give(places_);
    *this = {};
  }

  /// Forgets what was built.
  void start() noexcept {
    count_ = 0;
    error_ = 0;
  }
  /// The next request, as `qp` says (wr_id, wr_flags): no bytes, and to nobody.
  ibv_send_wr& add(const ibv_qp_ex& qp, ibv_wr_opcode opcode) noexcept {
    if (count_ == most_) {
      refuse(ENOMEM);
      current_ = most_;
    } else {
      current_ = count_++;
    }
    ibv_send_wr& wr = current();
    wr.wr_id = qp.wr_id;
    wr.opcode = opcode;
    wr.send_flags = qp.wr_flags & ~unsigned{IBV_SEND_INLINE};
    wr.next = nullptr;
    wr.sg_list = nullptr;
    wr.num_sge = 0;
    // What no call names is nobody, not whom an earlier batch named.
    wr.wr.ud = {};
    wr.qp_type = {};
    return wr;
  }
  /// The batch fails with `error`, unless it has failed before.
  void refuse(int error) noexcept {
    if (error_ == 0) error_ = error;
  }

  /// The request that was added last. Before the first, and of those that have no place, one that
  /// is in no batch.
  ibv_send_wr& current() const noexcept { return at(current_); }
  std::uint32_t max_sge() const noexcept { return max_sge_; }
  std::uint32_t max_inline() const noexcept { return max_inline_; }
  /// Its bytes lie where `count` SGEs say, or are `bytes` inline ones: these are written to the
  /// answer.
  ibv_sge* take_sges(std::uint32_t count) const noexcept {
    ibv_send_wr& wr = current();
    wr.sg_list = reinterpret_cast<ibv_sge*>(&wr + 1);
    wr.num_sge = static_cast<int>(count);
    wr.send_flags &= ~unsigned{IBV_SEND_INLINE};
    return wr.sg_list;
  }
  unsigned char* take_inline(std::uint32_t bytes) const noexcept {
    ibv_sge* const sges = take_sges(bytes != 0 ? 1 : 0);
    auto* const to = reinterpret_cast<unsigned char*>(sges + sges_);
    *sges = {reinterpret_cast<std::uint64_t>(to), bytes, 0};
    if (bytes != 0) current().send_flags |= IBV_SEND_INLINE;
    return to;
  }

  /// Performs the requests in their order, if the batch has not failed and judge(request, number of
  /// those before it in the batch) says 0 of each. Else the first error, and nothing is performed.
  template <class Judge, class Perform>
  [[nodiscard]] int complete(const Judge& judge, const Perform& perform) const noexcept {
    if (error_ != 0) return error_;
    for (std::uint32_t i = 0; i < count_; ++i)
      if (const int error = judge(at(i), i); error != 0) return error;
    for (std::uint32_t i = 0; i < count_; ++i) perform(at(i));
    return 0;
  }

 private:
  ibv_send_wr& at(std::uint32_t index) const noexcept {
    return *reinterpret_cast<ibv_send_wr*>(places_ + index * place_bytes_);
  }

  unsigned char* places_ = nullptr;  ///< the spare one is the last
  std::size_t place_bytes_ = 0;
  std::uint32_t most_ = 0;
  std::uint32_t max_sge_ = 0;
  std::uint32_t max_inline_ = 0;
  std::uint32_t sges_ = 0;  ///< that there is memory for
  std::uint32_t count_ = 0;
  std::uint32_t current_ = 0;
  int error_ = 0;
};

/// What BuiltRequests asks for, but for start, complete and abort, of queue pairs that keep a batch
/// in their member `batch`.
template <class QueuePair>
struct BatchedRequests {
  using Qp = QueuePair;
  static Qp& of(ibv_qp_ex* handle) noexcept { return static_cast<Qp&>(verbatim::Qp::from(handle)); }
  static ibv_send_wr& add(Qp& qp, ibv_wr_opcode opcode) noexcept {
    return qp.batch.add(qp.extended, opcode);
  }
  static ibv_send_wr& current(const Qp& qp) noexcept { return qp.batch.current(); }
  static std::uint32_t max_sge(const Qp& qp) noexcept { return qp.batch.max_sge(); }
  static std::uint32_t max_inline(const Qp& qp) noexcept { return qp.batch.max_inline(); }
  static ibv_sge* take_sges(const Qp& qp, std::uint32_t count) noexcept {
    return qp.batch.take_sges(count);
  }
  static unsigned char* take_inline(const Qp& qp, std::uint32_t bytes) noexcept {
    return qp.batch.take_inline(bytes);
  }
  static void refuse(Qp& qp, int error) noexcept { qp.batch.refuse(error); }
  static void refuse_inline(Qp& qp, std::uint64_t) noexcept { qp.batch.refuse(EINVAL); }
};

}  // namespace verbatim
