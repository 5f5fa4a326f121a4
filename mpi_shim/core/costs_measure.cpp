// SPDX-License-Identifier: BSD-2-Clause
// What copies, reductions and hand-overs of a cache line cost on this host. Neighbours disturb it at any
// time, but nothing makes it faster than it is: so each is the least of many short blocks. What could not
// be measured in time, or at all, is left as it was.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/hand_over.hpp"
#include "mpi_shim/core/op.hpp"
#include "runtime/time/clock.hpp"

namespace vmpi {
namespace {

constexpr std::size_t kBytes = 64u << 10;
constexpr std::uint64_t kMostNs = 500'000;  // of each part
constexpr int kBlocks = 12;

/// The least time of a block, in ns; 0: it has failed.
template <class Block>
[[nodiscard]] double least_of(Block block) noexcept {
  std::uint64_t least = 0;
  const std::uint64_t until = verbatim::now_ns() + kMostNs;
  for (int i = 0; i < kBlocks; ++i) {
    const std::uint64_t begin = verbatim::now_ns();
    if (!block()) return 0;
    const std::uint64_t end = verbatim::now_ns();
    // The first one touches memory that nobody has had.
    if (i != 0 && (least == 0 || end - begin < least)) least = end - begin;
    if (i != 0 && end >= until) break;
  }
  return static_cast<double>(least);
}

/// False: the kernel copies nothing from a process, as a container may forbid it.
[[nodiscard]] bool measure_copies(Costs& into, unsigned char* from, unsigned char* to) noexcept {
  constexpr auto kOfAll = static_cast<double>(kBytes);
  const double put = least_of([=] {
    std::memcpy(to, from, kBytes);
    asm volatile("" : : "r"(to) : "memory");
    return true;
  });
  if (put > 0) into.set_measured(CostOf::kPut, put / kOfAll);
  const double kernel = least_of([=] {
    const iovec here = {to, kBytes};
    const iovec there = {from, kBytes};
    return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(kBytes);
  });
  if (kernel > 0) into.set_measured(CostOf::kKernel, kernel / kOfAll);
  const Op* const sum = find_op(MPI_SUM);
  const Datatype* const reals = find_datatype(MPI_DOUBLE);
  Combine* const add = sum != nullptr && reals != nullptr ? combine_of(*sum, *reals) : nullptr;
  const double combine = least_of([=] {
    if (add == nullptr) return false;
    add(from, to, kBytes / sizeof(double));
    return true;
  });
  if (combine > 0) into.set_measured(CostOf::kCombine, combine / kOfAll);
  return kernel > 0;
}

void measure_hand_overs(Costs& into) noexcept {
  const Partners partners = find_partners();
  const HandOver near = measure_hand_over(partners.near);
  const HandOver far = measure_hand_over(partners.far);
  // Where no core shares a cache with this one, or all do, the two latencies are alike. One that could
  // be had, but was not in time, is left for the next time.
  const double nearest = near.is_begun ? near.latency_ns : far.latency_ns;
  const double farthest = far.is_begun ? far.latency_ns : near.latency_ns;
  if (nearest > 0) into.set_measured(CostOf::kNearLatency, nearest);
  if (farthest > 0) into.set_measured(CostOf::kFarLatency, std::max(nearest, farthest));
  const double fetch = std::max(near.fetch_ns, far.fetch_ns);
  const double put = std::max(near.put_ns, far.put_ns);
  if (fetch > 0) into.set_measured(CostOf::kFetch, fetch);
  if (put > 0) into.set_measured(CostOf::kPut, put);
}

}  // namespace

void go_without_kernel(Costs& costs) noexcept {
  costs.set_measured(CostOf::kKernel, costs.ns(CostOf::kPut) + costs.ns(CostOf::kFetch));
}

void measure_costs(Costs& into) noexcept {
  auto* const memory = static_cast<unsigned char*>(std::aligned_alloc(64, 2 * kBytes));
  if (memory == nullptr) return;
  // As doubles they are zero: nothing that a sum would be slow with.
  std::memset(memory, 0, 2 * kBytes);
  const bool copies = measure_copies(into, memory, memory + kBytes);
  std::free(memory);
  measure_hand_overs(into);
  if (!copies) go_without_kernel(into);
}

}  // namespace vmpi
