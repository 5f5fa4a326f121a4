// SPDX-License-Identifier: BSD-2-Clause
// What the small benchmarks share: the first device, and queue pairs that are connected to
// themselves. One thread. What fails ends the program with the reason.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {

inline constexpr int kMicroAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

class Micro {
 public:
  Micro() : context(open_first_device()), pd(ibv_alloc_pd(context.get())) {
    if (!pd) throw_verbs(errno, "ibv_alloc_pd");
    cq.reset(ibv_create_cq(context.get(), 2048, nullptr, nullptr, 0));
    if (!cq) throw_verbs(errno, "ibv_create_cq");
    qp = create_rc_qp(pd.get(), cq.get(), cq.get(), 1024, 16);
    const QpAddress own = address_of(context.get(), qp.get());
    connect_rc(qp.get(), own, own);
  }

  MrHandle register_memory(std::byte* at, std::size_t bytes) const {
    MrHandle mr(ibv_reg_mr(pd.get(), at, bytes, kMicroAccess));
    if (!mr) throw_verbs(errno, "ibv_reg_mr");
    return mr;
  }

  ContextHandle context;
  PdHandle pd;
  CqHandle cq;
  QpHandle qp;
};

}  // namespace verbatim::perf
