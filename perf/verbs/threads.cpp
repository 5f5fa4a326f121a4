// SPDX-License-Identifier: BSD-2-Clause
// What a thread pays for a WRITE through queues of its own while others do the same on one context:
// processor time, so that it does not matter how many cores they share. Each queue pair is
// connected to itself.
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "perf/ends/wire.hpp"
#include "perf/support/clock.hpp"
#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint32_t kMostThreads = 64;
constexpr std::uint32_t kDepth = 64;
constexpr std::uint64_t kWarmUp = 1000;  // first touches of the queues are the connection's

/// The queues of one thread, and the line that it writes into.
struct ThreadQueues {
  CqHandle cq;
  QpHandle qp;
  MrHandle mr;
  alignas(kApart) std::byte memory[kApart] = {};
  double cpu_ns = 0;
  std::exception_ptr failure;
};

double thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

void write_on(ThreadQueues& queues, std::uint64_t iterations) {
  ibv_sge sge = {reinterpret_cast<std::uintptr_t>(queues.memory), 8, queues.mr->lkey};
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma = {reinterpret_cast<std::uintptr_t>(queues.memory) + 64, queues.mr->rkey};
  const auto write = [&](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      post_send(queues.qp.get(), &request);
      await_completions(queues.cq.get(), 1);
    }
  };
  write(kWarmUp);
  const double before = thread_cpu_ns();
  write(iterations);
  queues.cpu_ns = thread_cpu_ns() - before;
}

/// Where threads wait until all have come.
class Start {
 public:
  explicit Start(std::uint32_t threads) : missing_(threads) {}
  void come() {
    give_up(1);
    while (missing_.load(std::memory_order_acquire) > 0) sched_yield();
  }
  /// So many will not come.
  void give_up(std::uint32_t threads) { missing_.fetch_sub(threads, std::memory_order_acq_rel); }

 private:
  std::atomic<std::uint32_t> missing_;
};

void run_thread(ThreadQueues& queues, int cpu, std::uint64_t iterations, Start& start) {
  cpu_set_t where;
  CPU_ZERO(&where);
  CPU_SET(static_cast<unsigned>(cpu), &where);
  // Where it may not run there it runs where the process does.
  (void)pthread_setaffinity_np(pthread_self(), sizeof where, &where);
  start.come();
  try {
    write_on(queues, iterations);
  } catch (...) {
    queues.failure = std::current_exception();
  }
}

}  // namespace

void run_threads(End& end, const Request& request, Reply& reply) {
  const int cpus[2] = {sched_getcpu(), exchange_record(end.peer_fd(), sched_getcpu())};
  if (!end.is_near()) return;  // asleep meanwhile
  if (request.batch < 1 || request.batch > kMostThreads) throw std::invalid_argument("threads");
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  ibv_pd* const pd = end.endpoint().pd();
  ibv_context* const context = end.endpoint().qp()->context;
  std::vector<ThreadQueues> all(request.batch);
  for (ThreadQueues& queues : all) {
    queues.cq.reset(ibv_create_cq(context, kDepth, nullptr, nullptr, 0));
    queues.mr.reset(ibv_reg_mr(pd, queues.memory, sizeof queues.memory, kAccess));
    if (!queues.cq || !queues.mr) throw_verbs(errno, "CQ or MR of a thread");
    queues.qp = create_rc_qp(pd, queues.cq.get(), queues.cq.get(), kDepth, kDepth);
    const QpAddress own = address_of(context, queues.qp.get());
    connect_rc(queues.qp.get(), own, own);
  }
  Start start(request.batch);
  std::vector<std::thread> threads;
  threads.reserve(all.size());
  try {
    for (std::size_t i = 0; i < all.size(); ++i) {
      threads.emplace_back([&, i] { run_thread(all[i], cpus[i % 2], request.iterations, start); });
    }
  } catch (...) {
    start.give_up(static_cast<std::uint32_t>(all.size() - threads.size()));
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  for (const ThreadQueues& queues : all) {
    if (queues.failure) std::rethrow_exception(queues.failure);
    reply.elapsed_ns += queues.cpu_ns / request.batch;
  }
  reply.operations = static_cast<double>(request.iterations);
}

}  // namespace verbatim::perf
