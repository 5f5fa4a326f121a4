// SPDX-License-Identifier: BSD-2-Clause
//
// What a forked child inherits. Its objects are its parent's, and so is the other half of every
// connection: the child's copies are taken out of service before its first instruction. They can be
// asked and destroyed (inherited.hpp), and no byte reaches a peer. The child may open contexts of
// its own.
#pragma once

namespace verbatim::shm {

/// Has every later fork do so; once is enough. REQUIRES: Process::start() has been called, whose
/// own handler comes first: it makes the segment private. 0 or ENOMEM.
int prepare_for_forks() noexcept;

}  // namespace verbatim::shm
