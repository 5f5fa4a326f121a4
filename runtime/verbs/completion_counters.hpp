// SPDX-License-Identifier: BSD-2-Clause
// Completion counters (man ibv_create_comp_cntr). What they count, and when, is the provider's. Any
// thread.
#pragma once

#include <cstdint>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/provider.hpp"

namespace verbatim {

Status query_comp_cntr_caps(Context& context, ibv_comp_cntr_caps& out) noexcept;
Result<CompCntr*> create_comp_cntr(Context& context, const ibv_comp_cntr_init_attr& attr) noexcept;
Status destroy_comp_cntr(CompCntr& counter) noexcept;
Status set_comp_cntr(CompCntr& counter, CountOf which, std::uint64_t value) noexcept;
Status inc_comp_cntr(CompCntr& counter, CountOf which, std::uint64_t amount) noexcept;
Status read_comp_cntr(CompCntr& counter, CountOf which, std::uint64_t& out) noexcept;
/// Until the queue pair is destroyed.
Status attach_comp_cntr(Qp& qp, CompCntr& counter,
                        const ibv_qp_attach_comp_cntr_attr& attr) noexcept;

}  // namespace verbatim
