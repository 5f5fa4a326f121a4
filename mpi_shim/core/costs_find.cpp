// SPDX-License-Identifier: BSD-2-Clause
#include <cstdio>
#include <cstring>
#include <string_view>

#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/hand_over.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/topo/host_note.hpp"

namespace vmpi {
namespace {

constexpr const char* kVariable = "VERBATIM_COLL_COSTS";
constexpr std::string_view kBuiltInWord = "built-in";

[[nodiscard]] const char* users_word() noexcept {
  return verbatim::environment_text(kVariable, kCostsText - 1);
}

/// Where other processes kept the processors busy, hand-overs could not be measured: perhaps now.
[[nodiscard]] bool is_complete(const Costs& costs) noexcept {
  if (costs.is_measured(CostOf::kNearLatency)) return true;
  const Partners partners = find_partners();
  return partners.near.empty() && partners.far.empty();
}

/// As providers/shm reads it: of this job, so it is kept for no other.
[[nodiscard]] bool is_kernel_forbidden() noexcept {
  const char* const text = verbatim::environment_text("VERBATIM_SHM_CMA", 8);
  return text != nullptr && std::string_view(text) == "off";
}

[[nodiscard]] CostsFrom find_of_host(Costs& out, std::span<char> path) noexcept {
  verbatim::topo::HostNote note;
  const bool is_open = note.open("coll-costs");
  if (is_open) {
    (void)std::snprintf(path.data(), path.size(), "%s", note.path());
    char text[kCostsText];
    char wrong[128];
    if (note.read(text)) {
      if (parse_costs(text, true, out, wrong) != nullptr)
        verbatim::log_info("%s is not used, and replaced: %s", note.path(), wrong);
      else if (is_complete(out))
        return CostsFrom::kKept;
    }
  }
  measure_costs(out);
  if (is_open) {
    char text[kCostsText];
    write_costs(out, text);
    if (!note.write(text)) path[0] = '\0';
  }
  return CostsFrom::kMeasured;
}

}  // namespace

const char* read_costs() noexcept {
  static constinit char refused[256];
  const char* const text = users_word();
  if (text == nullptr || text == kBuiltInWord) return nullptr;
  Costs judged = built_in_costs();
  char wrong[128];
  if (parse_costs(text, false, judged, wrong) == nullptr) return nullptr;
  (void)std::snprintf(refused, sizeof refused,
                      "%s is neither \"built-in\" nor such as \"near.latency:60,host.put:0.04\" "
                      "(ns): %s",
                      kVariable, wrong);
  return refused;
}

CostsFrom find_costs(Costs& out, std::span<char> path) noexcept {
  out = built_in_costs();
  path[0] = '\0';
  const char* const text = users_word();
  if (text != nullptr && text == kBuiltInWord) return CostsFrom::kBuiltIn;
  const CostsFrom from = find_of_host(out, path);
  if (is_kernel_forbidden()) go_without_kernel(out);
  if (text == nullptr) return from;
  char wrong[128];
  // What is wrong with it read_costs() has said.
  return parse_costs(text, false, out, wrong) == nullptr ? CostsFrom::kUser : from;
}

}  // namespace vmpi
