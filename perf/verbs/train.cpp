// SPDX-License-Identifier: BSD-2-Clause
// Bandwidth of data that a program has really just produced: before each train the side that owns
// the source writes it, and the side that received consumes it, outside the timed part; then the
// near end moves the whole train. One loop for all movers, so that a ratio between verbs and a
// floor (a copy to or from mapped memory, a copy by the kernel) compares equal work on equal cache
// states. For send/recv the train is over when the receiver has polled its last message.
#include <array>
#include <cstring>
#include <stdexcept>

#include "perf/floors/cma.hpp"
#include "perf/floors/pieces.hpp"
#include "perf/support/clock.hpp"
#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {
namespace {

struct Train {
  std::uint64_t size;
  std::uint64_t length;
  std::uint64_t bytes() const { return size * length; }
};

void produce(std::byte* out, const Train& train, std::uint64_t number) {
  std::memset(out, static_cast<int>(number & 0xff), train.bytes());
}

void consume(const std::byte* in, const Train& train) {
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at + 8 <= train.bytes(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, in + at, 8);
    sum += word;
  }
  asm volatile("" : : "r"(sum));
}

class MappedMover {
 public:
  MappedMover(End& end, const Request& request, const Train&)
      : own_(end.mapped()),
        peer_(end.peer_mapped()),
        read_(request.operation == Operation::kRead) {}
  Area own() const { return own_; }
  void move(const Train& train) {
    for (std::uint64_t at = 0; at < train.bytes(); at += train.size) {
      if (read_) {
        copy_in_pieces(own_.in + at, peer_.out + at, train.size);
      } else {
        copy_in_pieces(peer_.in + at, own_.out + at, train.size);
      }
    }
  }

 private:
  Area own_;
  Area peer_;
  bool read_;
};

class CmaMover {
 public:
  CmaMover(End& end, const Request& request, const Train&)
      : peer_pid_(end.peer_pid()),
        own_(end.local()),
        peer_(end.peer_local()),
        read_(request.operation == Operation::kRead) {}
  Area own() const { return own_; }
  void move(const Train& train) {
    for (std::uint64_t at = 0; at < train.bytes(); at += train.size) {
      if (read_) {
        cma_read(peer_pid_, own_.in + at, peer_.out + at, train.size);
      } else {
        cma_write(peer_pid_, peer_.in + at, own_.out + at, train.size);
      }
    }
  }

 private:
  pid_t peer_pid_;
  Area own_;
  Area peer_;
  bool read_;
};

class VerbsMover {
 public:
  VerbsMover(End& end, const Request& request, const Train& train) : endpoint_(end.endpoint()) {
    const Region& region = endpoint_.region(request.memory);
    const RemoteRegion& remote = endpoint_.remote(request.memory);
    own_ = region.area;
    const bool read = request.operation == Operation::kRead;
    for (std::uint64_t i = 0; i < train.length; ++i) {
      std::byte* local = (read ? own_.in : own_.out) + i * train.size;
      sges_[i] = {reinterpret_cast<std::uintptr_t>(local), static_cast<std::uint32_t>(train.size),
                  region.lkey};
      ibv_send_wr& each = list_[i];
      each.wr_id = i;
      each.next = i + 1 < train.length ? &list_[i + 1] : nullptr;
      each.sg_list = &sges_[i];
      each.num_sge = 1;
      each.opcode = read                                     ? IBV_WR_RDMA_READ
                    : request.operation == Operation::kWrite ? IBV_WR_RDMA_WRITE
                                                             : IBV_WR_SEND;
      each.wr.rdma = {(read ? remote.out : remote.in) + i * train.size, remote.rkey};
    }
    list_[train.length - 1].send_flags = IBV_SEND_SIGNALED;
  }
  VerbsMover(const VerbsMover&) = delete;
  VerbsMover& operator=(const VerbsMover&) = delete;
  Area own() const { return own_; }
  void move(const Train&) {
    post_send(endpoint_.qp(), &list_[0]);
    await_completions(endpoint_.send_cq(), 1);
  }

 private:
  Endpoint& endpoint_;
  Area own_;
  std::array<ibv_sge, 64> sges_{};
  std::array<ibv_send_wr, 64> list_{};
};

template <class Mover>
void run(End& end, const Request& request, Reply& reply) {
  const Train train{request.size, train_length(request.size)};
  Mover mover(end, request, train);
  const bool two_sided = std::is_same_v<Mover, VerbsMover> && request.operation == Operation::kSend;
  const bool near_produces = request.operation != Operation::kRead;
  std::uint64_t elapsed = 0;
  end.own_line().store(0, std::memory_order_release);
  for (std::uint64_t number = 1; number <= request.iterations; ++number) {
    if (near_produces == end.is_near()) {
      produce(mover.own().out, train, number);
    } else {
      consume(mover.own().in, train);
    }
    if (two_sided && !end.is_near()) {
      const auto count = static_cast<std::uint32_t>(train.length);
      end.endpoint().post_receives(request.memory, train.size, count, count);
    }
    end.meet();
    if (end.is_near()) {
      const std::uint64_t start = now_ns();
      mover.move(train);
      while (two_sided && end.peer_line().load(std::memory_order_acquire) != number) cpu_relax();
      elapsed += now_ns() - start;
    } else if (two_sided) {
      await_completions(end.endpoint().recv_cq(), static_cast<std::uint32_t>(train.length));
      end.own_line().store(number, std::memory_order_release);
    }
    end.meet();
  }
  reply.elapsed_ns = static_cast<double>(elapsed);
  reply.operations = static_cast<double>(request.iterations * train.length);
  reply.bytes = static_cast<double>(request.iterations * train.bytes());
}

}  // namespace

void run_train(End& end, const Request& request, Reply& reply) {
  if (request.size == 0 || request.size > kMaxSize) throw std::invalid_argument("train: size");
  switch (request.mover) {
    case Mover::kMapped:
      return run<MappedMover>(end, request, reply);
    case Mover::kVerbs:
      return run<VerbsMover>(end, request, reply);
    case Mover::kCma:
      if (cma_refusal(end.peer_pid(), end.peer_local().in) != 0) {
        reply.unavailable = 1;
        return;
      }
      return run<CmaMover>(end, request, reply);
  }
}

}  // namespace verbatim::perf
