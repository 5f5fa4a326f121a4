// SPDX-License-Identifier: BSD-2-Clause
// Pulled into programs that made no choice: they get every provider of the archive, never a
// silently empty device list.
#include "static_registry/choice.hpp"

const void* const* vbt_default_providers = vbt_compiled_in_providers;
