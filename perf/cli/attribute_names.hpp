// SPDX-License-Identifier: BSD-2-Clause
// The words that the classic tools print for the enumerators of the verbs.
//
// Any thread; every answer is a string literal. Values outside the enumeration get the classic
// "invalid ..." words: a device that answers nonsense is shown, not hidden. Scripts compare these
// words, misspellings included; tests/tools compares them with the distribution's own tool.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim::cli {

const char* transport_name(ibv_transport_type transport);
const char* atomic_cap_name(ibv_atomic_cap cap);
const char* port_state_name(ibv_port_state state);
const char* mtu_name(ibv_mtu mtu);
const char* link_layer_name(std::uint8_t link_layer);
const char* vl_count_name(std::uint8_t encoded);
const char* width_name(std::uint8_t encoded);
const char* speed_name(std::uint8_t encoded);
const char* physical_state_name(std::uint8_t state);

}  // namespace verbatim::cli
