// SPDX-License-Identifier: BSD-2-Clause
//
// Who may use a memory window (IBTA 10.6.7): type 1 every queue pair of its domain, type 2 the one
// on which it was bound. A look-up for a plain region comes here when the domain does not match,
// so plain regions pay nothing.
#pragma once

#include "providers/shm/region_fast.hpp"

namespace verbatim::shm {

struct Qp;

/// Requester: may `qp` use `region`, a window of its peer's? REQUIRES: attached, the send lock.
[[gnu::cold, gnu::noinline]] bool opens_window(const Qp& qp, const Region& region) noexcept;
/// Responder: may the peer of `qp` use `region`, a window of ours?
[[gnu::cold, gnu::noinline]] bool admits_window(const Qp& qp, const Region& region) noexcept;

}  // namespace verbatim::shm
