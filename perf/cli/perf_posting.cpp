// SPDX-License-Identifier: BSD-2-Clause
// The requests of a `verbatim perf` test: made once for each size, posted again and again.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "perf/cli/failure.hpp"
#include "perf/cli/perf_queues.hpp"

namespace verbatim::cli {
namespace {

void post_built(PerfSender& sender, bool datagrams, bool xrc) {
  ibv_qp_ex* const qp = sender.extended;
  ibv_wr_start(qp);
  for (const ibv_send_wr& wr : sender.list) {
    qp->wr_id = wr.wr_id;
    qp->wr_flags = wr.send_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
    switch (wr.opcode) {
      case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(qp, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
        break;
      case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(qp, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr, wr.imm_data);
        break;
      case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(qp, wr.imm_data);
        break;
      case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(qp, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
        break;
      case IBV_WR_ATOMIC_CMP_AND_SWP:
        ibv_wr_atomic_cmp_swp(qp, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr,
                              wr.wr.atomic.compare_add, wr.wr.atomic.swap);
        break;
      case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(qp, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr,
                                wr.wr.atomic.compare_add);
        break;
      default:
        ibv_wr_send(qp);
    }
    if (datagrams) ibv_wr_set_ud_addr(qp, wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
    if (xrc) ibv_wr_set_xrc_srqn(qp, wr.qp_type.xrc.remote_srqn);
    const ibv_sge& piece = *wr.sg_list;
    if ((wr.send_flags & IBV_SEND_INLINE) != 0)
      ibv_wr_set_inline_data(qp, reinterpret_cast<void*>(piece.addr), piece.length);
    else
      ibv_wr_set_sge(qp, piece.lkey, piece.addr, piece.length);
  }
  if (const int error = ibv_wr_complete(qp)) fail("Couldn't post send: %s", std::strerror(error));
}

}  // namespace

ibv_wr_opcode perf_opcode(const PerfOptions& options) {
  switch (options.test.verb) {
    case PerfVerb::kWrite:
      return options.immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    case PerfVerb::kRead:
      return IBV_WR_RDMA_READ;
    case PerfVerb::kAtomic:
      return options.compare_swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    case PerfVerb::kSend:
      break;
  }
  return options.immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
}

void PerfQueues::prepare(std::uint32_t size, const std::vector<PerftestAddress>& peer) {
  const std::uint32_t header = options_.datagrams() ? kRoutingHeader : 0;
  receive_size_ = size + header;
  arriving_.clear();
  senders_.clear();
  receive_list_.assign(options_.receive_list, ibv_recv_wr{});
  receive_pieces_.assign(options_.receive_list, ibv_sge{});
  for (std::uint32_t number = 0; number < options_.receive_list; ++number) {
    ibv_recv_wr& wr = receive_list_[number];
    wr.sg_list = &receive_pieces_[number];
    wr.num_sge = 1;
    wr.next = number + 1 < options_.receive_list ? &receive_list_[number + 1] : nullptr;
  }
  for (std::uint32_t pair = 0; pair < options_.queue_pairs; ++pair) {
    arriving_.push_back(memory_->walk(memory_->incoming(pair), receive_size_));
    if (!options_.sends()) continue;
    const PerftestAddress& remote = peer[peer_of(pair)];
    PerfSender sender;
    sender.qp = qps_[pair].get();
    sender.extended = extended_ ? ibv_qp_to_qp_ex(sender.qp) : nullptr;
    sender.local = memory_->walk(memory_->outgoing(pair), size);
    sender.remote = memory_->walk(remote.memory, size);
    sender.list.resize(options_.post_list);
    sender.pieces.resize(options_.post_list);
    for (std::uint32_t number = 0; number < options_.post_list; ++number) {
      ibv_send_wr& wr = sender.list[number];
      wr.wr_id = pair;
      wr.sg_list = &sender.pieces[number];
      wr.num_sge = 1;
      wr.opcode = perf_opcode(options_);
      wr.next = number + 1 < options_.post_list ? &sender.list[number + 1] : nullptr;
      if (!options_.test.fetches() && size <= inline_size_) wr.send_flags = IBV_SEND_INLINE;
      sender.pieces[number] = {sender.local.base, size, memory_->lkey(pair)};
      if (options_.datagrams()) {
        wr.wr.ud = {ahs_[pair].get(), remote.qp.qpn, kPerfQkey};
      } else if (options_.test.verb == PerfVerb::kAtomic) {
        wr.wr.atomic.rkey = remote.rkey;
        wr.wr.atomic.compare_add = options_.compare_swap ? 0 : 1;
      } else if (options_.test.verb != PerfVerb::kSend) {
        wr.wr.rdma.rkey = remote.rkey;
      }
      if (options_.xrc()) wr.qp_type.xrc.remote_srqn = remote.srqn;
    }
    senders_.push_back(std::move(sender));
  }
}

void PerfQueues::post(PerfSender& sender) {
  std::uint64_t number = sender.posted;
  for (ibv_send_wr& wr : sender.list) {
    wr.sg_list->addr = sender.local.next();
    if (options_.test.verb == PerfVerb::kAtomic)
      wr.wr.atomic.remote_addr = sender.remote.next();
    else if (options_.test.verb != PerfVerb::kSend)
      wr.wr.rdma.remote_addr = sender.remote.next();
    ++number;
    const bool last = options_.duration == 0 && number == options_.iterations;
    const bool completes = last || number % options_.cq_moderation == 0;
    wr.send_flags = (wr.send_flags & ~static_cast<unsigned>(IBV_SEND_SIGNALED)) |
                    (completes ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0u);
  }
  sender.posted = number;
  if (sender.extended != nullptr) {
    return post_built(sender, options_.datagrams(), options_.xrc());
  }
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(sender.qp, sender.list.data(), &bad)) {
    fail("Couldn't post send: %s", std::strerror(error));
  }
}

void PerfQueues::post_receives(std::uint32_t pair) {
  for (ibv_recv_wr& wr : receive_list_) {
    wr.wr_id = pair;
    *wr.sg_list = {arriving_[pair].next(), receive_size_, memory_->lkey(pair)};
  }
  ibv_recv_wr* const first = receive_list_.data();
  ibv_recv_wr* bad = nullptr;
  const int error = srq_ ? ibv_post_srq_recv(srq_.get(), first, &bad)
                         : ibv_post_recv(qps_[first_receiver() + pair].get(), first, &bad);
  if (error != 0) fail("Couldn't post receive: %s", std::strerror(error));
}

void PerfQueues::validate(std::uint32_t size, std::uint64_t messages_of_a_pair) const {
  const bool fetches = options_.test.fetches();
  if (fetches ? !options_.sends() : options_.client() && !options_.bidirectional) return;
  const std::uint32_t header = options_.datagrams() ? kRoutingHeader : 0;
  for (std::uint32_t pair = 0; pair < options_.queue_pairs; ++pair) {
    const bool written = options_.test.verb == PerfVerb::kWrite;
    const std::uint32_t at = written ? first_receiver() + pair : pair;
    memory_->validate(fetches ? memory_->outgoing(pair) : memory_->incoming(at), size, header,
                      messages_of_a_pair);
  }
}

volatile char* PerfQueues::sent_byte(std::uint32_t size) const {
  return reinterpret_cast<volatile char*>(memory_->outgoing(0) + size - 1);
}

volatile char* PerfQueues::arriving_byte(std::uint32_t size) const {
  // Where the peer's first sender writes: into what our first receiver told it.
  return reinterpret_cast<volatile char*>(memory_->incoming(first_receiver()) + size - 1);
}

}  // namespace verbatim::cli
