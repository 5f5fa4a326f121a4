// SPDX-License-Identifier: BSD-2-Clause
// What a program asks of queues when it creates them, held against what a provider in software has,
// and what it is granted. Control code; a refusal is a line of the log that names the limit. Spec:
// IBTA 11.2.5.1, 11.2.8.1; man ibv_create_qp, ibv_create_srq, ibv_create_cq.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim {

/// What the queues of a provider can have; query_device tells the application the same figures.
struct QueueLimits {
  const char* provider;  ///< its name, for lines of the log
  std::uint32_t max_wr;  ///< requests in a send queue, a receive queue, a shared receive queue
  std::uint32_t max_sge;
  std::uint32_t max_inline;
  std::uint32_t max_cqe;
};

/// 0 and in attr.cap what the application gets, never less than it asked: every queue that can be
/// used has a place, and inline data has all the room that there is. Or EINVAL: something that is
/// asked for the queues is more than there is. A receive queue of its own is not asked for by who
/// has a shared one.
[[nodiscard]] int grant_queue_pair_sizes(const QueueLimits& limits,
                                         ibv_qp_init_attr_ex& attr) noexcept;

/// 0 or EOPNOTSUPP: what is asked for beside the queues and needs hardware (RSS, segmentation of
/// large messages), or a create flag that is not in `known_flags`, whose names `flags_are` says.
[[nodiscard]] int refuse_lacking_extras(const char* provider, const ibv_qp_init_attr_ex& attr,
                                        std::uint32_t known_flags, const char* flags_are) noexcept;
/// 0 or EOPNOTSUPP: calls of ibv_wr_* are asked for (send_ops_flags) whose operations are lacking.
/// `operations`: the IBV_QP_EX_WITH_* that a queue pair of this type has.
[[nodiscard]] int refuse_lacking_operations(const char* provider, const ibv_qp_init_attr_ex& attr,
                                            std::uint64_t operations) noexcept;

/// 0 or EINVAL, of a shared receive queue that `verb`, a literal, creates or changes.
[[nodiscard]] int check_shared_queue_sizes(const QueueLimits& limits, const char* verb,
                                           std::uint32_t max_wr, std::uint32_t max_sge) noexcept;

/// 0 or EINVAL, of a completion queue that `verb`, a literal, creates or resizes.
[[nodiscard]] int check_completions(const QueueLimits& limits, const char* verb,
                                    std::int64_t cqe) noexcept;
/// Places of the ring of a queue of so many: a power of two.
[[nodiscard]] std::uint32_t completion_places(std::uint32_t cqe) noexcept;

}  // namespace verbatim
