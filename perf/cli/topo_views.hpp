// SPDX-License-Identifier: BSD-2-Clause
// The three ways in which `verbatim topo` shows what it gathered. One thread; nothing is written
// but the text that is returned.
#pragma once

#include <string>

#include "perf/cli/topo_facts.hpp"

namespace verbatim::cli {

/// For people at a terminal.
std::string topo_text(const TopoFacts& facts);
/// For programs: one object; what nobody knows is null.
std::string topo_json(const TopoFacts& facts);
/// A picture: packages, nodes, L3 caches, cores and their processors, devices.
/// REQUIRES: the machine is known.
std::string topo_svg(const TopoFacts& facts);

}  // namespace verbatim::cli
