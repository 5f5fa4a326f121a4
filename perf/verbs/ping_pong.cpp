// SPDX-License-Identifier: BSD-2-Clause
// Latency there and back, halved: send/recv as ib_send_lat, and RDMA write with the receiver
// polling the last byte of its buffer as ib_write_lat. A receive is posted again after the answer
// has been sent, off the critical path; sends are signaled now and then.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "perf/support/clock.hpp"
#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint32_t kReceives = 64;

// The send side of both: one prepared request, signaled every kSignalEvery-th time, its completion
// collected one round later.
class Sender {
 public:
  Sender(Endpoint& endpoint, const Request& request)
      : qp_(endpoint.way(request.service).qp), cq_(endpoint.way(request.service).send_cq) {
    const Region& region = endpoint.region(request.memory);
    const RemoteRegion& remote = endpoint.remote(request.memory);
    sge_ = {reinterpret_cast<std::uintptr_t>(region.area.out),
            static_cast<std::uint32_t>(request.size), region.lkey};
    request_.sg_list = &sge_;
    request_.num_sge = 1;
    request_.opcode = request.operation == Operation::kWrite ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
    request_.wr.rdma.remote_addr = remote.in;
    request_.wr.rdma.rkey = remote.rkey;
    const Way way = endpoint.way(request.service);
    if (way.ah != nullptr) request_.wr.ud = {way.ah, way.remote_qpn, kQkey};
    plain_flags_ = request.size <= kInlineMax ? unsigned{IBV_SEND_INLINE} : 0u;
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void send() {
    const bool signaled = ++count_ % kSignalEvery == 0;
    request_.send_flags = signaled ? plain_flags_ | IBV_SEND_SIGNALED : plain_flags_;
    post_send(qp_, &request_);
    outstanding_ += signaled;
  }

  /// While the peer's answer is on its way.
  void collect() {
    if (outstanding_ == 0) return;
    await_completions(cq_, outstanding_);
    outstanding_ = 0;
  }

  /// Leaves the send queue empty: the unsignaled tail is completed by one more, zero-length write;
  /// or by a datagram that finds no receive.
  void finish() {
    collect();
    if (qp_->qp_type != IBV_QPT_UD) request_.opcode = IBV_WR_RDMA_WRITE;
    request_.num_sge = 0;
    request_.send_flags = IBV_SEND_SIGNALED;
    post_send(qp_, &request_);
    await_completions(cq_, 1);
  }

 private:
  ibv_qp* qp_;
  ibv_cq* cq_;
  ibv_sge sge_{};
  ibv_send_wr request_{};
  unsigned plain_flags_ = 0;
  std::uint64_t count_ = 0;
  std::uint32_t outstanding_ = 0;
};

// Two ways to know that the peer's message has come. `arm` prepares for one more, after the answer
// has been sent; exactly as many receives are posted in a block as messages come, so that the next
// block starts with empty queues.
class ReceiveWait {
 public:
  ReceiveWait(Endpoint& endpoint, const Request& request)
      : way_(endpoint.way(request.service)), cq_(way_.recv_cq), waiting_(request.waiting) {
    const auto first =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(kReceives, request.iterations));
    endpoint.post_receives(request.memory, request.size, first, 1, request.service);
    to_post_ = request.iterations - first;
    const Region& region = endpoint.region(request.memory);
    sge_ = {reinterpret_cast<std::uintptr_t>(region.area.in),
            static_cast<std::uint32_t>(request.size) + way_.header, region.lkey};
    request_.sg_list = &sge_;
    request_.num_sge = 1;
    // Who spins first asks when it is about to sleep: an event that nobody waits for is dear.
    if (way_.channel != nullptr && waiting_ != Waiting::kAdaptive) ask_for_event();
  }
  ReceiveWait(const ReceiveWait&) = delete;
  ReceiveWait& operator=(const ReceiveWait&) = delete;

  template <Pace kPace>
  void await(std::uint64_t) {
    ibv_wc found;
    for (unsigned looks = 1; poll_some(cq_, std::span(&found, 1)) == 0; ++looks) {
      if (waiting_ == Waiting::kYield)
        sched_yield();
      else if (way_.channel != nullptr && (waiting_ != Waiting::kAdaptive || looks > kLooks))
        sleep();
      else
        pace_once<kPace>();
    }
  }
  void arm() {
    if (to_post_ == 0) return;
    --to_post_;
    way_.post_recv(&request_);
  }

