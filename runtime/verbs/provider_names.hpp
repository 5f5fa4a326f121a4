// SPDX-License-Identifier: BSD-2-Clause
// The providers of this program in a line, and those that its environment asks for. Any thread;
// control code.
#pragma once

#include <span>

namespace verbatim {

struct ProviderTable;

/// "shm, rxe"; what does not fit is "...".
void print_provider_names(std::span<char> text,
                          std::span<const ProviderTable* const> providers) noexcept;

/// RDMAV_DRIVERS (or IBV_DRIVERS) names libraries that libibverbs would load. Here providers are
/// linked in: one line, once per process, for each name that is none of them.
void check_asked_drivers(std::span<const ProviderTable* const> providers) noexcept;

}  // namespace verbatim
