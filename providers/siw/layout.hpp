// SPDX-License-Identifier: BSD-2-Clause
// The elements of siw's queues are those of <rdma/siw-abi.h>; here is what the code relies on.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/siw-abi.h>

#include <cstddef>
#include <cstdint>

namespace verbatim::siw {

static_assert(sizeof(siw_sge) == 16 && sizeof(siw_sqe) == 120 && sizeof(siw_rqe) == 112);
static_assert(offsetof(siw_sqe, flags) == 8 && offsetof(siw_sqe, rkey) == 12);
static_assert(offsetof(siw_sqe, raddr) == 16 && offsetof(siw_sqe, sge) == 24);
static_assert(offsetof(siw_rqe, flags) == 8 && offsetof(siw_rqe, sge) == 16);
static_assert(sizeof(siw_cqe) == 32 && offsetof(siw_cqe, flags) == 8);
static_assert(offsetof(siw_cqe, status) == 10 && offsetof(siw_cqe, qp_id) == 24);
static_assert(sizeof(siw_cq_ctrl) == 8 && offsetof(siw_cq_ctrl, flags) == 0);
static_assert(sizeof(ibv_sge) == sizeof(siw_sge) &&
              offsetof(ibv_sge, lkey) == offsetof(siw_sge, lkey));

/// Inline bytes lie where the second SGE would.
inline constexpr std::uint32_t kMostInline = SIW_MAX_INLINE;
inline constexpr std::uint32_t kMostSges = SIW_MAX_SGE;

}  // namespace verbatim::siw
