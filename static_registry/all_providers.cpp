// SPDX-License-Identifier: BSD-2-Clause
// Pulled by RDMA_STATIC_PROVIDERS=all. It cannot lean on vbt_default_providers, which is null in a
// program that chose.
#include "static_registry/choice.hpp"

const vbt_provider verbs_provider_all = {vbt_compiled_in_providers};
