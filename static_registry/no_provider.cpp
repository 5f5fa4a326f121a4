// SPDX-License-Identifier: BSD-2-Clause
// Pulled by RDMA_STATIC_PROVIDERS=none: an entry that says the program wants no device, so that it
// is not taken for a program that said nothing.
#include "static_registry/choice.hpp"

const vbt_provider verbs_provider_none = {nullptr};
