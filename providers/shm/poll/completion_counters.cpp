// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/poll/completion_counters.hpp"
#include "providers/shm/transfer/send_queue.hpp"

#include <algorithm>
#include <cerrno>

#include "providers/shm/memory/context.hpp"
#include "providers/shm/poll/poll_fast.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/polled_rings.hpp"
#include "providers/shm/receive/receive.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::shm {
namespace {

constexpr std::uint32_t kMaxCounters = 1u << 16;
constexpr std::uint32_t kOwnRequests = IBV_QP_ATTACH_COMP_CNTR_OP_SEND |
                                       IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ |
                                       IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE;
constexpr std::uint32_t kReceives = IBV_QP_ATTACH_COMP_CNTR_OP_RECV;

/// What is counted of a queue pair of its type. A datagram comes over endpoints that come and go,
/// and an XRC target has no receives.
std::uint32_t ops_of(const Qp& qp) noexcept {
  switch (qp.plain.qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
      return kOwnRequests | kReceives;
    case IBV_QPT_UD:
    case IBV_QPT_XRC_SEND:
      return kOwnRequests;
    default:
      return 0;
  }
}

/// REQUIRES: the receive CQ's lock.
void add_received(CountedQp& counted) noexcept {
  if ((counted.ops & kReceives) == 0) return;
  const Qp& qp = *counted.qp;
  CompCntr& counter = *counted.counter;
  const std::uint64_t failed = qp.in.failed_receives;
  const std::uint64_t received = qp.in.head.load(std::memory_order_relaxed) - failed;
  const std::uint64_t bytes = load_relaxed(qp.own->received_bytes);
  const std::uint64_t more =
      counter.of_bytes ? bytes - counted.received_bytes : received - counted.received;
  if (more != 0) counter.successes.fetch_add(more, std::memory_order_relaxed);
  if (failed != counted.failed)
    counter.errors.fetch_add(failed - counted.failed, std::memory_order_relaxed);
  counted.received = received;
  counted.received_bytes = bytes;
  counted.failed = failed;
}

/// A receive that was not polled, as a stored completion.
void store_received_locked(Cq& cq, Qp& qp, const ibv_wc& wc) noexcept {
  push_locked(cq, {wc.wr_id, &qp, wc.byte_len, wc.imm_data, static_cast<std::uint16_t>(wc.opcode),
                   static_cast<std::uint8_t>(wc.status), false, wc.wc_flags});
}

/// Takes the messages that have come, while their queue has room for what is said of them.
/// REQUIRES: the receive CQ's lock.
void take_received_locked(Cq& cq, Qp& qp) noexcept {
  constexpr std::uint32_t kAtOnce = 16;
  ibv_wc wc[kAtOnce];
  const std::uint32_t stored = cq.tail.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint32_t used =
        cq.tail.load(std::memory_order_relaxed) - cq.head.load(std::memory_order_relaxed);
    const auto room = static_cast<int>(std::min(kAtOnce, cq.mask + 1 - used));
    bool more;
    const int got = room == 0 ? 0 : take_all(qp, room, wc, more);
    for (int i = 0; i < got; ++i) store_received_locked(cq, qp, wc[i]);
    if (got == 0 || got < room) break;
  }
  if (qp.in.hot_index != Responder::kNotHot) {
    if (qp.in.ring == nullptr)
      drop_hot(cq, qp.in.hot_index);
    else
      point_at_next(cq.hot[qp.in.hot_index]);
  }
  // Armed for solicited ones: whether one was among them is not known any more, so it was.
  if (cq.tail.load(std::memory_order_relaxed) != stored &&
      cq.armed->load(std::memory_order_relaxed) != CqRecord::kIdle)
    tell_announced_locked(cq, true);
}

/// The requests that wait, and the messages that have come.
void catch_up(CountedQp& counted) noexcept {
  Qp& qp = *counted.qp;
  if ((counted.ops & kOwnRequests) != 0 && qp.send_cq->has_pending())
    progress_pending(*qp.send_cq, SendLock::As::kGuest);
  if ((counted.ops & kReceives) == 0) return;
  Cq& cq = *qp.recv_cq;
  bool marked;
  {
    LockGuard<BiasedLock> guard(cq.lock);
    take_received_locked(cq, qp);
    add_received(counted);
    marked = (cq.marks & ~Cq::kTurns) != 0;
  }
  if (marked) settle_marks(cq);
}

}  // namespace

void close_receive_counts(Qp& qp) noexcept {
  for (CountedQp* at = qp.sq.counted; at != nullptr; at = at->next_of_qp) {
    add_received(*at);
    at->received = at->received_bytes = at->failed = 0;
  }
  qp.in.failed_receives = 0;
  store_relaxed(qp.own->received_bytes, 0);
}

void leave_counters(Qp& qp) noexcept {
  while (qp.sq.counted != nullptr) {
    CountedQp* const left = qp.sq.counted;
    qp.sq.counted = left->next_of_qp;
    CompCntr& counter = *left->counter;
    {
      LockGuard<Mutex> guard(counter.lock);
      for (CountedQp** link = &counter.first; *link != nullptr; link = &(*link)->next_of_counter) {
        if (*link != left) continue;
        *link = left->next_of_counter;
        break;
      }
    }
    destroy_nothrow(left);
    // Its last use; pairs with the load in still_used().
    counter.uses.fetch_sub(1, std::memory_order_release);
  }
}

