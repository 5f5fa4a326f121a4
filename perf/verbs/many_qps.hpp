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

  /// Creates and connects `count` pairs with the peer end; the near end's reply gets the times.
  ManyQps(End& end, std::uint32_t count, Reply& reply);

  std::uint32_t count() const { return static_cast<std::uint32_t>(qps_.size()); }
  ibv_cq* cq() const { return cq_.get(); }
  /// Each pair carries `messages` (at most kDepth) of 8 bytes in both directions.
  void use_all(End& end, std::uint32_t messages);

 private:
  void use(End& end, ibv_qp* qp, std::uint32_t messages);

  ContextHandle context_;
  PdHandle pd_;
  std::vector<std::byte> buffer_;
  MrHandle mr_;
  CqHandle cq_;
  std::vector<QpHandle> qps_;
};

}  // namespace verbatim::perf
