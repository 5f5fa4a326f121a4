// SPDX-License-Identifier: BSD-2-Clause
// Many in flight, as ib_send_bw, ib_write_bw and ib_read_bw do it: one buffer used over and over,
// one request in kSignalEvery signaled, at most kSendDepth outstanding; single posts or lists. For
// sends the far end keeps its receive queue full. The clock stops when the last completion is there
// and, for sends, when the far end says that it has seen the last message.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "perf/support/clock.hpp"
#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {
namespace {

ibv_wr_opcode opcode_of(Operation operation) {
  switch (operation) {
    case Operation::kSend:
      return IBV_WR_SEND;
    case Operation::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Operation::kRead:
      return IBV_WR_RDMA_READ;
    case Operation::kFetchAdd:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case Operation::kCompareSwap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
  }
  throw std::invalid_argument("unknown operation");
}

class Source {
 public:
  Source(Endpoint& endpoint, const Request& request)
      : qp_(endpoint.way(request.service).qp),
        cq_(endpoint.way(request.service).send_cq),
        batch_(request.batch) {
    const Region& region = endpoint.region(request.memory);
    const RemoteRegion& remote = endpoint.remote(request.memory);
    const bool outgoing =
        request.operation == Operation::kSend || request.operation == Operation::kWrite;
    sge_ = {reinterpret_cast<std::uintptr_t>(outgoing ? region.area.out : region.area.in),
            static_cast<std::uint32_t>(request.size), region.lkey};
    flags_ = outgoing && request.size <= kInlineMax ? unsigned{IBV_SEND_INLINE} : 0u;
    for (std::uint32_t i = 0; i < batch_; ++i) {
      ibv_send_wr& each = list_[i];
      each.next = i + 1 < batch_ ? &list_[i + 1] : nullptr;
      each.sg_list = &sge_;
      each.num_sge = 1;
      each.opcode = opcode_of(request.operation);
      each.send_flags = flags_;
      if (each.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || each.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        each.wr.atomic = {remote.in, 1, 0, remote.rkey};
      } else {
        each.wr.rdma = {request.operation == Operation::kRead ? remote.out : remote.in,
                        remote.rkey};
      }
    }
    if (batch_ == kSignalEvery) list_[batch_ - 1].send_flags |= IBV_SEND_SIGNALED;
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// `count` is a multiple of kSignalEvery.
  template <Calls kCalls>
  void send(std::uint64_t count) {
    if (batch_ == 1) {
      send_singly<kCalls>(count);
    } else {
      send_lists<kCalls>(count);
    }
    while (in_flight_ > 0) collect<kCalls>();
  }

 private:
  template <Calls kCalls>
  void send_singly(std::uint64_t count) {
    for (std::uint64_t done = 0; done < count; done += kSignalEvery) {
      while (in_flight_ + kSignalEvery > kSendDepth) collect<kCalls>();
      list_[0].send_flags = flags_;
      for (std::uint32_t i = 1; i < kSignalEvery; ++i) post<kCalls>(qp_, &list_[0]);
      list_[0].send_flags = flags_ | IBV_SEND_SIGNALED;
      post<kCalls>(qp_, &list_[0]);
      in_flight_ += kSignalEvery;
    }
  }

  template <Calls kCalls>
  void send_lists(std::uint64_t count) {
    for (std::uint64_t done = 0; done < count; done += kSignalEvery) {
      while (in_flight_ + kSignalEvery > kSendDepth) collect<kCalls>();
      post<kCalls>(qp_, &list_[0]);
      in_flight_ += kSignalEvery;
    }
  }

  template <Calls kCalls>
  void collect() {
    ibv_wc found[4];
    in_flight_ -= static_cast<std::uint32_t>(look<kCalls>(cq_, found)) * kSignalEvery;
  }

  ibv_qp* qp_;
  ibv_cq* cq_;
  std::uint32_t batch_;
  std::uint32_t in_flight_ = 0;
  unsigned flags_ = 0;
  ibv_sge sge_{};
  std::array<ibv_send_wr, kSignalEvery> list_{};
};

class Sink {
 public:
  Sink(Endpoint& endpoint, const Request& request)
      : qp_(endpoint.way(request.service).qp),
        cq_(endpoint.way(request.service).recv_cq),
        single_(request.batch == 1) {
    const auto first =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(kRecvDepth, request.iterations));
    endpoint.post_receives(request.memory, request.size, first, 1, request.service);
    to_post_ = request.iterations - first;
    const Region& region = endpoint.region(request.memory);
    sge_ = {reinterpret_cast<std::uintptr_t>(region.area.in),
            static_cast<std::uint32_t>(request.size), region.lkey};
    for (ibv_recv_wr& each : list_) {
      each.sg_list = &sge_;
      each.num_sge = 1;
    }
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  template <Pace kPace, Calls kCalls>
  void receive(std::uint64_t count) {
    ibv_wc found[kSignalEvery];
    while (count > 0) {
      const auto got = static_cast<std::uint32_t>(look<kCalls>(cq_, found));
      if (got == 0) {
        pace_once<kPace>();
        continue;
      }
      count -= got;
      repost(static_cast<std::uint32_t>(std::min<std::uint64_t>(got, to_post_)));
    }
  }

 private:
  void repost(std::uint32_t count) {
    if (count == 0) return;
    to_post_ -= count;
    if (single_) {
      for (std::uint32_t i = 0; i < count; ++i) post_recv(qp_, &list_[0]);
      return;
    }
    for (std::uint32_t i = 0; i + 1 < count; ++i) list_[i].next = &list_[i + 1];
    list_[count - 1].next = nullptr;
    post_recv(qp_, &list_[0]);
  }

  ibv_qp* qp_;
  ibv_cq* cq_;
  bool single_;
  std::uint64_t to_post_ = 0;
  ibv_sge sge_{};
  std::array<ibv_recv_wr, kSignalEvery> list_{};
};

}  // namespace

void run_stream(End& end, const Request& request, Reply& reply) {
  if ((request.batch != 1 && request.batch != kSignalEvery) ||
      request.iterations % kSignalEvery != 0) {
    throw std::invalid_argument("stream: lists of 1 or 32, a multiple of 32 messages");
  }
  const bool two_sided = request.operation == Operation::kSend;
  end.own_line().store(0, std::memory_order_release);
  if (!end.is_near()) {
    if (two_sided) {
      Sink sink(end.endpoint(), request);
      end.meet();
      with_pace(request.pace, [&](auto pace) {
        with_calls(request.calls,
                   [&](auto calls) { sink.receive<pace(), calls()>(request.iterations); });
      });
      end.own_line().store(1, std::memory_order_release);
    } else {
      end.meet();
    }
  } else {
    Source source(end.endpoint(), request);
    end.meet();
    const std::uint64_t start = now_ns();
    with_calls(request.calls, [&](auto calls) { source.send<calls()>(request.iterations); });
    while (two_sided && end.peer_line().load(std::memory_order_acquire) == 0) cpu_relax();
    reply.elapsed_ns = static_cast<double>(now_ns() - start);
    reply.operations = static_cast<double>(request.iterations);
    reply.bytes = reply.operations * static_cast<double>(request.size);
  }
  end.meet();
}

}  // namespace verbatim::perf
