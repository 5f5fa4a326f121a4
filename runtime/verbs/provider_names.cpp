// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/provider_names.hpp"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/provider.hpp"

namespace verbatim {
namespace {

constexpr std::string_view kSuffix = "-rdmav";

/// "rxe" of "/usr/lib/librxe-rdmav34.so".
std::string_view plain_name(std::string_view asked) noexcept {
  for (std::size_t i = asked.size(); i > 0; --i) {
    if (asked[i - 1] != '/') continue;
    asked.remove_prefix(i);
    break;
  }
  if (asked.size() > 3 && std::memcmp(asked.data(), "lib", 3) == 0) asked.remove_prefix(3);
  for (std::size_t i = 0; i + kSuffix.size() <= asked.size(); ++i) {
    // (Not substr or starts_with: unoptimised, they call into libstdc++.)
    if (std::memcmp(asked.data() + i, kSuffix.data(), kSuffix.size()) == 0)
      return {asked.data(), i};
  }
  return asked;
}

void check_driver(const char* variable, std::string_view asked,
                  std::span<const ProviderTable* const> providers) noexcept {
  if (asked.empty()) return;
  const std::string_view name = plain_name(asked);
  for (const ProviderTable* const provider : providers) {
    if (name == provider->name) return;
  }
  char names[128];
  print_provider_names(names, providers);
  log_warn(
      "couldn't load driver '%.*s' (%s): drivers are linked, not loaded, and the providers of this "
      "program are %s; unset %s, or link the provider (RDMA_STATIC_PROVIDERS)",
      static_cast<int>(asked.size()), asked.data(), variable, names, variable);
}

}  // namespace

void print_provider_names(std::span<char> text,
                          std::span<const ProviderTable* const> providers) noexcept {
  constexpr std::string_view kMore = ", ...";
  std::size_t used = 0;
  for (const ProviderTable* const provider : providers) {
    const bool fits = used + std::strlen(provider->name) + 2 * kMore.size() < text.size();
    const int wrote = std::snprintf(text.data() + used, text.size() - used, "%s%s",
                                    used == 0 ? "" : ", ", fits ? provider->name : "...");
    if (!fits || wrote < 0) return;
    used += static_cast<std::size_t>(wrote);
  }
  if (used == 0) std::snprintf(text.data(), text.size(), "none");
}

void check_asked_drivers(std::span<const ProviderTable* const> providers) noexcept {
  static constinit LogOnce once;
  if (!once.first()) return;
  constexpr std::size_t kLongest = 1024;
  const char* variable = "RDMAV_DRIVERS";
  const char* text = environment_text(variable, kLongest);
  if (text == nullptr) {
    variable = "IBV_DRIVERS";
    text = environment_text(variable, kLongest);
  }
  while (text != nullptr && *text != '\0') {
    const std::size_t length = std::strcspn(text, ":;");
    check_driver(variable, {text, length}, providers);
    text += length + (text[length] == '\0' ? 0 : 1);
  }
}

}  // namespace verbatim