// The lists may have been in the hands of a thread of the parent's: they are forgotten.
void leave_counters_in_child(Qp& qp) noexcept {
  for (const CountedQp* at = qp.sq.counted; at != nullptr; at = at->next_of_qp)
    at->counter->uses.fetch_sub(1, std::memory_order_relaxed);
  qp.sq.counted = nullptr;
}

int query_comp_cntr_caps(verbatim::Context&, ibv_comp_cntr_caps& caps) noexcept {
  caps.max_value = ~std::uint64_t{0};
  caps.max_counters = kMaxCounters;
  caps.supported_qp_attach_ops = kOwnRequests | kReceives;
  return 0;
}

int create_comp_cntr(verbatim::Context& handle, const ibv_comp_cntr_init_attr& attr,
                     verbatim::CompCntr** out) noexcept {
  Context& context = static_cast<Context&>(handle);
  const std::uint32_t number = context.counters.fetch_add(1, std::memory_order_relaxed);
  CompCntr* const counter = number < kMaxCounters ? make_nothrow<CompCntr>() : nullptr;
  if (counter == nullptr) {
    context.counters.fetch_sub(1, std::memory_order_relaxed);
    if (number >= kMaxCounters)
      log_error("ibv_create_comp_cntr: all %u counters of the context are in use", kMaxCounters);
    return ENOMEM;
  }
  counter->of_bytes = attr.type == IBV_COMP_CNTR_TYPE_BYTES;
  *out = counter;
  return 0;
}

int destroy_comp_cntr(verbatim::CompCntr& counter) noexcept {
  Context::of(counter.plain.context).counters.fetch_sub(1, std::memory_order_relaxed);
  destroy_nothrow(static_cast<CompCntr*>(&counter));
  return 0;
}

int set_comp_cntr(verbatim::CompCntr& handle, CountOf which, std::uint64_t value) noexcept {
  CompCntr& counter = static_cast<CompCntr&>(handle);
  // What has come by now is part of the count that ends here.
  std::uint64_t before;
  (void)read_comp_cntr(counter, which, before);
  counter.value(which).store(value, std::memory_order_relaxed);
  return 0;
}

int inc_comp_cntr(verbatim::CompCntr& counter, CountOf which, std::uint64_t amount) noexcept {
  static_cast<CompCntr&>(counter).value(which).fetch_add(amount, std::memory_order_relaxed);
  return 0;
}

int read_comp_cntr(verbatim::CompCntr& handle, CountOf which, std::uint64_t& value) noexcept {
  CompCntr& counter = static_cast<CompCntr&>(handle);
  {
    LockGuard<Mutex> guard(counter.lock);
    for (CountedQp* at = counter.first; at != nullptr; at = at->next_of_counter) catch_up(*at);
  }
  return read_stored_count(counter, which, value);
}

int read_stored_count(verbatim::CompCntr& counter, CountOf which, std::uint64_t& value) noexcept {
  // What it counts has arrived; pairs with the releases in count_request().
  value = static_cast<CompCntr&>(counter).value(which).load(std::memory_order_acquire);
  return 0;
}

int attach_comp_cntr(verbatim::Qp& handle, verbatim::CompCntr& counter_handle,
                     std::uint32_t ops) noexcept {
  constexpr const char* kVerb = "ibv_qp_attach_comp_cntr";
  Qp& qp = static_cast<Qp&>(handle);
  CompCntr& counter = static_cast<CompCntr&>(counter_handle);
  if (const std::uint32_t lacking = ops & ~ops_of(qp); lacking != 0) {
    log_refusal(
        "%s: QP 0x%06x: operations 0x%x are not counted: shm counts SEND, RDMA_READ and RDMA_WRITE "
        "of RC, UC, UD and XRC_SEND, and RECV of RC and UC",
        kVerb, qp.plain.qp_num, lacking);
    return EOPNOTSUPP;
  }
  CountedQp* const counted = make_nothrow<CountedQp>();
  if (counted == nullptr) return ENOMEM;
  counted->counter = &counter;
  counted->qp = &qp;
  counted->ops = ops;
  int error = 0;
  {
    LockGuard<Mutex> control(qp.control);
    const ibv_qp_state state = qp.plain.state;
    std::uint32_t taken = 0;
    for (const CountedQp* at = qp.sq.counted; at != nullptr; at = at->next_of_qp) taken |= at->ops;
    if (state != IBV_QPS_RESET && state != IBV_QPS_INIT) {
      log_refusal("%s: QP 0x%06x is in state %d: counting begins in RESET or INIT", kVerb,
                  qp.plain.qp_num, static_cast<int>(state));
      error = EINVAL;
    } else if ((taken & ops) != 0) {
      log_refusal("%s: QP 0x%06x: another counter counts operations 0x%x", kVerb, qp.plain.qp_num,
                  taken & ops);
      error = EBUSY;
    } else {
      counter.uses.fetch_add(1, std::memory_order_relaxed);
      SendLock lock(qp);
      LockGuard<BiasedLock> guard(qp.recv_cq->lock);
      counted->received = qp.in.head.load(std::memory_order_relaxed) - qp.in.failed_receives;
      counted->received_bytes = load_relaxed(qp.own->received_bytes);
      counted->failed = qp.in.failed_receives;
      counted->next_of_qp = qp.sq.counted;
      qp.sq.counted = counted;
      if ((ops & kOwnRequests) != 0) qp.posts_generally = true;
    }
  }
  if (error != 0) {
    destroy_nothrow(counted);
    return error;
  }
  LockGuard<Mutex> guard(counter.lock);
  counted->next_of_counter = counter.first;
  counter.first = counted;
  return 0;
}

}  // namespace verbatim::shm
