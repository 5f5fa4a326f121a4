// SPDX-License-Identifier: BSD-2-Clause
//
// Two peers that write, read and send without pause, each over three connections, while the owner
// takes its memory back: deregisters it, moves queue pairs out of service or destroys them, and
// uses the memory for something else at once. After each of these verbs has returned nobody may
// touch what it covers.
#pragma once

#include "tests/support/expect.hpp"

namespace verbatim::harness {

/// With the peers in processes of their own (kTwoProcesses) or in threads of this one.
/// `in_domains`: each queue pair of the peers is of a thread domain.
void run_dereg_storm(Setting setting, std::uint32_t rounds, bool in_domains = false);

}  // namespace verbatim::harness
