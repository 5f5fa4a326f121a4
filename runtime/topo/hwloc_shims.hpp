// SPDX-License-Identifier: BSD-2-Clause
//
// Where our copy of hwloc meets the world: it loads no code, sees no environment but what we tell
// it, and when it would end the program (an assertion about an input that it does not understand),
// the call is left instead. After that it is not called again in this process: it may have been
// holding its own lock.
#pragma once

namespace verbatim::topo {

/// work(argument), with hwloc's way to end the program turned into `false`. What the work had
/// allocated by then is lost; its frames must have nothing to destroy. Any thread.
[[nodiscard]] bool run_guarded(void (*work)(void*), void* argument) noexcept;

}  // namespace verbatim::topo
