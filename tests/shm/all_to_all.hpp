// SPDX-License-Identifier: BSD-2-Clause
//
// Every process with every other one, over queue pairs that share two completion queues.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace verbatim::harness {

/// Starts `processes` children; each sends to and writes into each other `rounds` times, with
/// messages of many sizes, and checks what it gets. `environment`: theirs, on top of ours.
void all_to_all(std::uint32_t processes, std::uint32_t rounds,
                const std::map<std::string, std::string>& environment = {});

}  // namespace verbatim::harness
