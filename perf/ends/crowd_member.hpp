// SPDX-License-Identifier: BSD-2-Clause
// A process of a Crowd: the hub, or a peer. Main thread of a process of its own.
#pragma once

namespace verbatim::perf {

/// Serves requests until the supervisor closes its socket, asleep between them. Throws what it
/// cannot start with.
void serve_in_crowd(bool is_hub);

}  // namespace verbatim::perf
