// SPDX-License-Identifier: BSD-2-Clause
// Opening and closing devices, and asking what they are. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// A context with the provider's data path in its ops; the C border fills the other slots.
Result<Context*> open_device(Device& device) noexcept;
/// Gives up one import, if there is one (imports.hpp). Or else ends what is left of the context first. EBUSY: a provider cannot end something now.
Status close_device(Context& context) noexcept;

Status query_device(Context& context, ibv_device_attr_ex& out) noexcept;
Status query_port(Context& context, std::uint32_t port, ibv_port_attr& out) noexcept;
Status query_pkey(Context& context, std::uint32_t port, int index, __be16& out) noexcept;
/// The index at which the port's table holds exactly this P_Key.
Result<int> find_pkey(Context& context, std::uint32_t port, __be16 pkey) noexcept;
/// ENODATA: the entry is empty.
Status query_gid(Context& context, std::uint32_t port, std::uint32_t index,
                 ibv_gid_entry& out) noexcept;
/// Every entry that holds a GID, of all ports; entries of `entry_size` bytes. EINVAL when there are
/// more than `max`.
Result<ssize_t> query_gid_table(Context& context, void* entries, std::size_t max,
                                std::size_t entry_size) noexcept;
Status query_rt_values(Context& context, ibv_values_ex& values) noexcept;
Status get_async_event(Context& context, ibv_async_event& out) noexcept;

}  // namespace verbatim