 private:
  /// Some 20 us: about what it takes to be woken up.
  static constexpr unsigned kLooks = 500;

  void ask_for_event() {
    if (const int error = ibv_req_notify_cq(cq_, 0); error != 0)
      throw_verbs(error, "ibv_req_notify_cq");
    is_armed_ = true;
  }
  /// Until an event comes; what it was for is found by the next look. Also what has come before the
  /// event was asked for, which therefore comes first.
  void sleep() {
    if (!is_armed_) return ask_for_event();
    ibv_cq* cq;
    void* context;
    if (ibv_get_cq_event(way_.channel, &cq, &context) != 0) throw_verbs(errno, "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    is_armed_ = false;
    if (waiting_ != Waiting::kAdaptive) ask_for_event();
  }

  Way way_;
  ibv_cq* cq_;
  Waiting waiting_;
  bool is_armed_ = false;
  ibv_sge sge_{};
  ibv_recv_wr request_{};
  std::uint64_t to_post_ = 0;
};

class MemoryWait {
 public:
  MemoryWait(Endpoint& endpoint, const Request& request)
      : in_(endpoint.region(request.memory).area.in + request.size - 1),
        out_(endpoint.region(request.memory).area.out + request.size - 1) {
    std::atomic_ref(*in_).store(std::byte{0}, std::memory_order_relaxed);
  }

  template <Pace kPace>
  void await(std::uint64_t number) {
    const auto wanted = static_cast<std::byte>(number);
    while (std::atomic_ref(*in_).load(std::memory_order_acquire) != wanted) pace_once<kPace>();
  }
  void arm() {}
  /// The byte the peer waits for.
  void mark(std::uint64_t number) { *out_ = static_cast<std::byte>(number); }

 private:
  std::byte* in_;
  std::byte* out_;
};

template <class Wait>
void prepare(Wait& wait, std::uint64_t number) {
  if constexpr (requires { wait.mark(number); }) wait.mark(number);
}

template <Pace kPace, bool kStamped, class Wait>
void ask(Sender& sender, Wait& wait, Histogram& stamps, std::uint64_t rounds) {
  std::uint64_t before = ticks();
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    prepare(wait, i);
    sender.send();
    if (i > 1) wait.arm();
    sender.collect();
    wait.template await<kPace>(i);
    if constexpr (kStamped) {
      const std::uint64_t after = ticks();
      stamps.record(after - before);
      before = after;
    }
  }
}

template <Pace kPace, class Wait>
void answer(Sender& sender, Wait& wait, std::uint64_t rounds) {
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    wait.template await<kPace>(i);
    prepare(wait, i);
    sender.send();
    wait.arm();
    sender.collect();
  }
}

template <class Wait>
void run(End& end, const Request& request, Reply& reply) {
  Endpoint& endpoint = end.endpoint();
  Histogram& stamps = end.shared().stamps;
  Sender sender(endpoint, request);
  Wait wait(endpoint, request);
  if (end.is_near()) stamps.clear();
  end.meet();
  const std::uint64_t start = now_ns();
  with_pace(request.pace, [&](auto pace) {
    if (!end.is_near()) {
      answer<pace()>(sender, wait, request.iterations);
    } else if (request.stamped != 0) {
      ask<pace(), true>(sender, wait, stamps, request.iterations);
    } else {
      ask<pace(), false>(sender, wait, stamps, request.iterations);
    }
  });
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = 2.0 * static_cast<double>(request.iterations);
  reply.bytes = reply.operations * static_cast<double>(request.size);
  reply.ns_per_stamp = request.stamped != 0 ? ns_per_tick() / 2 : 0;
  end.meet();
  sender.finish();
}

}  // namespace

void run_ping_pong(End& end, const Request& request, Reply& reply) {
  if (request.operation == Operation::kWrite) {
    run<MemoryWait>(end, request, reply);
  } else {
    run<ReceiveWait>(end, request, reply);
  }
}

}  // namespace verbatim::perf
