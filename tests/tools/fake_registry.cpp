// SPDX-License-Identifier: BSD-2-Clause
// The door of static_registry/ in the tool over the fake library, whose device is no provider's.
#include "perf/cli/measuring.hpp"
#include "runtime/verbs/provider_registry.hpp"

std::span<const verbatim::ProviderTable* const> verbatim::provider_table() noexcept { return {}; }

// What measures takes the library's own calls, which the fake one has not.
std::span<const verbatim::cli::Command> verbatim::cli::measuring_commands() { return {}; }
int verbatim::cli::run_if_measuring_end(int, char**) { return -1; }
