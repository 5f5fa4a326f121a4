// SPDX-License-Identifier: BSD-2-Clause
// What makes new communicators of intercommunicators: their first ranks talk for their groups.
#pragma once

#include "mpi_shim/coll/context_agreement.hpp"
#include "mpi_shim/core/comm.hpp"

namespace vmpi {

/// The leaders swap bytes, and tell their own groups; `peer` counts at our leader alone. Both sides
/// know both lengths.
[[nodiscard]] int swap_bytes(Comm& local, int leader, Comm* peer, int remote_leader, int tag,
                             const void* ours, std::int64_t our_bytes, void* theirs,
                             std::int64_t their_bytes) noexcept;

/// One with a context that was agreed on, which is given back when it cannot be made, or this
/// process is not in `group`, or `remote` is empty.
[[nodiscard]] int make_or_give_back(const Comm& from, Group& group, Group* remote, Agreed agreed,
                                    Comm** out) noexcept;

}  // namespace vmpi
