// SPDX-License-Identifier: BSD-2-Clause
#include "perf/verbs/many_qps.hpp"

#include <stdexcept>

#include "perf/ends/wire.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::perf {
namespace {

// One packet carries this many addresses.
constexpr std::size_t kPerPacket = 256;
struct Addresses {
  std::uint32_t count;
  QpAddress each[kPerPacket];
};

std::vector<QpAddress> exchange_addresses(int fd, const std::vector<QpAddress>& own) {
  std::vector<QpAddress> theirs;
  while (theirs.size() < own.size()) {
    Addresses packet{};
    const std::size_t rest = own.size() - theirs.size();
    packet.count = static_cast<std::uint32_t>(rest < kPerPacket ? rest : kPerPacket);
    for (std::uint32_t i = 0; i < packet.count; ++i) packet.each[i] = own[theirs.size() + i];
    packet = exchange_record(fd, packet);
    theirs.insert(theirs.end(), packet.each, packet.each + packet.count);
  }
  return theirs;
}

}  // namespace

ManyQps::ManyQps(End& end, std::uint32_t count, Service service, Reply& reply)
    : context_(open_first_device()), pd_(ibv_alloc_pd(context_.get())), buffer_(4096) {
  mr_.reset(ibv_reg_mr(pd_.get(), buffer_.data(), buffer_.size(), IBV_ACCESS_LOCAL_WRITE));
  // Both directions of one pair at a time are in use.
  cq_.reset(ibv_create_cq(context_.get(), 4 * kDepth, nullptr, nullptr, 0));
  if (!mr_ || !cq_) throw_verbs(errno, "MR or CQ of many queue pairs");
  if (service == Service::kShared) {
    ibv_srq_init_attr shared{};
    shared.attr.max_wr = kSharedDepth;
    shared.attr.max_sge = 1;
    srq_.reset(ibv_create_srq(pd_.get(), &shared));
    if (!srq_) throw_verbs(errno, "SRQ of many queue pairs");
    give_receives(0, kSharedDepth - kDepth);
  }
  std::vector<QpAddress> own(count);
  end.meet();
  const std::uint64_t start = now_ns();
  for (std::uint32_t i = 0; i < count; ++i) {
    qps_.push_back(srq_ ? create_sharing_qp(pd_.get(), cq_.get(), cq_.get(), srq_.get())
                   : service == Service::kDatagram
                       ? create_datagram_qp(pd_.get(), cq_.get(), cq_.get())
                       : create_rc_qp(pd_.get(), cq_.get(), cq_.get(), kDepth, kDepth));
    own[i] = address_of(context_.get(), qps_[i].get());
  }
  const std::uint64_t created = now_ns();
  const std::vector<QpAddress> theirs = exchange_addresses(end.peer_fd(), own);
  const std::uint64_t exchanged = now_ns();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (service == Service::kDatagram)
      start_datagrams(qps_[i].get());
    else
      connect_rc(qps_[i].get(), own[i], theirs[i]);
    datagrams_to_.push_back(theirs[i].qpn);
  }
  if (service == Service::kDatagram) ah_ = create_ah_to(pd_.get(), theirs.front());
  const std::uint64_t connected = now_ns();
  exchange_record(end.peer_fd(), count);  // the peer is ready too
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = count;
  reply.extra[0] = static_cast<double>(created - start);
  reply.extra[1] = static_cast<double>(exchanged - created);
  reply.extra[2] = static_cast<double>(connected - exchanged);
}

void ManyQps::use_all(End& end, std::uint32_t messages) {
  if (ah_) throw std::invalid_argument("datagrams are sent in turn only");
  if (messages > kDepth) throw std::invalid_argument("more messages than a queue holds");
  for (const QpHandle& qp : qps_) use(end, qp.get(), messages);
}

void ManyQps::use(End& end, ibv_qp* qp, std::uint32_t messages) {
  ibv_sge sge = {reinterpret_cast<std::uintptr_t>(buffer_.data()), 8, mr_->lkey};
  ibv_recv_wr receive{};
  receive.sg_list = &sge;
  receive.num_sge = 1;
  for (std::uint32_t i = 0; i < messages; ++i) post_recv(qp, srq_.get(), &receive);
  end.meet();
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  for (std::uint32_t i = 1; i <= messages; ++i) {
    request.send_flags = IBV_SEND_INLINE | (i == messages ? unsigned{IBV_SEND_SIGNALED} : 0u);
    post_send(qp, &request);
  }
  await_completions(cq_.get(), messages + 1);  // all receives and the one signaled send
}

