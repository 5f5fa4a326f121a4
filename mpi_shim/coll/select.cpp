// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/select.hpp"

#include <cstdio>
#include <string_view>
#include <utility>

#include "mpi_shim/coll/crossovers.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"

namespace vmpi {
namespace {

constinit const KnownAlgorithm* by_user[kCollectives] = {};

}  // namespace

const KnownAlgorithm* chosen_by_user(Collective which) noexcept {
  return by_user[static_cast<std::size_t>(which)];
}

namespace {

[[gnu::cold, gnu::noinline]] Algorithm* select_by_user(Collective which,
                                                       const KnownAlgorithm& wanted,
                                                       const Shape& shape) noexcept {
  static constinit bool said[kCollectives] = {};  // under the big lock
  const char* const why_not = unmet(wanted, shape);
  if (why_not == nullptr) return wanted.plan;
  const KnownAlgorithm& instead = choose(which, shape);
  if (!std::exchange(said[static_cast<std::size_t>(which)], true))
    verbatim::log_info("%s is %s, which %s: %s does this call of %d ranks",
                       facts_of(which).variable, wanted.name, why_not, instead.name, shape.ranks);
  return instead.plan;
}

}  // namespace

Algorithm* select(Collective which, const Shape& shape) noexcept {
  const KnownAlgorithm* const wanted = by_user[static_cast<std::size_t>(which)];
  if (wanted != nullptr) [[unlikely]]
    return select_by_user(which, *wanted, shape);
  return choose(which, shape).plan;
}

const char* read_algorithm_choices() noexcept {
  if (read_costs != nullptr)
    if (const char* const refused = read_costs(); refused != nullptr) return refused;
  static constinit char wrong[320];
  for (int i = 0; i < kCollectives; ++i) {
    const auto which = static_cast<Collective>(i);
    const CollectiveFacts& facts = facts_of(which);
    constexpr std::size_t kLongest = 4095;
    const char* const name = verbatim::environment_text(facts.variable, kLongest);
    by_user[i] = name != nullptr ? find_algorithm(which, name) : nullptr;
    if (name == nullptr || by_user[i] != nullptr) continue;
    int length = std::snprintf(wrong, sizeof(wrong),
                               "%s is \"%.60s\", and the algorithms of %s are:", facts.variable,
                               name, facts.name);
    for (const KnownAlgorithm& each : facts.algorithms)
      length += std::snprintf(wrong + length, sizeof(wrong) - static_cast<std::size_t>(length),
                              "%s %s", &each == facts.algorithms.data() ? "" : ",", each.name);
    return wrong;
  }
  return nullptr;
}

}  // namespace vmpi
