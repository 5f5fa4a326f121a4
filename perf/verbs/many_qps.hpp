// SPDX-License-Identifier: BSD-2-Clause
// Many connected queue pairs that share one completion queue: what connecting them costs (R13),
// what they cost an empty poll (R8), and what memory they hold. Depths of 128, as the memory
// figures ask.
#pragma once

#include <vector>

#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {

class ManyQps {
 public:
  static constexpr std::uint32_t kDepth = 128;
  static constexpr std::uint32_t kSharedDepth = 4096;

  /// Creates and connects `count` pairs with the peer end; the near end's reply gets the times.
  /// kShared: they take their receives from one queue, which is full of them. kDatagram: each sends
  /// to the one of the peer that has its place.
  ManyQps(End& end, std::uint32_t count, Service service, Reply& reply);

  std::uint32_t count() const { return static_cast<std::uint32_t>(qps_.size()); }
  ibv_cq* cq() const { return cq_.get(); }
  /// Each pair carries `messages` (at most kDepth) of 8 bytes in both directions.
  void use_all(End& end, std::uint32_t messages);
  /// The near end sends `messages` of 8 bytes, one to each pair in turn, as many under way as
  /// kUnderWay; datagrams come `from_one` queue pair, or each from that of its place. Not behind
  /// use_all(), whose receives are others.
  void send_in_turn(End& end, std::uint64_t messages, bool from_one);

 private:
  static constexpr std::uint64_t kUnderWay = 64;

  void use(End& end, ibv_qp* qp, std::uint32_t messages);
  void stock_receives();
  void give_receives(std::uint32_t pair, std::uint32_t count);
  void send_each(End& end, std::uint64_t messages, bool from_one);
  void receive_each(End& end, std::uint64_t messages);

  ContextHandle context_;
  PdHandle pd_;
  std::vector<std::byte> buffer_;
  MrHandle mr_;
  CqHandle cq_;
  SrqHandle srq_;  // of kShared
  AhHandle ah_;    // of kDatagram: to the peer
  std::vector<std::uint32_t> datagrams_to_;
  std::vector<QpHandle> qps_;
  bool stocked_ = false;
  std::uint64_t sent_ = 0;  // in turn, by all blocks
};

}  // namespace verbatim::perf
