// SPDX-License-Identifier: BSD-2-Clause
// A hub with a queue pair for each of its peers, all on one completion queue, and a peer with one.
// Only the public API. What the hub has is as large for one peer as for many, so that what grows
// with them is the library's.
#include "perf/ends/crowd_member.hpp"

#include <sched.h>

#include <stdexcept>
#include <vector>

#include "perf/ends/crowd.hpp"
#include "perf/ends/reply_of.hpp"
#include "perf/ends/wire.hpp"
#include "perf/support/clock.hpp"
#include "perf/support/pace.hpp"
#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint32_t kDepth = 32;
constexpr std::uint32_t kSignaledOf = 8;  // sends: one in so many has a completion
constexpr std::uint32_t kMessage = 8, kSlot = 128;
// Messages there and back at the start of a turn, which are not timed: by the first the other process
// wakes up, and the others go once through rings that are as cold as those of a program that slept.
constexpr std::uint64_t kWarmUp = 2 * kDepth;
constexpr unsigned kLooksBeforeYield = 20'000;

class CrowdMember {
 public:
  explicit CrowdMember(bool is_hub) : is_hub_(is_hub) {}

  Reply answer(const Request& request) {
    return reply_of([&](Reply& reply) {
      switch (request.kind) {
        case Kind::kPrepareCrowd:
          return prepare();
        case Kind::kJoinCrowd:
          return join(is_hub_ ? request.batch : 1, reply);
        case Kind::kTalk:
          return talk(is_hub_ ? request.batch : 0, request.iterations, reply);
        case Kind::kEmptyPoll:
          return poll_nothing(request.iterations, reply);
        default:
          throw std::logic_error("no part of a crowd");
      }
    });
  }

 private:
  struct Connection {
    QpHandle qp;
    std::uint32_t sent = 0;
  };

  void prepare() {
    context_ = open_first_device();
    pd_.reset(ibv_alloc_pd(context_.get()));
    const std::uint32_t most = is_hub_ ? Crowd::kMostPeers : 1;
    memory_.resize(std::size_t{most} * kSlot);
    if (pd_)
      mr_.reset(ibv_reg_mr(pd_.get(), memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE));
    cq_.reset(
        ibv_create_cq(context_.get(), static_cast<int>(most * 2 * kDepth), nullptr, nullptr, 0));
    if (!mr_ || !cq_) throw_verbs(errno, "PD, MR or CQ of a crowd");
    if (is_hub_) talk_to_itself();
  }

  /// What the first connection of all brings with it is not the first peer's.
  void talk_to_itself() {
    Connection connection{create_rc_qp(pd_.get(), cq_.get(), cq_.get(), kDepth, kDepth)};
    ibv_qp* const qp = connection.qp.get();
    const QpAddress own = address_of(context_.get(), qp);
    connect_rc(qp, own, own);
    receive(qp, 0);
    send(connection, 0);
    await_message(qp, 0);
  }

  void join(std::uint32_t peers, Reply& reply) {
    if (!cq_ || peers > Crowd::kMostPeers) throw std::logic_error("kPrepareCrowd comes first");
    const std::uint64_t start = now_ns();
    for (std::uint32_t peer = 0; peer < peers; ++peer) {
      const int fd = is_hub_ ? kFirstOfHubFd + static_cast<int>(peer) : kPeerFd;
      Connection connection{create_rc_qp(pd_.get(), cq_.get(), cq_.get(), kDepth, kDepth)};
      ibv_qp* const qp = connection.qp.get();
      const QpAddress own = address_of(context_.get(), qp);
      connect_rc(qp, own, exchange_record(fd, own));
      for (std::uint32_t i = 0; i < kDepth; ++i) receive(qp, peer);
      exchange_record(fd, own);  // nobody sends before both are ready to receive
      connections_.push_back(std::move(connection));
    }
    reply.elapsed_ns = static_cast<double>(now_ns() - start);
    reply.operations = peers;
  }

  void receive(ibv_qp* qp, std::uint32_t peer) {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(&memory_[peer * kSlot]), kMessage, mr_->lkey};
    ibv_recv_wr request{};
    request.wr_id = peer;
    request.sg_list = &sge;
    request.num_sge = 1;
    post_recv(qp, &request);
  }

  void send(Connection& connection, std::uint32_t peer) {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(&memory_[peer * kSlot + kSlot / 2]), kMessage,
                   mr_->lkey};
    ibv_send_wr request{};
    request.wr_id = peer;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_INLINE;
    if (++connection.sent % kSignaledOf == 0) request.send_flags |= IBV_SEND_SIGNALED;
    post_send(connection.qp.get(), &request);
  }

  /// The next message of that peer; completions of sends are taken on the way.
  void await_message(ibv_qp* qp, std::uint32_t peer) {
    ibv_wc found[4];
    for (unsigned looks = 0;; ++looks) {
      bool came = false;
      const int count = poll_some(cq_.get(), found);
      for (int i = 0; i < count; ++i) {
        const ibv_wc& one = found[i];
        if (one.opcode == IBV_WC_SEND) continue;
        if (one.wr_id != peer || came) throw std::runtime_error("a message came out of turn");
        came = true;
      }
      if (came) return receive(qp, peer);
      // Where both share one core the other has to run.
      if (looks >= kLooksBeforeYield) sched_yield();
      cpu_relax();
    }
  }

  void talk(std::uint32_t peer, std::uint64_t trips, Reply& reply) {
    if (peer >= connections_.size()) throw std::logic_error("kJoinCrowd comes first");
    Connection& connection = connections_[peer];
    std::uint64_t start = 0;
    for (std::uint64_t trip = 0; trip < kWarmUp + trips; ++trip) {
      if (trip == kWarmUp) start = now_ns();
      if (is_hub_) send(connection, peer);
      await_message(connection.qp.get(), peer);
      if (!is_hub_) send(connection, peer);
    }
    reply.elapsed_ns = static_cast<double>(now_ns() - start);
    reply.operations = 2 * static_cast<double>(trips);
  }

  void poll_nothing(std::uint64_t times, Reply& reply) {
    if (!cq_) throw std::logic_error("kPrepareCrowd comes first");
    ibv_wc found[1];
    while (poll_some(cq_.get(), found) != 0) {  // sends that completed after the last message
    }
    const std::uint64_t start = now_ns();
    for (std::uint64_t i = 0; i < times; ++i) {
      if (poll_some(cq_.get(), found) != 0) throw std::runtime_error("the queue was not empty");
    }
    reply.elapsed_ns = static_cast<double>(now_ns() - start);
    reply.operations = static_cast<double>(times);
  }

  bool is_hub_;
  ContextHandle context_;
  PdHandle pd_;
  std::vector<std::byte> memory_;  // a slot for each peer: where it writes, and what it is sent
  MrHandle mr_;
  CqHandle cq_;
  std::vector<Connection> connections_;
};

}  // namespace

void serve_in_crowd(bool is_hub) {
  ns_per_tick();
  CrowdMember member(is_hub);
  Request request;
  while (receive_record(kSupervisorFd, request)) {
    send_record(kSupervisorFd, member.answer(request));
  }
}

}  // namespace verbatim::perf
