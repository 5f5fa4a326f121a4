// SPDX-License-Identifier: BSD-2-Clause
// Small benchmarks of the library's structures by its API, in one process: what is said to be O(1)
// is taken among more and more objects, and Google Benchmark fits the order.
#include <benchmark/benchmark.h>
#include <verbatim/memory.h>

#include <memory>
#include <vector>

#include "perf/micro/fixture.hpp"

namespace verbatim::perf {
namespace {

constexpr std::size_t kUsed = 64;  // of many objects, so that caches make no difference

/// The send ring and the completion ring: so many requests in a list, posted and polled.
void rings(benchmark::State& state) {
  const Micro micro;
  alignas(64) std::byte memory[64] = {};
  const MrHandle mr = micro.register_memory(memory, sizeof memory);
  const auto length = static_cast<std::size_t>(state.range(0));
  ibv_sge sge = {reinterpret_cast<std::uintptr_t>(memory), 8, mr->lkey};
  std::vector<ibv_send_wr> list(length);
  for (std::size_t i = 0; i < length; ++i) {
    list[i].next = i + 1 < length ? &list[i + 1] : nullptr;
    list[i].sg_list = &sge;
    list[i].num_sge = 1;
    list[i].opcode = IBV_WR_RDMA_WRITE;
    list[i].send_flags = IBV_SEND_SIGNALED;
    list[i].wr.rdma = {reinterpret_cast<std::uintptr_t>(memory) + 32, mr->rkey};
  }
  for (auto _ : state) {
    post_send(micro.qp.get(), list.data());
    await_completions(micro.cq.get(), static_cast<std::uint32_t>(length));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(rings)->RangeMultiplier(4)->Range(1, 1024)->Complexity(benchmark::oN);

/// A WRITE between two of so many regions: both keys are looked up.
void keys(benchmark::State& state) {
  const Micro micro;
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> memory(64 * count);
  std::vector<MrHandle> regions;
  regions.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    regions.push_back(micro.register_memory(memory.data() + 64 * i, 64));
  }
  std::size_t next = 0;
  for (auto _ : state) {
    const ibv_mr& from = *regions[next * (count - 1) / (kUsed - 1)];
    const ibv_mr& to = *regions[(kUsed - 1 - next) * (count - 1) / (kUsed - 1)];
    next = (next + 1) % kUsed;
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(from.addr), 8, from.lkey};
    ibv_send_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {reinterpret_cast<std::uintptr_t>(to.addr) + 32, to.rkey};
    post_send(micro.qp.get(), &request);
    await_completions(micro.cq.get(), 1);
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK(keys)->RangeMultiplier(8)->Range(kUsed, 32768)->Complexity(benchmark::o1);

/// A buffer of a pool of which so many are out.
void pools(benchmark::State& state) {
  const auto out = static_cast<std::size_t>(state.range(0));
  vbt_pool_attr attr{};
  attr.buffer_size = 256;
  attr.count = out + 64;
  vbt_pool* const pool = vbt_create_pool(&attr, sizeof attr, nullptr, 0);
  if (pool == nullptr) throw_verbs(errno, "vbt_create_pool");
  std::vector<void*> held;
  for (std::size_t i = 0; i < out; ++i) held.push_back(vbt_pool_alloc(pool));
  for (auto _ : state) {
    void* const buffer = vbt_pool_alloc(pool);
    benchmark::DoNotOptimize(buffer);
    vbt_pool_free(pool, buffer);
  }
  for (void* const buffer : held) vbt_pool_free(pool, buffer);
  if (const int error = vbt_destroy_pool(pool)) throw_verbs(error, "vbt_destroy_pool");
  state.SetComplexityN(state.range(0));
}
BENCHMARK(pools)->RangeMultiplier(8)->Range(1, 32768)->Complexity(benchmark::o1);

/// A datagram by one of so many address handles.
void addresses(benchmark::State& state) {
  const Micro micro;
  const auto count = static_cast<std::size_t>(state.range(0));
  const QpHandle qp = create_datagram_qp(micro.pd.get(), micro.cq.get(), micro.cq.get());
  start_datagrams(qp.get());
  const QpAddress own = address_of(micro.context.get(), qp.get());
  std::vector<AhHandle> handles;
  handles.reserve(count);
  for (std::size_t i = 0; i < count; ++i) handles.push_back(create_ah_to(micro.pd.get(), own));
  alignas(64) std::byte memory[128] = {};
  const MrHandle mr = micro.register_memory(memory, sizeof memory);
  ibv_sge from = {reinterpret_cast<std::uintptr_t>(memory), 8, mr->lkey};
  ibv_sge to = {reinterpret_cast<std::uintptr_t>(memory) + 64, 48, mr->lkey};
  ibv_recv_wr receive{};
  receive.sg_list = &to;
  receive.num_sge = 1;
  std::size_t next = 0;
  for (auto _ : state) {
    ibv_send_wr request{};
    request.sg_list = &from;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.ud = {handles[next * (count - 1) / (kUsed - 1)].get(), own.qpn, kQkey};
    next = (next + 1) % kUsed;
    post_recv(qp.get(), &receive);
    post_send(qp.get(), &request);
    await_completions(micro.cq.get(), 2);
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK(addresses)->RangeMultiplier(8)->Range(kUsed, 32768)->Complexity(benchmark::o1);

/// A poll of an empty queue that so many queue pairs complete into.
void empty_polls(benchmark::State& state) {
  const Micro micro;
  std::vector<QpHandle> pairs;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    pairs.push_back(create_rc_qp(micro.pd.get(), micro.cq.get(), micro.cq.get(), 16, 16));
  }
  ibv_wc found;
  for (auto _ : state) benchmark::DoNotOptimize(ibv_poll_cq(micro.cq.get(), 1, &found));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(empty_polls)->RangeMultiplier(8)->Range(1, 4096)->Complexity(benchmark::o1);

}  // namespace
}  // namespace verbatim::perf

BENCHMARK_MAIN();
