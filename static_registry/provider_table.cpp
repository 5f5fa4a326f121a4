// SPDX-License-Identifier: BSD-2-Clause
// Which providers does this program carry? The union of what its translation units chose, else the
// archive's own list. No constructor: the lists are data that the linker has laid together, joined
// once at the first question.
#include <pthread.h>

#include <cstddef>

#include "runtime/verbs/provider_registry.hpp"
#include "static_registry/choice.hpp"

extern "C" {
// Bounds of the section, made by the linker.
extern const void* const __start_vbt_providers[];
extern const void* const __stop_vbt_providers[];

// Weak here, so that asking for their addresses does not link them in.
[[gnu::weak]] extern const vbt_provider verbs_provider_all;
[[gnu::weak]] extern const vbt_provider verbs_provider_none;
}

namespace verbatim {
namespace {

// An entry of our own, so that the section exists and has bounds in every program. Readers skip
// null, which linkers may also leave between the entries of two units.
[[gnu::used, gnu::retain, gnu::section("vbt_providers")]] const void* section_exists = nullptr;

constexpr std::size_t kMostProviders = 32;

struct Union {
  const ProviderTable* entries[kMostProviders];
  std::size_t count;

  void add(const void* entry) {
    const auto* provider = static_cast<const ProviderTable*>(entry);
    for (std::size_t i = 0; i < count; ++i) {
      if (entries[i] == provider) return;
    }
    if (count < kMostProviders) entries[count++] = provider;
  }

  void add_list(const void* const* list) {
    while (*list != nullptr) add(*list++);
  }
};

constinit Union joined{};
constinit pthread_once_t joined_once = PTHREAD_ONCE_INIT;

void join_choices() {
  bool chosen = false;
  for (const void* const* entry = __start_vbt_providers; entry != __stop_vbt_providers; ++entry) {
    if (*entry == nullptr) continue;
    chosen = true;
    if (*entry == &verbs_provider_none) continue;
    if (*entry == &verbs_provider_all) {
      joined.add_list(verbs_provider_all.list);
    } else {
      joined.add(*entry);
    }
  }
  if (!chosen) joined.add_list(vbt_default_providers);
}

}  // namespace

std::span<const ProviderTable* const> provider_table() noexcept {
  pthread_once(&joined_once, join_choices);
  return {joined.entries, joined.count};
}

}  // namespace verbatim
