// SPDX-License-Identifier: BSD-2-Clause
//
// Who may use a memory window (IBTA 10.6.7): type 1 every queue pair of its domain, type 2 the one
// on which it was bound. And of regions on demand, which only the kernel copies from and to, the
// queue pairs of their domain. A look-up for a plain region comes here when the domain does not
// match, so plain regions pay nothing.
#pragma once

#include "providers/shm/memory/region_fast.hpp"

namespace verbatim::shm {

struct Qp;

/// Requester: may `qp` use `region`, a window of its peer's? REQUIRES: attached, the send lock.
[[gnu::cold, gnu::noinline]] bool opens_window(const Qp& qp, const Region& region) noexcept;
/// The same of whatever is no plain region: a window, or memory on demand of its domain.
[[gnu::cold, gnu::noinline]] bool opens_unusual(const Qp& qp, const Region& region) noexcept;

}  // namespace verbatim::shm
