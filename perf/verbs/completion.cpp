// SPDX-License-Identifier: BSD-2-Clause
// One operation at a time, from the post to its completion: what WRITE, READ and the atomics cost
// their initiator. The far process is idle in a loop, polls its queues, or sleeps in pause(): to a
// one-sided operation, and to a SEND that finds a posted receive, it should make no difference
// (R10). That it really sleeps is read from /proc, before and after.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>

#include "perf/support/clock.hpp"
#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {
namespace {

class SingleRequest {
 public:
  SingleRequest(Endpoint& endpoint, const Request& request)
      : qp_(endpoint.qp()), cq_(endpoint.send_cq()) {
    const Region& region = endpoint.region(request.memory);
    const RemoteRegion& remote = endpoint.remote(request.memory);
    const bool into_local =
        request.operation != Operation::kSend && request.operation != Operation::kWrite;
    std::byte* local = into_local ? region.area.in : region.area.out;
    const std::uint64_t address = request.operation == Operation::kRead ? remote.out : remote.in;
    sge_ = {reinterpret_cast<std::uintptr_t>(local), static_cast<std::uint32_t>(request.size),
            region.lkey};
    request_.sg_list = &sge_;
    request_.num_sge = 1;
    request_.send_flags = IBV_SEND_SIGNALED;
    if (!into_local && request.size <= kInlineMax) request_.send_flags |= IBV_SEND_INLINE;
    switch (request.operation) {
      case Operation::kSend:
        request_.opcode = IBV_WR_SEND;
        break;
      case Operation::kWrite:
        request_.opcode = IBV_WR_RDMA_WRITE;
        break;
      case Operation::kRead:
        request_.opcode = IBV_WR_RDMA_READ;
        break;
      case Operation::kFetchAdd:
        request_.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        break;
      case Operation::kCompareSwap:
        request_.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        break;
    }
    if (request.operation == Operation::kFetchAdd || request.operation == Operation::kCompareSwap) {
      request_.wr.atomic = {address, request.operation == Operation::kFetchAdd, 0, remote.rkey};
    } else {
      request_.wr.rdma = {address, remote.rkey};
    }
  }
  SingleRequest(const SingleRequest&) = delete;
  SingleRequest& operator=(const SingleRequest&) = delete;

  void perform() {
    post_send(qp_, &request_);
    ibv_wc found;
    while (poll_some(cq_, std::span(&found, 1)) == 0) cpu_relax();
  }

 private:
  ibv_qp* qp_;
  ibv_cq* cq_;
  ibv_sge sge_{};
  ibv_send_wr request_{};
};

void perform_all(End& end, const Request& request, Reply& reply) {
  SingleRequest single(end.endpoint(), request);
  Histogram& stamps = end.shared().stamps;
  stamps.clear();
  end.meet();
  const std::uint64_t start = now_ns();
  if (request.stamped != 0) {
    std::uint64_t before = ticks();
    for (std::uint64_t i = 0; i < request.iterations; ++i) {
      single.perform();
      const std::uint64_t after = ticks();
      stamps.record(after - before);
      before = after;
    }
  } else {
    for (std::uint64_t i = 0; i < request.iterations; ++i) single.perform();
  }
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = static_cast<double>(request.iterations);
  reply.bytes = reply.operations * static_cast<double>(request.size);
  reply.ns_per_stamp = request.stamped != 0 ? ns_per_tick() : 0;
}

struct Sleep {
  char state;
  unsigned long switches;
};

// Of the process's main thread; a service thread of the library may run.
Sleep sleep_of(pid_t pid) {
  const std::string task = std::to_string(pid);
  std::ifstream status("/proc/" + task + "/task/" + task + "/status");
  Sleep sleep{'?', 0};
  for (std::string word; status >> word;) {
    if (word == "State:") status >> sleep.state;
    if (word == "voluntary_ctxt_switches:") status >> sleep.switches;
  }
  return sleep;
}

void measure_sleeper(End& end, const Request& request, Reply& reply) {
  SingleRequest single(end.endpoint(), request);
  end.meet();
  while (request.asleep != 0 && sleep_of(end.peer_pid()).state != 'S') sched_yield();
  const Sleep before = sleep_of(end.peer_pid());
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) single.perform();
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  const Sleep after = sleep_of(end.peer_pid());
  reply.operations = static_cast<double>(request.iterations);
  reply.bytes = reply.operations * static_cast<double>(request.size);
  // Tells an awake peer to go on, and wakes a sleeping one.
  end.own_line().store(1, std::memory_order_release);
  if (request.asleep == 0) return;
  if (kill(end.peer_pid(), SIGUSR1) != 0) throw_verbs(errno, "wake the far process");
  if (after.state != 'S' || after.switches != before.switches) {
    throw std::runtime_error("the far process did not sleep through the block");
  }
}

void sleep_in_pause() {
  sigset_t wake;
  sigset_t others;
  sigemptyset(&wake);
  sigaddset(&wake, SIGUSR1);
  sigprocmask(SIG_SETMASK, nullptr, &others);
  sigdelset(&others, SIGUSR1);
  sigsuspend(&others);  // pause() that cannot miss the signal
}

void be_measured(End& end, const Request& request) {
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  sigaction(SIGUSR1, &nothing, nullptr);
  sigset_t wake;
  sigemptyset(&wake);
  sigaddset(&wake, SIGUSR1);
  sigprocmask(SIG_BLOCK, &wake, nullptr);

  Endpoint& endpoint = end.endpoint();
  std::uint64_t expected = request.operation == Operation::kSend ? request.iterations : 0;
  endpoint.post_receives(request.memory, request.size, static_cast<std::uint32_t>(expected), 1);
  end.meet();
  if (request.asleep != 0) sleep_in_pause();
  ibv_wc found[16];
  while (end.peer_line().load(std::memory_order_acquire) == 0 || expected != 0) {
    expected -= static_cast<std::uint64_t>(poll_some(endpoint.recv_cq(), found));
    cpu_relax();
  }
}

}  // namespace

void run_completion(End& end, const Request& request, Reply& reply) {
  if (end.is_near()) {
    perform_all(end, request, reply);
  } else {
    end.meet();
  }
  // The far end stays awake, in this loop, until the near one is through.
  end.meet();
}

void run_sleeping(End& end, const Request& request, Reply& reply) {
  if (request.operation == Operation::kSend && request.iterations > kRecvDepth) {
    throw std::invalid_argument("more sends to a sleeper than its receive queue holds");
  }
  end.own_line().store(0, std::memory_order_release);
  if (end.is_near()) {
    measure_sleeper(end, request, reply);
  } else {
    be_measured(end, request);
  }
  end.meet();
}

}  // namespace verbatim::perf
