// SPDX-License-Identifier: BSD-2-Clause
//
// The machine that this process runs on, or that its user describes (machine_source.hpp): found
// when it is first asked for, once per process, and kept. Any thread; two that come first together
// both find it and one of the findings is kept, so that no lock is held that a fork could tear.
//
// The first process of a user takes what hwloc takes; every other one reads a file (1 ms at most).
#pragma once

#include "runtime/topo/machine.hpp"

namespace verbatim::topo {

/// Where nothing could be found out, said once in the log, it is not known().
[[nodiscard]] const Machine& host_machine() noexcept;

/// Reads the machine anew each time; `storage` holds the answer, if there is one.
class Snapshot;
[[nodiscard]] bool find_machine(Snapshot& storage) noexcept;

}  // namespace verbatim::topo
