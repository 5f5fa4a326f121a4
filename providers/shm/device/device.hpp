// SPDX-License-Identifier: BSD-2-Clause
//
// shm0, shm1 ...: devices that exist wherever processes share a kernel. All have one port, ACTIVE
// while others can meet us, and stand for the same memory; several exist only for programs that
// want several.
#pragma once

#include "providers/shm/memory/context.hpp"
#include "runtime/verbs/device_sink.hpp"

namespace verbatim::shm {

inline constexpr std::uint8_t kPort = 1;

int list_devices(DeviceSink& sink) noexcept;
int open(Device& device, verbatim::Context** out) noexcept;
void close(verbatim::Context& context) noexcept;
int query_device(verbatim::Context& context, ibv_device_attr_ex& attr) noexcept;
int query_port(verbatim::Context& context, std::uint8_t port, ibv_port_attr& attr) noexcept;
int query_gid(verbatim::Context& context, std::uint8_t port, int index,
              ibv_gid_entry& entry) noexcept;
/// Of a mapped address; those of link-local ones and of groups the runtime computes.
int resolve_eth_l2(verbatim::Context& context, ibv_ah_attr& attr, std::uint8_t* mac,
                   std::uint16_t* vlan) noexcept;
int get_async_event(verbatim::Context& context, ibv_async_event& event) noexcept;

}  // namespace verbatim::shm
