// SPDX-License-Identifier: BSD-2-Clause
// A provider in the manner of those that drive a kernel: device fakek0, whose keys, QP states, GID
// and P_Key tables and event descriptors come from tests/support/fake_kernel. It selects none of
// the software defaults, and so proves that the runtime does not rely on them.
#pragma once

#include "runtime/verbs/provider.hpp"

namespace verbatim::fake {

extern const ProviderTable kProvider;

}  // namespace verbatim::fake
