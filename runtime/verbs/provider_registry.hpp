// SPDX-License-Identifier: BSD-2-Clause
// The question the runtime asks at link time: which providers does this program carry? The runtime
// names none of them.
#pragma once

#include <span>

namespace verbatim {

struct ProviderTable;

/// The program's providers, each once, in no promised order; answered by static_registry. Any
/// thread, any time; the span is valid for ever. Empty only when the program was built with
/// RDMA_STATIC_PROVIDERS=none.
std::span<const ProviderTable* const> provider_table() noexcept;

}  // namespace verbatim
