// SPDX-License-Identifier: BSD-2-Clause
// Enumerators as words. The words are those that tools and log parsers have known for years; a
// value that has none is "unknown". Any thread; static storage.
#include <cstddef>

#include "abi/entry/border.hpp"

namespace {

template <class Enum, std::size_t N>
const char* word(const char* const (&words)[N], Enum value) noexcept {
  const auto index = static_cast<std::size_t>(static_cast<long>(value));
  return index < N && words[index] != nullptr ? words[index] : "unknown";
}

constexpr const char* kNodeTypes[] = {
    nullptr,
    "InfiniBand channel adapter",
    "InfiniBand switch",
    "InfiniBand router",
    "iWARP NIC",
    "usNIC",
    "usNIC UDP",
    "unspecified",
};

constexpr const char* kPortStates[] = {
    "no state change (NOP)", "down", "init", "armed", "active", "active defer",
};

constexpr const char* kEventTypes[] = {
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal",
    "device speed change",
};

constexpr const char* kStatuses[] = {
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
};

constexpr const char* kOpcodes[] = {
    "RDMA write",
    "RDMA write with immediate",
    "send",
    "send with immediate",
    "RDMA read",
    "atomic compare and swap",
    "atomic fetch and add",
    "local invalidate",
    "bind memory window",
    "send with invalidate",
    "TSO",
    "driver-specific",
    nullptr,
    nullptr,
    "flush",
    "atomic write",
};

static_assert(sizeof kEventTypes / sizeof *kEventTypes == IBV_EVENT_DEVICE_SPEED_CHANGE + 1);
static_assert(sizeof kStatuses / sizeof *kStatuses == IBV_WC_TM_RNDV_INCOMPLETE + 1);
static_assert(sizeof kOpcodes / sizeof *kOpcodes == IBV_WR_ATOMIC_WRITE + 1);

}  // namespace

VBT_ENTRY const char* ibv_node_type_str(ibv_node_type type) { return word(kNodeTypes, type); }

VBT_ENTRY const char* ibv_port_state_str(ibv_port_state state) { return word(kPortStates, state); }

VBT_ENTRY const char* ibv_event_type_str(ibv_event_type event) { return word(kEventTypes, event); }

VBT_ENTRY const char* ibv_wc_status_str(ibv_wc_status status) { return word(kStatuses, status); }

VBT_ENTRY const char* ibv_wr_opcode_str(ibv_wr_opcode opcode) { return word(kOpcodes, opcode); }
