// SPDX-License-Identifier: BSD-2-Clause
// The registry of a program that has the witness and nothing else.
#include "runtime/verbs/provider_registry.hpp"
#include "tests/support/packet/provider.hpp"

std::span<const verbatim::ProviderTable* const> verbatim::provider_table() noexcept {
  static const ProviderTable* const tables[] = {&packet::kProvider};
  return tables;
}
