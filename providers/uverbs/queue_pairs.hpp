// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs in the kernel: their states, numbers and groups are its own. A provider makes its own
// objects, and their half in the kernel here; modify_qp, query_qp and the groups are slots. Any
// thread.
#pragma once

#include "providers/uverbs/context.hpp"
#include "providers/uverbs/failures.hpp"

namespace verbatim::uverbs {

struct Qp : verbatim::Qp {
  std::uint64_t number = 0;  ///< in Context::objects
  FailureRecord failures;
};

/// Fills handle, qp_num and number, and attr.cap with what the kernel made of it. 0 or errno, and
/// then there is nothing to undo.
[[nodiscard]] int create_qp(Context& context, ibv_qp_init_attr_ex& attr, Qp& qp,
                            const kernel::DriverData& driver) noexcept;
/// Returns when no event can name the queue pair any more and all that did are acknowledged.
[[nodiscard]] int destroy_qp(Qp& qp) noexcept;

int modify_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask) noexcept;
/// The kernel's half alone: what is known here of the state stays. 0 or errno.
[[nodiscard]] int lead_in_kernel(const verbatim::Qp& qp, ibv_qp_state state) noexcept;
int query_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init) noexcept;
int attach_mcast(verbatim::Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept;
int detach_mcast(verbatim::Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept;

}  // namespace verbatim::uverbs
