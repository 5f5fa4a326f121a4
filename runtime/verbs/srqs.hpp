// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues: control verbs. Any thread.
#pragma once

#include <cstdint>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// The real sizes are in Srq::attributes afterwards.
Result<Srq*> create_srq(Context& context, const ibv_srq_init_attr_ex& attr) noexcept;
Status modify_srq(Srq& srq, ibv_srq_attr& attr, int mask) noexcept;
Status query_srq(Srq& srq, ibv_srq_attr& out) noexcept;
/// Waits until all delivered events are acknowledged.
Status destroy_srq(Srq& srq) noexcept;
Status get_srq_num(Srq& srq, std::uint32_t& out) noexcept;
Status post_srq_ops(Srq& srq, ibv_ops_wr* first, ibv_ops_wr** bad) noexcept;

}  // namespace verbatim
