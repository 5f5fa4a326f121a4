// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/provider.hpp"

#include "providers/shm/device/provider_slots.hpp"

extern "C" [[gnu::visibility("default")]] const verbatim::ProviderTable verbs_provider_shm;
constinit const verbatim::ProviderTable verbs_provider_shm =
    verbatim::make_provider_table<verbatim::shm::Shm>();
