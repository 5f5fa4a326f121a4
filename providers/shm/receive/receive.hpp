// SPDX-License-Identifier: BSD-2-Clause
//
// The cold side of receiving. Under the receive CQ's lock unless said otherwise.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// Takes what there is for `qp`: messages, then, in the error state, flushes. Entries written;
/// `more` when there was no room for all.
int take_all(Qp& qp, int room, ibv_wc* wc, bool& more) noexcept;
/// The same when there is one message at most that its sender does not ring for again: the line
/// behind it is not looked at, since the sender is about to write there.
int take_first(Qp& qp, int room, ibv_wc* wc, bool& more) noexcept;
/// For an application that does not poll: copies what lies in the peer's stream ring into the
/// posted receives, some pieces at a time; completions wait for the poll. Service thread, CQ's lock
/// not held. Bytes copied.
std::uint64_t pull_messages(Qp& qp) noexcept;
}  // namespace verbatim::shm
