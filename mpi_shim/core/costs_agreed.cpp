// SPDX-License-Identifier: BSD-2-Clause
// Rank 0 finds the costs and tells them to the launcher before all ranks meet; each rank asks for them when
// it first chooses an algorithm, rank 0 too, so that all have what the launcher has: no message more for
// any collective. Where rank 0 has said nothing, all take what is built in. Of teams (mpi_shim/teams) member
// 0 says them with the introductions.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/errors.hpp"
#include "mpi_shim/core/pmi_wire.hpp"
#include "mpi_shim/core/world.hpp"
#include "runtime/base/log.hpp"

namespace vmpi {
namespace {

constexpr const char* kKey = "verbatim-costs";

/// Of teams, whose communicators may go by different ones.
LastingArray<Costs*> kept;
constinit Costs of_world = {};
constinit bool is_world_known = false;

void ask_launcher() noexcept {
  is_world_known = true;
  of_world = built_in_costs();
  // Of another version it may be longer: one that does not fit would count as none.
  char text[kPmiRoom];
  const KeyAnswer answer = look_up(kKey, text, sizeof text);
  if (answer == KeyAnswer::kNoSuchKey) return;
  if (answer == KeyAnswer::kSilence)
    abort_all(1,
              "the launcher does not say by which costs rank 0 chooses algorithms of collectives");
  constexpr std::string_view kPrefix = "choosing:";
  char* end = text;
  if (std::string_view(text).starts_with(kPrefix) &&
      std::strtoul(text + kPrefix.size(), &end, 10) != kChoosing && *end == ',')
    abort_all(1,
              "rank 0 chooses algorithms of collectives otherwise than rank %d does: their "
              "programs have different versions of this library",
              world.rank);
  char wrong[128];
  if (*end != ',' || parse_costs(end + 1, true, of_world, wrong) != nullptr)
    abort_all(1,
              "by which costs rank 0 chooses algorithms of collectives the launcher garbles: "
              "\"%.80s\"",
              text);
  verbatim::log_debug("algorithms of collectives are chosen by %s", end + 1);
}

}  // namespace

void publish_costs() noexcept {
  if (world.rank != 0 || world.size < 2) return;
  Costs found;
  char path[1];
  (void)find_costs(found, path);
  char text[kCostsText];
  write_costs(found, text);
  char value[kCostsText + 32];
  (void)std::snprintf(value, sizeof value, "choosing:%u,%s", kChoosing, text);
  // Where it is not kept, nobody finds it.
  (void)publish(kKey, value);
}

const Costs& costs_of(Comm& comm) noexcept {
  if (comm.costs == nullptr) [[unlikely]] {
    if (comm.whole != nullptr && comm.whole->costs != nullptr) {
      comm.costs = comm.whole->costs;
    } else {
      if (!is_world_known) ask_launcher();
      comm.costs = &of_world;
    }
  }
  return *comm.costs;
}

const Costs* keep_costs(const Costs& said) noexcept {
  // Judged by their text, as those that a launcher keeps.
  char text[kCostsText];
  char wrong[128];
  Costs judged = built_in_costs();
  write_costs(said, text);
  if (parse_costs(text, true, judged, wrong) != nullptr) {
    verbatim::log_info("what member 0 says of costs is not used, since %s", wrong);
    judged = built_in_costs();
  }
  for (const Costs* each : kept)
    if (std::memcmp(each->ps, judged.ps, sizeof judged.ps) == 0) return each;
  void* const place = std::malloc(sizeof(Costs));
  if (place == nullptr) return nullptr;
  auto* const made = ::new (place) Costs(judged);
  if (kept.push_back(made)) return made;
  std::free(place);
  return nullptr;
}

void forget_costs() noexcept {
  for (Costs* each : kept) std::free(static_cast<void*>(each));
  kept = {};
  is_world_known = false;
}

}  // namespace vmpi
