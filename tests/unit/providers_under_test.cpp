// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit/providers_under_test.hpp"

#include <span>
#include <vector>

#include "runtime/verbs/provider_registry.hpp"
#include "tests/support/fake_kernel_provider.hpp"
#include "tests/support/null_provider.hpp"

namespace verbatim {
namespace unit {
namespace {

std::vector<const ProviderTable*>& carried() {
  static std::vector<const ProviderTable*> tables{&null::kProvider, &fake::kProvider};
  return tables;
}

}  // namespace

Providers::Providers(std::initializer_list<const ProviderTable*> tables) { carried() = tables; }
Providers::~Providers() { carried() = {&null::kProvider, &fake::kProvider}; }

}  // namespace unit

std::span<const ProviderTable* const> provider_table() noexcept { return unit::carried(); }

}  // namespace verbatim
