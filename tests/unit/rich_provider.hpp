// SPDX-License-Identifier: BSD-2-Clause
// A provider of the verbs that no witness has: domains, windows, device memory, Ethernet queues,
// extended objects. It makes handles and nothing else, so that the runtime's rules for them can be
// tested before a real provider offers them.
#pragma once

#include "runtime/verbs/provider.hpp"

namespace verbatim::unit {

extern const ProviderTable kRich;

/// Handles of the provider that live now.
int rich_handles();

}  // namespace verbatim::unit
