// SPDX-License-Identifier: BSD-2-Clause
// The plug's shortest complete reading: one device, null0, made of the software defaults. What it
// accepts completes at once and moves no byte; what it lacks is left to the generated thunks.
#pragma once

#include "runtime/verbs/provider.hpp"

namespace verbatim::null {

extern const ProviderTable kProvider;

inline constexpr int kMaxCqe = 64;

/// Raises an event as the provider's own threads would.
void raise(ibv_context* context, const ibv_async_event& event) noexcept;
/// Announces one completion of `cq` on its channel.
void notify(ibv_cq* cq) noexcept;

}  // namespace verbatim::null