void ManyQps::give_receives(std::uint32_t pair, std::uint32_t count) {
  const std::uint32_t length = 8 + (ah_ ? kDatagramHeader : 0);
  ibv_sge sge = {reinterpret_cast<std::uintptr_t>(buffer_.data()), length, mr_->lkey};
  ibv_recv_wr receive{};
  receive.wr_id = pair;
  receive.sg_list = &sge;
  receive.num_sge = 1;
  for (std::uint32_t i = 0; i < count; ++i)
    post_recv(srq_ ? nullptr : qps_[pair].get(), srq_.get(), &receive);
}

void ManyQps::stock_receives() {
  if (!stocked_ && !srq_) {
    for (std::uint32_t pair = 0; pair < count(); ++pair) give_receives(pair, kUnderWay);
  }
  stocked_ = true;
}

void ManyQps::send_in_turn(End& end, std::uint64_t messages, bool from_one) {
  if (!end.is_near()) stock_receives();
  end.own_line().store(0, std::memory_order_release);
  end.meet();
  if (end.is_near())
    send_each(end, messages, from_one);
  else
    receive_each(end, messages);
}

void ManyQps::send_each(End& end, std::uint64_t messages, bool from_one) {
  constexpr std::uint64_t kSendsBetweenCompletions = 32, kPostsBetweenPolls = 16;
  ibv_sge sge = {reinterpret_cast<std::uintptr_t>(buffer_.data()), 8, mr_->lkey};
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  ibv_wc found[2 * kPostsBetweenPolls];
  const auto& received = end.peer_line();
  for (std::uint64_t i = 0; i < messages; ++i, ++sent_) {
    while (i - received.load(std::memory_order_acquire) >= kUnderWay) cpu_relax();
    const std::uint64_t of_its_queue_pair = from_one ? sent_ : sent_ / qps_.size();
    const bool signaled = of_its_queue_pair % kSendsBetweenCompletions == 0;
    request.send_flags = IBV_SEND_INLINE | (signaled ? unsigned{IBV_SEND_SIGNALED} : 0u);
    const std::size_t pair = sent_ % qps_.size();
    if (ah_) request.wr.ud = {ah_.get(), datagrams_to_[pair], kQkey};
    post_send(qps_[from_one ? 0 : pair].get(), &request);
    if (i % kPostsBetweenPolls == 0) (void)poll_some(cq_.get(), found);
  }
  while (received.load(std::memory_order_acquire) < messages) cpu_relax();
}

void ManyQps::receive_each(End& end, std::uint64_t messages) {
  constexpr std::size_t kBatch = 32;
  ibv_wc found[kBatch];
  for (std::uint64_t done = 0; done < messages;) {
    const int count = poll_some(cq_.get(), found);
    if (count == 0) {
      cpu_relax();
      continue;
    }
    for (int i = 0; i < count; ++i) give_receives(static_cast<std::uint32_t>(found[i].wr_id), 1);
    done += static_cast<std::uint64_t>(count);
    end.own_line().store(done, std::memory_order_release);
  }
}

void run_connect_many(End& end, const Request& request, Reply& reply) {
  auto& slot = end.many_qps_slot();
  slot.reset();
  slot = std::make_unique<ManyQps>(end, static_cast<std::uint32_t>(request.iterations),
                                   request.service, reply);
}

void run_use_many(End& end, const Request& request, Reply& reply) {
  if (!end.many_qps_slot()) throw std::logic_error("kConnectMany comes first");
  const std::uint64_t start = now_ns();
  end.many_qps_slot()->use_all(end, request.batch);
  end.meet();
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = 2.0 * request.batch * end.many_qps_slot()->count();
}

void run_in_turn(End& end, const Request& request, Reply& reply) {
  if (!end.many_qps_slot()) throw std::logic_error("kConnectMany comes first");
  const std::uint64_t start = now_ns();
  end.many_qps_slot()->send_in_turn(end, request.iterations, request.from_one != 0);
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = static_cast<double>(request.iterations);
}

void run_empty_poll(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;  // asleep meanwhile
  if (!end.many_qps_slot()) throw std::logic_error("kConnectMany comes first");
  ibv_cq* cq = end.many_qps_slot()->cq();
  ibv_wc found;
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    if (poll_some(cq, std::span(&found, 1)) != 0)
      throw std::runtime_error("the queue was not empty");
  }
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = static_cast<double>(request.iterations);
}

}  // namespace verbatim::perf
