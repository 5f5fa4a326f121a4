// SPDX-License-Identifier: BSD-2-Clause
#include "perf/verbs/many_regions.hpp"

#include <stdexcept>

#include "perf/ends/wire.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::perf {

ManyRegions::ManyRegions(End& end, std::uint32_t count) {
  if (count < kUsed || count > kAreaBytes / kBytes) throw std::invalid_argument("many regions");
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  ibv_pd* const pd = end.endpoint().pd();
  // What peers map: no copy by the kernel hides what finding it costs.
  std::byte* const memory = end.endpoint().region(Memory::kShared).area.in;
  regions_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    regions_.emplace_back(ibv_reg_mr(pd, memory + i * kBytes, kBytes, kAccess));
    if (!regions_.back()) throw_verbs(errno, "ibv_reg_mr of many regions");
  }
  for (std::uint32_t i = 0; i < kUsed; ++i) {
    const ibv_mr& mr = *regions_[std::uint64_t{i} * (count - 1) / (kUsed - 1)];
    own_[i] = {reinterpret_cast<std::uintptr_t>(mr.addr), mr.lkey, mr.rkey};
  }
  theirs_ = exchange_record(end.peer_fd(), own_);
}

void ManyRegions::write(End& end, std::uint64_t iterations, Reply& reply) {
  end.own_line().store(0, std::memory_order_release);
  end.meet();
  if (!end.is_near()) {
    while (end.peer_line().load(std::memory_order_acquire) == 0) cpu_relax();
    return;
  }
  ibv_sge sge{};
  sge.length = 8;
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    const Used& from = own_[i % kUsed];
    const Used& to = theirs_[i % kUsed];
    sge.addr = from.address;
    sge.lkey = from.lkey;
    request.wr.rdma = {to.address, to.rkey};
    post_send(end.endpoint().qp(), &request);
    await_completions(end.endpoint().send_cq(), 1);
  }
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = static_cast<double>(iterations);
  end.own_line().store(1, std::memory_order_release);
}

void run_register_many(End& end, const Request& request, Reply&) {
  auto& many = end.many_regions_slot();
  many.reset();
  many = std::make_unique<ManyRegions>(end, static_cast<std::uint32_t>(request.iterations));
}

void run_write_many(End& end, const Request& request, Reply& reply) {
  if (!end.many_regions_slot()) throw std::logic_error("kRegisterMany comes first");
  end.many_regions_slot()->write(end, request.iterations, reply);
}

}  // namespace verbatim::perf
