// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues and address handles in the kernel. A provider makes its own objects, and
// their half in the kernel here. Any thread.
#pragma once

#include "providers/uverbs/context.hpp"

namespace verbatim::uverbs {

struct Srq : verbatim::Srq {
  std::uint64_t number = 0;  ///< in Context::objects
};

/// Fills handle, number and attributes. 0 or errno, and then there is nothing to undo.
[[nodiscard]] int create_srq(Context& context, const ibv_srq_init_attr_ex& attr, Srq& srq,
                             const kernel::DriverData& driver) noexcept;
[[nodiscard]] int modify_srq(Srq& srq, const ibv_srq_attr& attr, int mask,
                             const kernel::DriverData& driver) noexcept;
/// Returns when no event can name the queue any more and all that did are acknowledged.
[[nodiscard]] int destroy_srq(Srq& srq) noexcept;
int query_srq(verbatim::Srq& srq, ibv_srq_attr& attr) noexcept;

[[nodiscard]] int create_ah(Pd& pd, const ibv_ah_attr& attr, Ah& ah,
                            const kernel::DriverData& driver) noexcept;
[[nodiscard]] int destroy_ah(Ah& ah) noexcept;

}  // namespace verbatim::uverbs
