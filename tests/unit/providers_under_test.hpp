// SPDX-License-Identifier: BSD-2-Clause
// These tests answer the registry's question themselves: the providers of the program are those
// that a test says, the two witnesses unless it says anything.
#pragma once

#include <initializer_list>

#include "runtime/verbs/provider.hpp"

namespace verbatim::unit {

/// Until the end of the scope the program carries these providers.
class Providers {
 public:
  Providers(std::initializer_list<const ProviderTable*> tables);
  ~Providers();
  Providers(const Providers&) = delete;
  Providers& operator=(const Providers&) = delete;
};

}  // namespace verbatim::unit
