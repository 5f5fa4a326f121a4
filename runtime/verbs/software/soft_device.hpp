// SPDX-License-Identifier: BSD-2-Clause
// What a device in software and its port say of themselves, whichever way their bytes go: a provider
// begins with these, and says of itself what is different. One port; queues as large as their
// limits, and no other limit but of memory. Pure; any thread. Spec: man ibv_query_device_ex,
// ibv_query_port, ibv_query_pkey; IBTA 11.2.1.2.
#pragma once

#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/capacities.hpp"

namespace verbatim {

/// The sizes of its queues and SGE lists, and what all devices in software have: atomics, any length
/// of memory, domains and address handles without end. How many queue pairs, keys and atomics in
/// flight there are is the provider's to add.
void describe_device(const QueueLimits& limits, ibv_device_attr_ex& attr) noexcept;

/// A port of one P_Key and one GID. `is_up`: others can be reached through it.
void describe_port(bool is_up, bool is_ethernet, ibv_port_attr& attr) noexcept;

/// The slot: the one P_Key that every partition table has (IBTA 10.9.1.2).
struct SoftPortVerbs {
  static int query_pkey(Context& context, std::uint8_t port, int index, __be16& pkey) noexcept;
};

}  // namespace verbatim
