// SPDX-License-Identifier: BSD-2-Clause
// What ibv_reg_mr and ibv_dereg_mr of ordinary memory cost together. Deregistration promises that
// no peer still touches the range, so it is measured twice: with the peer connected and idle, and
// with the peer writing into another region of ours all the time (`batch` != 0).
#include <stdexcept>

#include "perf/support/clock.hpp"
#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {
namespace {

void write_until_told(End& end) {
  Endpoint& endpoint = end.endpoint();
  const Region& region = endpoint.region(Memory::kPrivate);
  const RemoteRegion& remote = endpoint.remote(Memory::kPrivate);
  ibv_sge sge = {reinterpret_cast<std::uintptr_t>(region.area.out), 4096, region.lkey};
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma = {remote.in, remote.rkey};
  while (end.peer_line().load(std::memory_order_acquire) == 0) {
    post_send(endpoint.qp(), &request);
    await_completions(endpoint.send_cq(), 1);
  }
}

}  // namespace

void run_register(End& end, const Request& request, Reply& reply) {
  if (request.size > kAreaBytes) throw std::invalid_argument("register: size");
  end.own_line().store(0, std::memory_order_release);
  end.meet();
  if (!end.is_near()) {
    if (request.batch != 0) write_until_told(end);
    return;
  }
  ibv_pd* pd = end.endpoint().pd();
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    // Not the region that the peer writes to.
    ibv_mr* mr = ibv_reg_mr(pd, end.local().out, request.size, kAccess);
    if (mr == nullptr) throw_verbs(errno, "ibv_reg_mr");
    const int error = ibv_dereg_mr(mr);
    if (error != 0) throw_verbs(error, "ibv_dereg_mr");
  }
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = static_cast<double>(request.iterations);
  end.own_line().store(1, std::memory_order_release);
}

}  // namespace verbatim::perf
