// SPDX-License-Identifier: BSD-2-Clause
// Protection domains, thread domains, parent domains, XRC domains. Any thread.
#pragma once

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

Result<Pd*> alloc_pd(Context& context) noexcept;
/// Ends a protection domain or a parent domain.
Status dealloc_pd(Pd& pd) noexcept;
Result<Td*> alloc_td(Context& context, const ibv_td_init_attr& attr) noexcept;
Status dealloc_td(Td& td) noexcept;
Result<Pd*> alloc_parent_domain(Context& context, const ibv_parent_domain_init_attr& attr) noexcept;
Result<Xrcd*> open_xrcd(Context& context, const ibv_xrcd_init_attr& attr) noexcept;
Status close_xrcd(Xrcd& xrcd) noexcept;

}  // namespace verbatim
